/* SPDX-License-Identifier: BSD-2-Clause */
#include "ledger/ledger.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "drain/thread_slots.h"

/* A thread may be missing from a reading: it is torn, or on its way from its slot to the map of
 * exited threads.  If its process were forgotten then, its whole life would be counted when it
 * reappears. */
#define READINGS_KEPT 3U

/* All times since the first reading; a window's times are the difference of two readings. */
struct times {
	uint64_t total_ns[PP_LEDGER_COUNT];
	uint64_t life_ns;
};

struct entry {
	struct pp_process_id id;
	struct times live, exited, before;
	uint64_t part[LEDGER_PART_COUNT];
	uint64_t threads, exits;
	uint32_t leaders; /* of those that exited, in the entry with tgid 0 */
	uint32_t user;
	bool is_begun;		       /* the user was set, if only to LEDGER_USER_UNKNOWN */
	unsigned int readings_without; /* consecutive readings without a thread of it */
	UT_hash_handle hh;
};

struct ledger {
	struct entry *entry;
	struct ledger_line *line; /* owned; of the last reading */
};

int ledger_new(struct ledger **ret_ledger)
{
	struct ledger *ledger = calloc(1, sizeof(*ledger));

	if (!ledger)
		return -ENOMEM;
	*ret_ledger = ledger;
	return 0;
}

void ledger_free(struct ledger *ledger)
{
	if (!ledger)
		return;
	HASH_DROP_ALL(ledger->entry);
	free(ledger->line);
	free(ledger);
}

static struct entry *entry_get(struct ledger *ledger, struct pp_process_id id)
{
	struct entry *entry = HASH_GET(ledger->entry, id, id);

	if (entry && !entry->is_begun) {
		entry->is_begun = true;
		entry->user = LEDGER_USER_UNKNOWN;
	}
	return entry;
}

void ledger_begin(struct ledger *ledger)
{
	struct entry *entry, *next;

	HASH_ITER (hh, ledger->entry, entry, next) {
		entry->live = (struct times){};
		entry->threads = entry->exits = 0;
		entry->leaders = 0;
		memset(entry->part, 0, sizeof(entry->part));
	}
	free(TAKE(ledger->line));
}

int ledger_add_thread(struct ledger *ledger, const struct pp_thread *thread, uint64_t end_ns)
{
	uint64_t total_ns[PP_LEDGER_COUNT];
	struct entry *entry;

	if (!(thread->flags & PP_THREAD_MATCHES) || thread->created_ns >= end_ns)
		return 0;
	entry = entry_get(ledger, thread->id);
	if (!entry)
		return -ENOMEM;
	entry->user = thread->user;
	thread_slot_totals(thread, end_ns, total_ns);
	for (unsigned int i = 0; i < PP_LEDGER_COUNT; i++)
		entry->live.total_ns[i] += total_ns[i];
	entry->live.life_ns += end_ns - thread->created_ns;
	entry->threads++;
	return 0;
}

/* Adds to the exited threads' sums, because those last from one reading to the next. */
int ledger_add_sleep(struct ledger *ledger, struct pp_process_id id, enum pp_wait wait, uint64_t ns,
		     bool is_alone)
{
	struct entry *entry = entry_get(ledger, id);

	if (!entry)
		return -ENOMEM;
	entry->exited.total_ns[wait_ledger(wait)] += ns;
	entry->exited.life_ns += ns;
	entry->threads += is_alone;
	return 0;
}

static int add_exited(struct ledger *ledger, const struct pp_process_id *id,
		      const struct pp_ledger_sum *sum)
{
	struct entry *entry = entry_get(ledger, *id);

	if (!entry)
		return -ENOMEM;
	for (unsigned int i = 0; i < PP_LEDGER_COUNT; i++)
		entry->exited.total_ns[i] += sum->total_ns[i];
	entry->exited.life_ns += sum->life_ns;
	entry->threads += sum->threads;
	entry->exits += sum->threads;
	entry->leaders += sum->leaders;
	entry->user = sum->user;
	return 0;
}

int ledger_add_rest(struct ledger *ledger, const struct pp_ledger_sum *sum)
{
	return add_exited(ledger, &(struct pp_process_id){}, sum);
}

int ledger_add_gone(struct ledger *ledger, const struct pp_thread *thread, uint64_t end_ns)
{
	struct pp_ledger_sum sum = {.threads = 1, .user = thread->user};
	uint64_t total_ns[PP_LEDGER_COUNT];

	if (!(thread->flags & PP_THREAD_MATCHES) || thread->created_ns >= end_ns)
		return 0;
	thread_slot_totals(thread, end_ns, total_ns);
	for (unsigned int i = 0; i < PP_LEDGER_COUNT; i++)
		sum.total_ns[i] = total_ns[i];
	sum.life_ns = end_ns - thread->created_ns;
	return add_exited(ledger, &thread->id, &sum);
}

