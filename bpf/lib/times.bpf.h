/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Measures how long the BPF programs took. */
#ifndef BPF_LIB_TIMES_H
#define BPF_LIB_TIMES_H

#include "lib/frames.bpf.h"

/* The bucket is computed without a loop or a search. */
static __always_inline __u32 time_bucket(__u64 ns)
{
	__u64 octaves = ns >> PP_TIME_SHIFT;
	__u32 octave = 0;

	if (!octaves)
		return 0;
	if (octaves >> PP_TIME_OCTAVES)
		return PP_TIME_BUCKETS - 1;
	if (octaves >> 16) {
		octave += 16;
		octaves >>= 16;
	}
	if (octaves >> 8) {
		octave += 8;
		octaves >>= 8;
	}
	if (octaves >> 4) {
		octave += 4;
		octaves >>= 4;
	}
	if (octaves >> 2) {
		octave += 2;
		octaves >>= 2;
	}
	octave += octaves >> 1;
	return octave * PP_TIME_PARTS +
	       (ns >> (octave + PP_TIME_SHIFT - 3) & (PP_TIME_PARTS - 1));
}

/* Counts a program's time.  A program may interrupt itself (NMI): then one of the two may not be
 * counted. */
static __always_inline void times_add(enum pp_program program, __u64 ns)
{
	__u32 key = program;
	__u64 bucket = time_bucket(ns);
	struct pp_times *of = bpf_map_lookup_elem(&times, &key);

	BARRIER(bucket); /* 5.10 does not follow the 32 bits that it was made of */
	if (of && bucket < PP_TIME_BUCKETS)
		of->count[bucket]++;
}

#endif
