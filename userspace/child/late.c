/* SPDX-License-Identifier: BSD-2-Clause */
#include "child/worker.h"

#include <stddef.h>

static const struct late_entry *find(const struct late_entry *entry, uint32_t id)
{
	for (size_t i = 0; i < LATE_ENTRIES; i++)
		if (entry[i].since_ns && entry[i].id == id)
			return &entry[i];
	return NULL;
}

/* Returns the entry of an id, new ones in the place of the one that began first. */
static struct late_entry *take(struct late_entry *entry, uint32_t id, uint64_t now_ns,
			       uint64_t period_ns)
{
	struct late_entry *found = (struct late_entry *)find(entry, id);

	if (!found) {
		found = &entry[0];
		for (size_t i = 1; i < LATE_ENTRIES; i++)
			if (entry[i].since_ns < found->since_ns)
				found = &entry[i];
		*found = (struct late_entry){.id = id, .since_ns = now_ns};
	}
	if (now_ns - found->since_ns > period_ns) {
		found->count = 0;
		found->since_ns = now_ns;
	}
	found->count++;
	return found;
}

void late_table_add(struct late_table *table, pid_t tid, uid_t user, uint64_t now_ns)
{
	struct late_entry *entry = take(table->task, (uint32_t)tid, now_ns, LATE_ALONE_NS);

	entry->until_ns = now_ns + LATE_ALONE_NS;
	if (!user)
		return;
	entry = take(table->user, user, now_ns, LATE_USER_ALONE_NS);
	table->suspects_until_ns = now_ns + LATE_USER_ALONE_NS;
	if (entry->count < LATE_USER_MAX)
		return;
	entry->until_ns = table->users_until_ns = now_ns + LATE_USER_ALONE_NS;
}

bool late_table_has_task(const struct late_table *table, pid_t tid, uint64_t now_ns)
{
	const struct late_entry *entry = find(table->task, (uint32_t)tid);

	return entry && now_ns < entry->until_ns;
}

bool late_table_has_user(const struct late_table *table, uid_t user, uint64_t now_ns)
{
	const struct late_entry *entry = find(table->user, user);

	return entry && now_ns < entry->until_ns;
}

bool late_table_suspects(const struct late_table *table, uid_t user, uint64_t now_ns)
{
	const struct late_entry *entry =
		now_ns < table->suspects_until_ns ? find(table->user, user) : NULL;

	return entry && now_ns - entry->since_ns < LATE_USER_ALONE_NS;
}

bool late_table_forbids(const struct late_table *table, uint32_t id, uid_t user, uint64_t now_ns)
{
	return late_table_has_task(table, (pid_t)id, now_ns) ||
	       (now_ns < table->users_until_ns && late_table_has_user(table, user, now_ns));
}
