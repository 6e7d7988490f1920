/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/process_table.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/user_quota.h"
#include "discover/mapping_set.h"

/* A late mapping is also given to children, their children, and so on, down to this depth. */
#define MAX_LATE_GENERATIONS 8U
#define ORPHANS 128U
/* A start that /proc tells is too early by a tick, or by the time that the host was suspended. */
#define OVERTAKEN_NS (60 * NS_PER_SEC)

struct entry {
	struct process process; /* must be first: a struct process * of ours is a struct entry * */
	struct pp_process_id parent;
	uint64_t context_ns;   /* the address space is at least this new; 0: not known */
	uint64_t read_ns;      /* when /proc/PID/maps was read; 0: never */
	bool is_fork;	       /* it is the program of its parent: an exec makes another entry */
	uint64_t fork_ns;      /* 0: it did not come from a fork, or executed since then */
	uint64_t last_fork_ns; /* when it last forked a child */
	bool wants_read;       /* mappings may be missing */
	struct entry *older;   /* ended, with the same tgid */
	UT_hash_handle by_id;
	UT_hash_handle by_tgid; /* only the newest with a tgid */
};

/* A mapping of a process that is not in the table (yet). */
struct orphan {
	uint32_t tgid;
	uint64_t time_ns;
};

struct process_table {
	struct entry *by_id, *by_tgid;
	struct orphan orphan[ORPHANS]; /* the most recent ones */
	uint32_t orphan_count;	       /* number ever; wraps */
	struct intern *strings;
	size_t string_limit; /* bytes */
	size_t live_count;
	void (*on_end)(void *context, struct process *process);
	void *context; /* of on_end */
	struct user_quota mapping_room;
	struct process_table_stats stats;
};

static struct entry *find(const struct process_table *table, struct pp_process_id id)
{
	struct entry *entry;

	HASH_FIND(by_id, table->by_id, &id, sizeof(id), entry);
	return entry;
}

static struct entry *find_newest(const struct process_table *table, uint32_t tgid)
{
	struct entry *entry;

	HASH_FIND(by_tgid, table->by_tgid, &tgid, sizeof(tgid), entry);
	return entry;
}

int process_table_new(struct process_table **ret_table)
{
	OWNED(process_table) struct process_table *table = calloc(1, sizeof(*table));
	int err;

	if (!table)
		return -ENOMEM;
	table->string_limit = PROCESS_TABLE_STRING_BYTES;
	table->mapping_room.total = PROCESS_TABLE_MAPPING_BYTES;
	err = intern_new(&table->strings);
	if (err)
		return err;
	*ret_table = TAKE(table);
	return 0;
}

static void entry_free(struct entry *entry)
{
	mapping_set_release(&entry->process);
	free(entry);
}

void process_table_free(struct process_table *table)
{
	struct entry *entry, *next;

	if (!table)
		return;
	HASH_CLEAR(by_tgid, table->by_tgid);
	HASH_ITER (by_id, table->by_id, entry, next) {
		HASH_DELETE(by_id, table->by_id, entry);
		entry_free(entry);
	}
	intern_free(table->strings);
	user_quota_release(&table->mapping_room);
	free(table);
}

int process_table_intern(struct process_table *table, const char *string, const char **ret_string)
{
	uint32_t id;
	int err;

	err = intern_string(table->strings, string, &id);
	if (err)
		return err;
	*ret_string = intern_get(table->strings, id, NULL);
	return 0;
}

/* Replaces *string by its copy in `strings`; cannot fail when the copies exist already. */
static int move_string(struct intern *strings, const char **string, bool store)
{
	uint32_t id;
	int err;

	err = intern_string(strings, *string, &id);
	if (!err && store)
		*string = intern_get(strings, id, NULL);
	return err;
}

static int move_strings(struct process_table *table, struct intern *strings, bool store,
			uint32_t mark)
{
	int err = 0;

	for (struct entry *entry = table->by_id; entry && !err; entry = entry->by_id.next) {
		struct process *process = &entry->process;
		uint32_t *seen = mapping_set_mark(process);

		err = move_string(strings, &process->cgroup, store);
		if (!err)
			err = move_string(strings, &process->container_id, store);
		if (!seen || *seen == mark)
			continue;
		*seen = mark;
		for (size_t i = 0; i < process->mapping_count && !err; i++)
			err = move_string(strings, &process->mapping[i].path, store);
	}
	return err;
}