int ledger_add_exited(struct ledger *ledger, int map_fd)
{
	struct pp_process_id id;
	struct pp_ledger_sum sum;
	int err;

	while (!(err = bpf_map_get_next_key(map_fd, NULL, &id))) {
		err = bpf_map_lookup_elem(map_fd, &id, &sum);
		if (!err)
			err = bpf_map_delete_elem(map_fd, &id);
		if (!err)
			err = add_exited(ledger, &id, &sum);
		if (err)
			return err;
	}
	return err == -ENOENT ? 0 : err;
}

void ledger_busy(const struct ledger *ledger, uint64_t min_ns,
		 void (*callback)(void *context, uint32_t tgid), void *context)
{
	for (const struct entry *entry = ledger->entry; entry; entry = entry->hh.next) {
		uint64_t cpu_ns =
			entry->live.total_ns[PP_LEDGER_CPU] + entry->exited.total_ns[PP_LEDGER_CPU];

		if (cpu_ns >= entry->before.total_ns[PP_LEDGER_CPU] + min_ns)
			callback(context, entry->id.tgid);
	}
}

bool ledger_find(const struct ledger *ledger, struct pp_process_id id, enum pp_ledger where,
		 uint64_t *ret_ns)
{
	const struct entry *entry;
	uint64_t ns;

	HASH_FIND(hh, ledger->entry, &id, sizeof(id), entry);
	if (!entry)
		return false;
	ns = entry->live.total_ns[where] + entry->exited.total_ns[where];
	*ret_ns = ns > entry->before.total_ns[where] ? ns - entry->before.total_ns[where] : 0;
	return true;
}

int ledger_add_sample(struct ledger *ledger, struct pp_process_id id, enum ledger_part part,
		      uint64_t weight)
{
	struct entry *entry = entry_get(ledger, id);

	if (!entry)
		return -ENOMEM;
	entry->part[part] += weight;
	return 0;
}

/* Returns the growth since the last reading.  A thread that exits during a reading may be in
 * neither of its parts, so a sum can be too small; the next reading includes it. */
static uint64_t grown(uint64_t *before, uint64_t now)
{
	uint64_t by = now > *before ? now - *before : 0;

	*before += by;
	return by;
}

static void fill_line(struct entry *entry, struct ledger_line *line)
{
	*line = (struct ledger_line){.id = entry->id,
				     .threads = entry->threads,
				     .exits = entry->exits,
				     .processes = entry->id.tgid ? 0 : entry->leaders,
				     .user = entry->user};
	for (unsigned int i = 0; i < PP_LEDGER_COUNT; i++)
		line->total_ns[i] = grown(&entry->before.total_ns[i],
					  entry->live.total_ns[i] + entry->exited.total_ns[i]);
	line->life_ns = grown(&entry->before.life_ns, entry->live.life_ns + entry->exited.life_ns);
	memcpy(line->part, entry->part, sizeof(line->part));
}

void ledger_add_times(struct ledger_line *to, const struct ledger_line *from)
{
	for (unsigned int i = 0; i < PP_LEDGER_COUNT; i++)
		to->total_ns[i] += from->total_ns[i];
	for (unsigned int i = 0; i < LEDGER_PART_COUNT; i++)
		to->part[i] += from->part[i];
	to->life_ns += from->life_ns;
	to->exits += from->exits;
	to->over_ns += from->over_ns;
	to->checked_ns += from->checked_ns;
}

int ledger_end(struct ledger *ledger, struct ledger_line **ret_lines, size_t *ret_count)
{
	struct entry *entry, *next;
	size_t count = 0;

	ledger->line = calloc(HASH_COUNT(ledger->entry) + 1, sizeof(*ledger->line));
	if (!ledger->line)
		return -ENOMEM;
	HASH_ITER (hh, ledger->entry, entry, next) {
		fill_line(entry, &ledger->line[count++]);
		entry->readings_without = entry->threads ? 0 : entry->readings_without + 1;
		if (entry->readings_without < READINGS_KEPT)
			continue;
		HASH_DROP(ledger->entry, entry);
	}
	*ret_lines = ledger->line;
	*ret_count = count;
	return 0;
}

uint64_t ledger_state_ns(const struct ledger_line *line, unsigned int state)
{
	const uint64_t cpu_ns = line->total_ns[PP_LEDGER_CPU];
	double weight = 0;

	if (state >= LEDGER_WAITS_BEGIN)
		return line->total_ns[state - LEDGER_PART_COUNT];
	for (unsigned int i = 0; i < LEDGER_PART_COUNT; i++)
		weight += (double)line->part[i];
	if (state == LEDGER_UNSAMPLED)
		return weight > 0 ? 0 : cpu_ns;
	return weight > 0 ? (uint64_t)((double)cpu_ns * (double)line->part[state] / weight) : 0;
}
