/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The counters of the open window. */
#ifndef BPF_LIB_COUNT_H
#define BPF_LIB_COUNT_H

#include "lib/maps.bpf.h"

static __always_inline void count_add(const struct pp_count_key *key, __u64 samples, __u64 weight,
				      __u32 window)
{
	struct pp_count first = {.samples = samples, .weight = weight};
	struct pp_count *count;
	long err;

	count = window & 1 ? bpf_map_lookup_elem(&counts_1, key) :
			     bpf_map_lookup_elem(&counts_0, key);
	if (!count) {
		err = window & 1 ? bpf_map_update_elem(&counts_1, key, &first, BPF_NOEXIST) :
				   bpf_map_update_elem(&counts_0, key, &first, BPF_NOEXIST);
		if (!err)
			return;
		count = window & 1 ? bpf_map_lookup_elem(&counts_1, key) :
				     bpf_map_lookup_elem(&counts_0, key);
		if (!count) {
			count_loss(err == -7 /* E2BIG */ ? PP_LOSS_COUNTS_FULL : PP_LOSS_COUNTS_BUSY);
			return;
		}
	}
	/* Adding a constant 0 would become an atomic OR, which 5.10 does not know. */
	if (samples)
		__sync_fetch_and_add(&count->samples, samples);
	__sync_fetch_and_add(&count->weight, weight);
}

#endif