/* Strings are never freed singly: from time to time those in use move to a new table.  This takes
 * two passes, so that running out of memory changes nothing. */
static void rebuild_strings(struct process_table *table)
{
	OWNED(intern) struct intern *strings = NULL;
	const uint32_t mark = (uint32_t)table->stats.string_rebuilds * 2 + 1;
	struct intern *old;
	size_t used;

	if (intern_bytes_used(table->strings) <= table->string_limit || intern_new(&strings))
		return;
	table->stats.string_rebuilds++;
	if (move_strings(table, strings, false, mark))
		return;
	move_strings(table, strings, true, mark + 1);
	old = table->strings;
	table->strings = TAKE(strings);
	intern_free(old);
	used = intern_bytes_used(table->strings);
	table->string_limit =
		used * 2 > PROCESS_TABLE_STRING_BYTES ? used * 2 : PROCESS_TABLE_STRING_BYTES;
}

/* Machines that start thousands of programs a second keep as many that have ended. */
static void end(struct process_table *table, struct entry *entry, uint64_t time_ns)
{
	const bool was_alive = !entry->process.exit_ns;

	entry->process.exit_ns = time_ns ? time_ns : 1;
	mapping_set_trim(&entry->process);
	table->live_count -= was_alive;
	if (was_alive && table->on_end)
		table->on_end(table->context, &entry->process);
}

void process_table_on_end(struct process_table *table,
			  void (*on_end)(void *context, struct process *process), void *context)
{
	table->on_end = on_end;
	table->context = context;
}

/* Returns whether another program of the process is known already that began later: its first
 * stack, or a look at /proc, may come before the events of its fork and its exec.  The kernel side
 * makes generations of times (bpf/watch_process.bpf.c), which wrap around in 73 minutes. */
static bool is_overtaken(const struct entry *entry, const struct entry *newest)
{
	const int32_t later =
		(int32_t)(newest->process.id.generation - entry->process.id.generation);

	return newest->process.id.generation && entry->process.id.generation && later > 0 &&
	       newest->process.start_ns + OVERTAKEN_NS > entry->process.start_ns;
}

/* Makes the entry the newest with its tgid, but one that was overtaken has ended. */
static int link_tgid(struct process_table *table, struct entry *entry)
{
	struct entry *older = find_newest(table, entry->process.id.tgid);

	if (older && is_overtaken(entry, older)) {
		entry->older = older->older;
		older->older = entry;
		end(table, entry,
		    older->process.start_ns > entry->process.start_ns ? older->process.start_ns
								      : entry->process.start_ns);
		return 0;
	}
	if (older)
		HASH_DELETE(by_tgid, table->by_tgid, older);
	HASH_ADD(by_tgid, table->by_tgid, process.id.tgid, sizeof(entry->process.id.tgid), entry);
	if (!entry->by_tgid.tbl)
		return -ENOMEM;
	entry->older = older;
	if (older && !older->process.exit_ns)
		end(table, older, entry->process.start_ns);
	return 0;
}

static bool has_orphan(const struct process_table *table, uint32_t tgid, uint64_t start_ns)
{
	for (size_t i = 0; i < ORPHANS; i++)
		if (table->orphan[i].tgid == tgid && table->orphan[i].time_ns >= start_ns &&
		    table->orphan[i].time_ns)
			return true;
	return false;
}

static int refuse_orphan(struct process_table *table, uint32_t tgid, uint64_t time_ns)
{
	table->orphan[table->orphan_count++ % ORPHANS] =
		(struct orphan){.tgid = tgid, .time_ns = time_ns};
	return -ESRCH;
}

static int entry_new(struct process_table *table, struct pp_process_id id, uint64_t start_ns,
		     struct entry **ret_entry)
{
	const char *empty = intern_get(table->strings, 0, NULL);
	OWNED_MEM struct entry *entry = NULL;
	int err;

	if (find(table, id))
		return -EEXIST;
	if (HASH_CNT(by_id, table->by_id) >= PROCESS_TABLE_MAX) {
		table->stats.processes_refused++;
		return -ENOSPC;
	}
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->process = (struct process){.id = id,
					  .inner_pid = id.tgid,
					  .start_ns = start_ns,
					  .mapping_room = &table->mapping_room,
					  .cgroup = empty,
					  .container_id = empty};
	entry->wants_read = has_orphan(table, id.tgid, start_ns);
	HASH_ADD(by_id, table->by_id, process.id, sizeof(id), entry);
	if (!entry->by_id.tbl)
		return -ENOMEM;
	table->live_count++;
	err = link_tgid(table, entry);
	if (err) {
		table->live_count--;
		HASH_DELETE(by_id, table->by_id, entry);
		return err;
	}
	*ret_entry = TAKE(entry);
	return 0;
}

