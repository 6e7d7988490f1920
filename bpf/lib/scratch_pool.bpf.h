/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs of user probes can be preempted (from Linux 6.0 on) and then run beside all others of
 * their CPU, so their objects have a `scratch` of their own, of whose slots each hit claims one. */
#ifndef BPF_LIB_SCRATCH_POOL_H
#define BPF_LIB_SCRATCH_POOL_H

#include "lib/walk.bpf.h"

/* Claims one of the CPU's slots.  cmpxchg needs Linux 5.12; before, programs of uprobes ran with
 * preemption off. */
static __always_inline bool claim(__u32 *is_taken)
{
#ifdef HAVE_CMPXCHG
	return !__sync_val_compare_and_swap(is_taken, 0, 1);
#else
	if (*(volatile __u32 *)is_taken)
		return false;
	*is_taken = 1;
	return true;
#endif
}

static __always_inline void scratch_enter_pool(struct scratch *taken)
{
	struct scratch_claims *claims = scratch_begin(taken);

	if (!claims)
		return;
#pragma unroll
	for (int level = 0; level < (int)PP_WALK_LEVELS; level++)
		if (claim(&claims->is_taken[level])) {
			scratch_use(taken, claims, (enum scratch_level)level);
			return;
		}
	count_loss(PP_LOSS_NO_SCRATCH);
}

#endif
