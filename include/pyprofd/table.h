/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tables in which the kernel side counts.  There are two of each: one is open (pp_config.table
 * says which), the other is empty or is being emptied.  When an open table is half full, the agent
 * swaps all of them before the window ends; counters that find no row before that go to coarse
 * rows. */
#ifndef PYPROFD_TABLE_H
#define PYPROFD_TABLE_H

#include <linux/types.h>
#include <pyprofd/sample.h>

enum pp_table {
	/* counts_N: what happens on a CPU at a bounded rate, so that waits cannot fill it */
	PP_TABLE_SAMPLES,
	PP_TABLE_WAITS,	 /* waits_N: what threads do, as often as they want */
	PP_TABLE_WAKES,	 /* wakes_N: include/pyprofd/wait.h */
	PP_TABLE_COARSE, /* coarse_N: for what found no row in the other three */
	PP_TABLE_COUNT,
};

/* Returns the table that the rows of a kind are in. */
static __inline__ enum pp_table pp_table_of(__u32 kind)
{
	return kind == PP_KIND_CPU ? PP_TABLE_SAMPLES : PP_TABLE_WAITS;
}

/* fills[pp_fill_index()]: how full one of the two tables is, in a cache line of its own. */
struct pp_fill {
	__u32 rows;    /* added since the agent emptied it */
	__u32 half;    /* number of rows at which to report it; 0: never (agent) */
	__u32 is_told; /* it was reported, by PP_EVENT_TABLE */
	__u32 pad[13];
};
#define PP_FILL_COUNT (2U * PP_TABLE_COUNT)

static __inline__ __u32 pp_fill_index(__u32 table, __u32 number)
{
	return table * 2 + (number & 1);
}

/* Turns a key into that of the row shared by all stacks and threads of its process without a
 * row. */
static __inline__ void pp_count_key_coarsen(struct pp_count_key *key)
{
	key->user_stack = PP_STACK_OTHERS;
	key->kernel_stack = key->detail = 0;
	key->tid = 0;
	key->flags &= PP_COUNT_WAIT_BITS | PP_COUNT_GIL_HELD;
	key->euid = 0;
	__builtin_memset(key->comm, 0, sizeof(key->comm));
}

/* rest[]: rows shared by all processes of the machine, which always have room: one for each kind,
 * wait reason and state of the GIL.  The second half belongs to tables with an odd number. */
#define PP_REST_KINDS 32U
#define PP_REST_WAITS 32U
_Static_assert((unsigned int)PP_KIND_COUNT <= PP_REST_KINDS, "a row for each kind");
#define PP_REST_ROWS (PP_REST_KINDS * PP_REST_WAITS * 2U)

static __inline__ __u32 pp_rest_index(__u32 kind, __u32 flags, __u32 number)
{
	__u32 row = (kind % PP_REST_KINDS) * PP_REST_WAITS + pp_count_wait(flags) % PP_REST_WAITS;

	return (number & 1) * PP_REST_ROWS + row * 2 + !!(flags & PP_COUNT_GIL_HELD);
}

/* Returns the key of a row of rest[]. */
static __inline__ struct pp_count_key pp_rest_key(__u32 index)
{
	struct pp_count_key key = {
		.user_stack = PP_STACK_OTHERS,
		.flags = (index & 1 ? PP_COUNT_GIL_HELD : 0) | (index / 2 % PP_REST_WAITS)
								       << PP_COUNT_WAIT_SHIFT,
		.kind = index / 2 / PP_REST_WAITS % PP_REST_KINDS,
	};

	return key;
}

/* ---- times ----
 * How long the programs that walk stacks took: one histogram per CPU and program.  A bucket is an
 * eighth of an octave, fine enough to tell 245 us from 262. */

/* X(id, the program's name).  Only runs that walk a stack are counted; others have no loop. */
#define PP_PROGRAMS(X)                                                                             \
	X(SAMPLE, "on_cpu_sample")                                                                 \
	X(SWITCH, "on_switch")                                                                     \
	X(WAKING, "on_waking")                                                                     \
	X(PROBE, "on_probe")                                                                       \
	X(PAGE, "on_page")

#define PP_ENUM_PROGRAM(id, name) PP_PROGRAM_##id,
enum pp_program { PP_PROGRAMS(PP_ENUM_PROGRAM) PP_PROGRAM_COUNT };

#define PP_TIME_SHIFT 8U    /* the first octave begins at 256 ns */
#define PP_TIME_OCTAVES 18U /* up to 67 ms */
#define PP_TIME_PARTS 8U    /* per octave; a power of two */
#define PP_TIME_BUCKETS (PP_TIME_OCTAVES * PP_TIME_PARTS)

/* The first bucket also counts shorter times, the last one longer times. */
struct pp_times {
	__u64 count[PP_TIME_BUCKETS];
};

/* Returns the time at which a bucket ends. */
static inline __u64 pp_time_end_ns(__u32 bucket)
{
	__u64 part = bucket % PP_TIME_PARTS;

	return (PP_TIME_PARTS + part + 1) << (bucket / PP_TIME_PARTS + PP_TIME_SHIFT - 3);
}

#endif
