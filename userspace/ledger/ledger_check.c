/* SPDX-License-Identifier: BSD-2-Clause */
#include "ledger/ledger_check.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/hash.h"
#include "discover/process_figures.h"

#define ENTRIES_MAX 4096U

struct entry {
	uint32_t tgid;
	struct scheduler_times before, now;
	bool has_before, has_now, has_exits;
	uint64_t cpu_ns, life_ns; /* of the ledger, since `before`, as has_exits */
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

void ledger_check_free(struct ledger_check *check)
{
	if (!check)
		return;
	HASH_DROP_ALL(check->entry);
	free(check);
}

static struct entry *find(struct ledger_check *check, uint32_t tgid)
{
	struct entry *entry;

	HASH_FIND(hh, check->entry, &tgid, sizeof(tgid), entry);
	return entry;
}

static struct entry *get(struct ledger_check *check, uint32_t tgid)
{
	/* Dead processes are not searched for: all entries are dropped at once. */
	if (HASH_COUNT(check->entry) >= ENTRIES_MAX && !find(check, tgid))
		HASH_DROP_ALL(check->entry);
	return HASH_GET(check->entry, tgid, tgid);
}

static void begin(struct entry *entry, const struct scheduler_times *times)
{
	entry->before = *times;
	entry->has_before = true;
	entry->has_now = entry->has_exits = false;
	entry->cpu_ns = entry->life_ns = 0;
}

void ledger_check_begin(struct ledger_check *check, uint32_t tgid)
{
	struct scheduler_times times;
	struct entry *entry = scheduler_times_read(tgid, &times) ? NULL : get(check, tgid);

	if (entry)
		begin(entry, &times);
}

void ledger_check_read(void *context, uint32_t tgid)
{
	struct ledger_check *check = context;
	struct entry *entry = get(check, tgid);

	if (!entry)
		return;
	if (scheduler_times_read(tgid, &entry->now))
		HASH_DROP(check->entry, entry);
	else
		entry->has_now = true;
}

void ledger_check_add(struct ledger_check *check, const struct ledger_line *line)
{
	struct entry *entry = find(check, line->id.tgid);

	if (!entry)
		return;
	entry->cpu_ns += line->total_ns[PP_LEDGER_CPU];
	entry->life_ns += line->life_ns;
	entry->has_exits |= line->exits > 0;
}

void ledger_check_compare(struct ledger_check *check, struct ledger_line *line)
{
	struct entry *entry = find(check, line->id.tgid);

	if (!entry || !entry->has_now)
		return;
	if (entry->has_before && entry->before.start_ns == entry->now.start_ns) {
		line->checked_ns = entry->life_ns;
		line->over_ns = (int64_t)(entry->cpu_ns -
					  scheduler_times_between(&entry->before, &entry->now,
								  entry->has_exits));
	}
	begin(entry, &entry->now);
}