/* Counts mappings that found no room.  Returns the error. */
static int refuse_mapping(struct process_table *table, int err)
{
	table->stats.mappings_refused += err == -ENOSPC;
	return err;
}

static void copy_names(struct process *to, const struct process *from)
{
	to->uid = from->uid;
	to->user = from->user;
	to->is_user_known = from->is_user_known;
	to->cgroup = from->cgroup;
	to->container_id = from->container_id;
	memcpy(to->comm, from->comm, sizeof(to->comm));
}

int process_table_add(struct process_table *table, struct pp_process_id id, uint32_t ppid,
		      uint64_t start_ns, struct process **ret_process)
{
	struct entry *entry;
	int err;

	err = entry_new(table, id, start_ns, &entry);
	if (err)
		return err;
	entry->process.ppid = ppid;
	entry->wants_read = true;
	if (ret_process)
		*ret_process = &entry->process;
	return 0;
}

int process_table_fork(struct process_table *table, struct pp_process_id parent,
		       struct pp_process_id child, uint64_t time_ns)
{
	struct entry *entry, *from;
	int err;

	err = entry_new(table, child, time_ns, &entry);
	if (err)
		return err;
	entry->process.ppid = parent.tgid;
	entry->parent = parent;
	entry->is_fork = true;
	entry->fork_ns = time_ns;
	entry->context_ns = time_ns;
	from = find(table, parent);
	if (!from) {
		entry->wants_read = true;
		return 0;
	}
	if (from->last_fork_ns < time_ns)
		from->last_fork_ns = time_ns;
	copy_names(&entry->process, &from->process);
	/* Only /proc knows the child's number in its pid namespace. */
	entry->process.inner_pid = from->process.inner_pid == parent.tgid ? child.tgid : 0;
	entry->read_ns = from->read_ns < time_ns ? from->read_ns : time_ns;
	entry->wants_read |= from->wants_read;
	return refuse_mapping(table, mapping_set_share(&entry->process, &from->process, time_ns));
}

int process_table_exec(struct process_table *table, struct pp_process_id from,
		       struct pp_process_id to, uint64_t time_ns)
{
	struct entry *old = find(table, from);
	uint64_t cut_ns = time_ns;
	struct entry *entry;
	int err;

	if (old && (!old->process.exit_ns || old->process.exit_ns > time_ns))
		end(table, old, time_ns);
	err = entry_new(table, to, time_ns, &entry);
	if (err)
		return err;
	if (!old) {
		entry->wants_read = true;
		return 0;
	}
	copy_names(&entry->process, &old->process);
	entry->process.ppid = old->process.ppid;
	entry->process.inner_pid = old->process.inner_pid;
	entry->parent = old->parent;
	entry->context_ns = old->context_ns;
	entry->read_ns = old->read_ns;
	/* The address space was replaced since the old program began: by this exec. */
	if (old->context_ns > old->process.start_ns)
		cut_ns = old->context_ns;
	err = mapping_set_share(&entry->process, &old->process, UINT64_MAX);
	if (err)
		return err;
	err = refuse_mapping(table,
			     mapping_set_drop_older(&entry->process, cut_ns, entry->read_ns));
	entry->wants_read |= !entry->process.mapping_count;
	return err;
}

int process_table_exit(struct process_table *table, struct pp_process_id id, uint64_t time_ns)
{
	struct entry *entry = find(table, id);

	if (!entry)
		return -ESRCH;
	if (!entry->process.exit_ns)
		end(table, entry, time_ns);
	return 0;
}

