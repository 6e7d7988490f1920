/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sampled allocations as both sides know them.  Bytes are chosen, not calls: each allocated byte
 * has the same small chance, one in PP_ALLOC_MEAN_BYTES, and a block is sampled when one of its
 * bytes is.  So a block of `size` bytes is sampled with the probability p = 1 - exp(-size / mean),
 * and counts as 1 / p blocks. */
#ifndef PYPROFD_ALLOC_H
#define PYPROFD_ALLOC_H

#include <pyprofd/sample.h>

#define PP_ALLOC_MEAN_SHIFT 19U
#define PP_ALLOC_MEAN_BYTES (1U << PP_ALLOC_MEAN_SHIFT)
/* A larger size is no size: the call fails. */
#define PP_ALLOC_SIZE_MAX (1ULL << 46)
/* From 16 means on all blocks are sampled but one in nine million. */
#define PP_ALLOC_SURE_BYTES (16ULL << PP_ALLOC_MEAN_SHIFT)

/* blocks[]: where a sampled block lies. */
struct pp_block_key {
	__u64 address;
	__u32 tgid;
	__u32 pad;
};
/* A sampled block that was not freed. */
struct pp_block {
	struct pp_count_key key; /* under which it was counted */
	__u64 objects, bytes;	 /* how many it stands for */
	__u64 since_ns;		 /* CLOCK_MONOTONIC */
};

/* debts[]: where free's probe is on for a part of the time, blocks are freed unseen.  A block that
 * is freed at the age L, in a time of length d in which both are seen, was seen by the chance of
 * 1 - L / d: for each byte that was seen so, L / (d - L) bytes were freed unseen.  So many of the
 * blocks with the same stack are not held any more. */
struct pp_debt_key {
	__u64 user_stack;
	__u32 tgid;
	__u32 pad;
};
#define PP_DEBTS_MAX 8192U

#define PP_ALLOC_ONE (1ULL << 31)
/* Returns 1 - exp(-size / mean) in units of 1 / 2^31, for sizes below PP_ALLOC_SURE_BYTES: a series
 * for at most one mean, and  1 - exp(-2x) = q (2 - q)  for q = 1 - exp(-x). */
static __inline__ __u64 pp_alloc_chance(__u64 size)
{
	__u64 x = size << (31 - PP_ALLOC_MEAN_SHIFT), q = PP_ALLOC_ONE;
	__u32 doublings = 0;

	for (__u32 i = 0; i < 4; i++)
		if (x > PP_ALLOC_ONE) {
			x >>= 1;
			doublings++;
		}
	for (__u32 i = 8; i > 1; i--)
		q = PP_ALLOC_ONE - (x / i * q >> 31);
	q = x * q >> 31;
	for (__u32 i = 0; i < 4; i++)
		if (i < doublings)
			q = q * (2 * PP_ALLOC_ONE - q) >> 31;
	return q;
}

/* Returns how many blocks one that was sampled stands for, in units of 1 / 65,536. */
static __inline__ __u64 pp_alloc_weight(__u64 size)
{
	__u64 chance;

	if (size >= PP_ALLOC_SURE_BYTES)
		return 1 << 16;
	chance = pp_alloc_chance(size);
	return chance ? (PP_ALLOC_ONE << 16) / chance : 0;
}

#endif
