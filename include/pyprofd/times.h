/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How long the programs that walk stacks took: one histogram per CPU and program.  A bucket is an
 * eighth of an octave, fine enough to tell 245 us from 262. */
#ifndef PYPROFD_TIMES_H
#define PYPROFD_TIMES_H

#include <linux/types.h>

/* X(id, the program's name).  Only runs that walk a stack are counted; others have no loop. */
#define PP_PROGRAMS(X)                                                                             \
	X(SAMPLE, "on_cpu_sample")                                                                 \
	X(SWITCH, "on_switch")                                                                     \
	X(WAKING, "on_waking")                                                                     \
	X(PROBE, "on_probe")                                                                       \
	X(PAGE, "on_page")

#define PP_ENUM_PROGRAM(id, name) PP_PROGRAM_##id,
enum pp_program { PP_PROGRAMS(PP_ENUM_PROGRAM) PP_PROGRAM_COUNT };

#define PP_TIME_SHIFT 8U   /* the first octave begins at 256 ns */
#define PP_TIME_OCTAVES 18U /* up to 67 ms */
#define PP_TIME_PARTS 8U   /* per octave; a power of two */
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
