/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/gpu_states.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "drain/table.h"

struct entry {
	struct pp_process_id id;
	uint64_t before_ns[PP_GPU_WAIT]; /* at the last reading */
	struct gpu_state_times open;	 /* since the last take */
	struct gpu_state_times part;	 /* of the last reading */
	uint32_t user;
	bool has_ended, is_there; /* it has a row */
	UT_hash_handle hh;
};

struct gpu_states {
	struct entry *entry; /* owned, by id */
	struct gpu_state_times others;
};

int gpu_states_new(struct gpu_states **ret_states)
{
	struct gpu_states *states = calloc(1, sizeof(*states));

	if (!states)
		return -ENOMEM;
	*ret_states = states;
	return 0;
}

void gpu_states_free(struct gpu_states *states)
{
	if (!states)
		return;
	HASH_DROP_ALL(states->entry);
	free(states);
}

/* ---- reading ---- */

struct reading {
	struct gpu_states *states;
	const struct gpu_tables *tables;
	uint64_t now_ns;
};

static int find_entry(struct gpu_states *states, struct pp_process_id id, struct entry **ret_entry)
{
	struct entry *entry = HASH_GET(states->entry, id, id);

	if (!entry)
		return -ENOMEM;
	entry->open.id = entry->part.id = id;
	*ret_entry = entry;
	return 0;
}

/* The kernel side writes while we read: a sum that goes back is taken at its next reading. */
static uint64_t grown(uint64_t *before, uint64_t now)
{
	const uint64_t by = now > *before ? now - *before : 0;

	*before += by;
	return by;
}

static void add_state(struct entry *entry, const struct pp_gpu_process *process, uint64_t now_ns)
{
	const uint64_t since_ns = process->since >> PP_GPU_SINCE_SHIFT;
	const uint64_t state = process->since & (PP_GPU_COUNT - 1);

	for (uint64_t i = 0; i < PP_GPU_WAIT; i++) {
		uint64_t ns = process->total_ns[i];

		if (i == state && now_ns > since_ns)
			ns += now_ns - since_ns;
		entry->part.ns[i] = grown(&entry->before_ns[i], ns);
		entry->open.ns[i] += entry->part.ns[i];
	}
}

static int on_process(void *context, const void *key, const void *value)
{
	const struct reading *reading = context;
	const struct pp_gpu_process *process = value;
	const struct pp_process_id id = {.tgid = *(const uint32_t *)key,
					 .generation = process->generation};
	struct entry *entry;
	int err = find_entry(reading->states, id, &entry);

	if (err)
		return err;
	/* Asked first: an ended one has its last sums in the row. */
	entry->has_ended = !reading->tables->is_alive(reading->tables->context, id);
	entry->user = process->user;
	entry->is_there = true;
	add_state(entry, process, reading->now_ns);
	return 0;
}

/* ---- what ended processes have left ---- */

static int on_stream(void *context, const void *key, const void *value)
{
	const struct gpu_tables *tables = context;

	(void)value;
	if (!tables->is_alive(tables->context, *(const struct pp_process_id *)key))
		(void)table_remove(tables->streams, key);
	return 0;
}

static int on_whole(void *context, const void *key, const void *value)
{
	const struct gpu_tables *tables = context;
	const struct pp_process_id id = {.tgid = *(const uint32_t *)key,
					 .generation = *(const uint32_t *)value};

	if (!tables->is_alive(tables->context, id))
		(void)table_remove(tables->wholes, key);
	return 0;
}

static void add_to_others(struct gpu_state_times *others, const struct gpu_state_times *times)
{
	others->others++;
	for (size_t i = 0; i < PP_GPU_WAIT; i++)
		others->ns[i] += times->ns[i];
}

static void remove_process(const struct gpu_tables *tables, struct entry *entry)
{
	if (!entry->is_there)
		return;
	entry->is_there = false;
	if (!table_remove(tables->processes, &entry->id.tgid))
		user_shares_give(&tables->shares, entry->user,
				 offsetof(struct pp_user_share, gpu_processes));
}

/* Removes the rows of ended processes; those that have no room here until the next take join the
 * others. */
static void remove_ended(struct gpu_states *states, const struct gpu_tables *tables)
{
	struct entry *entry, *next;

	HASH_ITER (hh, states->entry, entry, next) {
		if (!entry->has_ended)
			continue;
		remove_process(tables, entry);
		if (HASH_COUNT(states->entry) <= GPU_STATES_MAX)
			continue;
		add_to_others(&states->others, &entry->open);
		HASH_DROP(states->entry, entry);
	}
}

int gpu_states_collect(struct gpu_states *states, const struct gpu_tables *tables, uint64_t now_ns)
{
	struct reading reading = {.states = states, .tables = tables, .now_ns = now_ns};
	struct gpu_tables own = *tables;
	int err;

	for (struct entry *entry = states->entry; entry; entry = entry->hh.next)
		memset(entry->part.ns, 0, sizeof(entry->part.ns));
	err = table_read(tables->processes, sizeof(uint32_t), sizeof(struct pp_gpu_process),
			 on_process, &reading);
	if (err)
		return err;
	remove_ended(states, tables);
	err = table_read(tables->streams, sizeof(struct pp_process_id), tables->stream_bytes,
			 on_stream, &own);
	return err ? err
		   : table_read(tables->wholes, sizeof(uint32_t), sizeof(uint32_t), on_whole, &own);
}

/* ---- what was collected ---- */

static bool has_any(const struct gpu_state_times *times)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < PP_GPU_WAIT; i++)
		ns |= times->ns[i];
	return ns;
}

int gpu_states_part(const struct gpu_states *states,
		    int (*callback)(void *context, const struct gpu_state_times *times),
		    void *context)
{
	int err = 0;

	for (const struct entry *entry = states->entry; entry && !err; entry = entry->hh.next)
		if (has_any(&entry->part))
			err = callback(context, &entry->part);
	return err;
}

int gpu_states_take(struct gpu_states *states,
		    int (*callback)(void *context, const struct gpu_state_times *times),
		    void *context)
{
	struct gpu_state_times others = states->others;
	struct entry *entry, *next;
	size_t count = 0;
	int err = 0;

	states->others = (struct gpu_state_times){};
	HASH_ITER (hh, states->entry, entry, next) {
		if (has_any(&entry->open) && count++ >= GPU_STATES_MAX)
			add_to_others(&others, &entry->open);
		else if (!err && has_any(&entry->open))
			err = callback(context, &entry->open);
		entry->open = (struct gpu_state_times){.id = entry->id};
		if (entry->has_ended)
			HASH_DROP(states->entry, entry);
	}
	return !err && others.others ? callback(context, &others) : err;
}
