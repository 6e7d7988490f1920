/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random numbers with a distribution. */
#ifndef BPF_LIB_CHANCE_H
#define BPF_LIB_CHANCE_H

#include "lib/kernel.bpf.h"

/* Returns -log2(x / 2^32) in units of 1 / 65,536, with an error of two thousandths.  The slope,
 * which determines chances, is right to 2 % within an octave and exact over a whole one. */
static __always_inline __u64 minus_log2(__u32 x)
{
	__u64 whole = 1, f;

	x |= 1;
	for (__u32 bits = 16; bits; bits /= 2) {
		if (x >> (32 - bits))
			continue;
		x <<= bits;
		whole += bits;
	}
	f = (x << 1) >> 16;
	return (whole << 16) - (f * (93382 - (f * (38489 - (f * 10643 >> 16)) >> 16)) >> 16);
}

/* Draws from the exponential distribution with mean 1, in units of 1 / 65,536. */
static __always_inline __u64 draw_exponential(void)
{
	return minus_log2(bpf_get_prandom_u32()) * 45426 >> 16; /* ln 2 */
}

#endif