int process_table_apply(struct process_table *table, const struct pp_event *event)
{
	struct entry *entry;
	int err;

	switch (event->type) {
	case PP_EVENT_FORK:
		err = process_table_fork(table, event->parent, event->id, event->time_ns);
		break;
	case PP_EVENT_EXEC:
		err = process_table_exec(table, event->parent, event->id, event->time_ns);
		break;
	case PP_EVENT_UNKNOWN:
		err = process_table_add(table, event->id, 0, event->time_ns, NULL);
		break;
	case PP_EVENT_EXIT:
		return process_table_exit(table, event->id, event->time_ns);
	default:
		return -EINVAL;
	}
	entry = find(table, event->id);
	/* A stack may have made it known before, without a name. */
	if (entry && (err != -EEXIST || !entry->process.comm[0])) {
		memcpy(entry->process.comm, event->comm, PP_COMM_BYTES);
		entry->process.comm[PP_COMM_BYTES - 1] = '\0';
	}
	return err;
}

int process_table_new_context(struct process_table *table, uint32_t tgid, uint64_t time_ns)
{
	struct entry *entry = find_newest(table, tgid);

	if (!entry || entry->process.exit_ns)
		return refuse_orphan(table, tgid, time_ns);
	if (time_ns <= entry->context_ns)
		return 0;
	entry->context_ns = time_ns;
	entry->fork_ns = 0;
	return refuse_mapping(table,
			      mapping_set_drop_older(&entry->process, time_ns, entry->read_ns));
}

bool process_table_forked_from(const struct process *process, struct pp_process_id *ret_parent)
{
	const struct entry *entry = (const struct entry *)process;

	*ret_parent = entry->parent;
	return entry->is_fork;
}

static int map_one(struct process_table *table, struct entry *entry, const struct mapping *mapping)
{
	if (mapping->time_ns &&
	    (mapping->time_ns < entry->context_ns || mapping->time_ns < entry->read_ns))
		return 0;
	return refuse_mapping(table, mapping_set_put(&entry->process, mapping));
}

/* Gives a late mapping to children: its record may come after that of a fork that happened
 * later. */
static int map_late(struct process_table *table, const struct entry *parent,
		    const struct mapping *mapping, unsigned depth)
{
	int err = 0;

	if (!mapping->time_ns || mapping->time_ns > parent->last_fork_ns ||
	    depth == MAX_LATE_GENERATIONS)
		return 0;
	for (struct entry *entry = table->by_id; entry && !err; entry = entry->by_id.next) {
		if (entry->parent.tgid != parent->process.id.tgid ||
		    entry->parent.generation != parent->process.id.generation ||
		    entry->fork_ns < mapping->time_ns || mapping->time_ns < entry->read_ns)
			continue;
		err = refuse_mapping(table, mapping_set_put(&entry->process, mapping));
		if (!err)
			err = map_late(table, entry, mapping, depth + 1);
	}
	return err == -ENOSPC ? 0 : err;
}

int process_table_map(struct process_table *table, uint32_t tgid, const struct mapping *mapping)
{
	struct entry *entry = find_newest(table, tgid);
	struct mapping copy = *mapping;
	int err;

	if (!entry || entry->process.exit_ns)
		return refuse_orphan(table, tgid, mapping->time_ns);
	err = process_table_intern(table, mapping->path, &copy.path);
	if (err)
		return err;
	err = map_one(table, entry, &copy);
	if (!err)
		err = map_late(table, entry, &copy, 0);
	rebuild_strings(table);
	return err;
}

struct reading {
	struct process_table *table;
	struct process fresh;
};

/* Goes on without one that finds no room. */
static int reading_put(struct reading *reading, const struct mapping *mapping)
{
	const int err = refuse_mapping(reading->table, mapping_set_put(&reading->fresh, mapping));

	return err == -ENOSPC ? 0 : err;
}

static int reading_add(void *context, const struct mapping *mapping)
{
	struct reading *reading = context;
	struct mapping copy = *mapping;
	int err;

	err = process_table_intern(reading->table, mapping->path, &copy.path);
	if (err)
		return err;
	return reading_put(reading, &copy);
}

static bool is_same(const struct mapping *a, const struct mapping *b)
{
	return a->start == b->start && a->end == b->end && a->offset == b->offset &&
	       !strcmp(a->path, b->path) && file_key_equal(&a->key, &b->key);
}

/* Copies what attach knows of mappings that have not changed. */
static void carry_over(struct process *fresh, const struct process *old)
{
	bool is_changed = fresh->mapping_count != old->mapping_count;
	size_t at = 0;

	for (size_t i = 0; i < fresh->mapping_count; i++) {
		while (at < old->mapping_count && old->mapping[at].start < fresh->mapping[i].start)
			at++;
		if (at == old->mapping_count || !is_same(&fresh->mapping[i], &old->mapping[at])) {
			is_changed = true;
			continue;
		}
		fresh->mapping[i].key = old->mapping[at].key;
		fresh->mapping[i].file = old->mapping[at].file;
		fresh->mapping[i].bias = old->mapping[at].bias;
	}
	fresh->mappings_changed = is_changed;
}

