/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The counters of the open window: include/pyprofd/table.h.  `number` is that of its open
 * tables. */
#ifndef BPF_LIB_COUNT_H
#define BPF_LIB_COUNT_H

#include "lib/maps.bpf.h"

/* ---- what was sent through the ring, and the key under which a walk is counted ---- */

static __always_inline bool already_sent(__u64 hash, __u32 epoch)
{
	__u32 *sent_epoch = bpf_map_lookup_elem(&sent, &hash);

	return sent_epoch && *sent_epoch == epoch;
}

static __always_inline void remember_sent(__u64 hash, __u32 epoch)
{
	/* This may fail when the table is locked: then the stack is sent once more. */
	bpf_map_update_elem(&sent, &hash, &epoch, BPF_ANY);
}

/* Copies what the current thread is called now: some are renamed for each request. */
static __always_inline void take_comm(char *to)
{
	const __u64 *comm;

	if (!task_fields_can_be_loaded()) {
		bpf_get_current_comm(to, PP_COMM_BYTES);
		return;
	}
	comm = (const void *)((struct task_struct *)bpf_get_current_task_btf())->comm;
	((__u64 *)to)[0] = comm[0];
	((__u64 *)to)[1] = comm[1];
}

static __always_inline void fill_count_key(const struct pp_walk *w, struct pp_count_key *key)
{
	key->user_stack = w->has_user ? w->hash : 0;
	key->kernel_stack = w->kernel_hash;
	key->id = w->id;
	key->tid = w->tid;
	key->kind = w->kind;
	key->detail = w->detail;
	key->euid = w->euid;
	take_comm(key->comm);
	key->flags = w->count_flags | w->stop << PP_COUNT_STOP_SHIFT |
		     w->py_stop << PP_COUNT_PY_STOP_SHIFT;
}

/* ---- rows ---- */

/* Returns the number of the open tables. */
static __always_inline __u32 table_number(const struct pp_config *cfg)
{
	return *(volatile __u32 *)&cfg->table[*(volatile __u32 *)&cfg->window & 1];
}

/* row_NAME(): adds to the row of a key in one of two tables: 0; makes it: 1; finds no room: what
 * the kernel said, below 0. */
#define DEFINE_ROW_ADD(name, key_type)                                                             \
	static __always_inline long row_##name(const key_type *key, const struct pp_count *more,   \
					       __u32 number)                                       \
	{                                                                                          \
		struct pp_count *count = number & 1 ? bpf_map_lookup_elem(&name##_1, key)          \
						    : bpf_map_lookup_elem(&name##_0, key);         \
		long err;                                                                          \
                                                                                                   \
		if (!count) {                                                                      \
			err = number & 1 ? bpf_map_update_elem(&name##_1, key, more, BPF_NOEXIST)  \
					 : bpf_map_update_elem(&name##_0, key, more, BPF_NOEXIST); \
			if (!err)                                                                  \
				return 1;                                                          \
			count = number & 1 ? bpf_map_lookup_elem(&name##_1, key)                   \
					   : bpf_map_lookup_elem(&name##_0, key);                  \
			if (!count)                                                                \
				return err;                                                        \
		}                                                                                  \
		count_more(count, more);                                                           \
		return 0;                                                                          \
	}

/* Adding a constant 0 would become an atomic OR, which 5.10 does not know. */
static __always_inline void count_more(struct pp_count *count, const struct pp_count *more)
{
	if (more->samples)
		__sync_fetch_and_add(&count->samples, more->samples);
	__sync_fetch_and_add(&count->weight, more->weight);
	if (more->squares)
		__sync_fetch_and_add(&count->squares, more->squares);
}

DEFINE_ROW_ADD(counts, struct pp_count_key)
DEFINE_ROW_ADD(waits, struct pp_count_key)
DEFINE_ROW_ADD(coarse, struct pp_count_key)

static __noinline int table_tell(void)
{
	struct pp_event event = {.type = PP_EVENT_TABLE, .time_ns = bpf_ktime_get_ns()};

	/* When the ring has no room, the agent finds out at its next tick. */
	bpf_ringbuf_output(&events, &event, sizeof(event), BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* Counts a new row.  Whoever sees first that the table is half full tells the agent, once. */
static __always_inline void table_grows(enum pp_table table, __u32 number)
{
	__u32 index = pp_fill_index(table, number);
	struct pp_fill *fill = bpf_map_lookup_elem(&fills, &index);

	if (!fill)
		return;
	__sync_fetch_and_add(&fill->rows, 1);
	if (!fill->half || *(volatile __u32 *)&fill->rows < fill->half || fill->is_told)
		return;
	fill->is_told = 1;
	table_tell();
}

static __always_inline enum pp_loss coarse_loss(__u32 kind, long err)
{
	if (kind == PP_KIND_WAKE)
		return PP_LOSS_WAKES_FULL;
	if (err != -7 /* E2BIG */)
		return PP_LOSS_COUNTS_BUSY;
	return kind == PP_KIND_CPU ? PP_LOSS_COUNTS_FULL : PP_LOSS_WAITS_FULL;
}

/* Counts an event whose row could not be made (`err` says why).  Its stack is lost then, its amount
 * is not. */
static __noinline int count_coarse(const struct pp_count_key *key, const struct pp_count *more,
				   long err, __u32 number)
{
	struct pp_count_key coarse = *key;
	__u32 index = pp_rest_index(key->kind, key->flags, number);
	struct pp_count *rest_row;

	count_loss(coarse_loss(key->kind, err));
	pp_count_key_coarsen(&coarse);
	if (row_coarse(&coarse, more, number) >= 0)
		return 0;
	count_loss(PP_LOSS_COARSE_FULL);
	rest_row = bpf_map_lookup_elem(&rest, &index);
	if (rest_row)
		count_more(rest_row, more);
	return 0;
}

/* Returns 1: the row is new; 0: it was there; below 0: there was no room, which is counted. */
static __always_inline long count_add_more(const struct pp_count_key *key,
					   const struct pp_count *more, __u32 number)
{
	enum pp_table table = pp_table_of(key->kind);
	long made = table == PP_TABLE_SAMPLES ? row_counts(key, more, number)
					      : row_waits(key, more, number);

	if (made > 0)
		table_grows(table, number);
	else if (made < 0)
		count_coarse(key, more, made, number);
	return made;
}

/* Returns what count_add_more() does. */
static __always_inline long count_add(const struct pp_count_key *key, __u64 samples, __u64 weight,
				      __u32 number)
{
	const struct pp_count more = {.samples = samples, .weight = weight};

	return count_add_more(key, &more, number);
}

#endif
