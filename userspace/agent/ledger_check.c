/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/ledger_check.h"

#include <errno.h>
#include <stdlib.h>

#include <uthash.h>

#include "base/clock.h"
#include "discover/scheduler_times.h"

/* Less than this in a window is no news: its next reading has it. */
#define WORTH_READING_NS (20 * NS_PER_MS)
#define ENTRIES_MAX 4096U

struct entry {
	uint32_t tgid;
	struct scheduler_times times; /* of the last reading */
	uint64_t cpu_ns, life_ns;     /* of the ledger, since */
	uint64_t exits;
	UT_hash_handle hh;
};

struct ledger_check {
	struct entry *entry;
};

int ledger_check_new(struct ledger_check **ret_check)
{
	struct ledger_check *check = calloc(1, sizeof(*check));

	if (!check)
		return -ENOMEM;
	*ret_check = check;
	return 0;
}

static void clear(struct ledger_check *check)
{
	struct entry *entry, *next;

	HASH_ITER (hh, check->entry, entry, next) {
		HASH_DEL(check->entry, entry);
		free(entry);
	}
}

void ledger_check_free(struct ledger_check *check)
{
	if (!check)
		return;
	clear(check);
	free(check);
}

static void forget(struct ledger_check *check, struct entry *entry)
{
	HASH_DEL(check->entry, entry);
	free(entry);
}

static struct entry *find(struct ledger_check *check, uint32_t tgid)
{
	struct entry *entry;

	HASH_FIND(hh, check->entry, &tgid, sizeof(tgid), entry);
	return entry;
}

static void remember(struct ledger_check *check, uint32_t tgid, const struct scheduler_times *times)
{
	struct entry *entry = find(check, tgid);

	if (!entry) {
		/* Dead ones are not looked for: all begin anew. */
		if (HASH_COUNT(check->entry) >= ENTRIES_MAX)
			clear(check);
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return;
		entry->tgid = tgid;
		HASH_ADD(hh, check->entry, tgid, sizeof(entry->tgid), entry);
	}
	entry->times = *times;
	entry->cpu_ns = entry->life_ns = entry->exits = 0;
}

void ledger_check_begin(struct ledger_check *check, uint32_t tgid)
{
	struct scheduler_times times;

	if (!scheduler_times_read(tgid, &times))
		remember(check, tgid, &times);
}

void ledger_check_line(struct ledger_check *check, struct ledger_line *line)
{
	struct entry *entry = find(check, line->id.tgid);
	struct scheduler_times now;

	if (entry) {
		entry->cpu_ns += line->total_ns[PP_LEDGER_CPU];
		entry->life_ns += line->life_ns;
		entry->exits += line->exits;
	}
	if (line->total_ns[PP_LEDGER_CPU] < WORTH_READING_NS)
		return;
	if (scheduler_times_read(line->id.tgid, &now)) {
		if (entry)
			forget(check, entry);
		return;
	}
	if (entry && entry->times.start_ns == now.start_ns) {
		line->checked_ns = entry->life_ns;
		line->over_ns = (int64_t)(entry->cpu_ns -
					  scheduler_times_between(&entry->times, &now, entry->exits));
	}
	remember(check, line->id.tgid, &now);
}