int process_table_read_maps(struct process_table *table, struct process *process,
			    struct proc_maps_summary *ret_summary)
{
	struct entry *entry = (struct entry *)process;
	struct reading reading = {.table = table,
				  .fresh = {.mapping_room = &table->mapping_room,
					    .user = process->user,
					    .is_user_known = process->is_user_known}};
	struct proc_maps_summary summary = {0};
	const uint64_t now_ns = mono_ns();
	int err;

	if (process->exit_ns)
		return -ESRCH;
	err = proc_maps_read(process->id.tgid, reading_add, &reading, &summary);
	table->stats.bad_lines += summary.bad_line_count;
	if (!err && ret_summary)
		*ret_summary = summary;
	/* It is gone or a kernel thread, so there is no second try. */
	if (!err || err == -ESRCH)
		entry->wants_read = false;
	for (size_t i = 0; i < process->mapping_count && !err; i++)
		if (process->mapping[i].time_ns > now_ns)
			err = reading_put(&reading, &process->mapping[i]);
	if (err) {
		mapping_set_release(&reading.fresh);
		return err;
	}
	carry_over(&reading.fresh, process);
	mapping_set_release(process);
	process->mapping = reading.fresh.mapping;
	process->mapping_count = reading.fresh.mapping_count;
	process->mapping_capacity = reading.fresh.mapping_capacity;
	process->mappings_changed |= reading.fresh.mappings_changed;
	entry->read_ns = now_ns;
	rebuild_strings(table);
	return 0;
}

bool process_table_wants_read(const struct process *process)
{
	return !process->exit_ns && ((const struct entry *)process)->wants_read;
}

void process_table_lost(struct process *process)
{
	((struct entry *)process)->wants_read = true;
}

struct process *process_table_find(const struct process_table *table, struct pp_process_id id)
{
	struct entry *entry = find(table, id);

	return entry ? &entry->process : NULL;
}

struct process *process_table_find_tgid(const struct process_table *table, uint32_t tgid)
{
	struct entry *entry = find_newest(table, tgid);

	return entry ? &entry->process : NULL;
}

struct process *process_table_find_or_tgid(const struct process_table *table,
					   struct pp_process_id id)
{
	struct process *process = process_table_find(table, id);

	return process ? process : process_table_find_tgid(table, id.tgid);
}

struct process *process_table_next(const struct process_table *table, const struct process *process)
{
	const struct entry *entry = (const struct entry *)process;
	struct entry *next = entry ? entry->by_id.next : table->by_id;

	return next ? &next->process : NULL;
}

size_t process_table_count(const struct process_table *table)
{
	return HASH_CNT(by_id, table->by_id);
}

size_t process_table_live_count(const struct process_table *table)
{
	return table->live_count;
}

void process_table_get_stats(const struct process_table *table,
			     struct process_table_stats *ret_stats)
{
	*ret_stats = table->stats;
}

struct user_quota *process_table_mapping_quota(struct process_table *table)
{
	return &table->mapping_room;
}

static void unlink_tgid(struct process_table *table, struct entry *entry)
{
	struct entry *newest = find_newest(table, entry->process.id.tgid);

	if (newest == entry) {
		HASH_DELETE(by_tgid, table->by_tgid, entry);
		if (entry->older)
			HASH_ADD(by_tgid, table->by_tgid, process.id.tgid,
				 sizeof(entry->process.id.tgid), entry->older);
		return;
	}
	while (newest && newest->older != entry)
		newest = newest->older;
	if (newest)
		newest->older = entry->older;
}

void process_table_expire(struct process_table *table, uint64_t before_ns,
			  void (*release)(void *context, struct process *process), void *context)
{
	struct entry *entry, *next;

	HASH_ITER (by_id, table->by_id, entry, next) {
		if (!entry->process.exit_ns || entry->process.exit_ns >= before_ns)
			continue;
		if (release)
			release(context, &entry->process);
		unlink_tgid(table, entry);
		HASH_DELETE(by_id, table->by_id, entry);
		entry_free(entry);
	}
}
