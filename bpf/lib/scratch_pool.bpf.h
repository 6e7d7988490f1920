/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs of user probes can be preempted (from Linux 6.0 on) and then run beside all others of
 * their CPU, so their objects have a `scratch` of their own, of whose slots each hit claims one. */
#ifndef BPF_LIB_SCRATCH_POOL_H
#define BPF_LIB_SCRATCH_POOL_H

#include "lib/user.bpf.h"
#include "lib/walk.bpf.h"

/* A thread that is preempted in a hit keeps its slot until it has the CPU again.  Somebody with
 * many threads in hits of their own would have all slots of each CPU, so one is left to others. */
#define POOL_SLOTS_OF_USER (PP_WALK_LEVELS - 1)

/* What says in is_taken[] whose a slot is; not 0. */
static __always_inline __u32 mark_of(__u32 user)
{
	return user + 1 ? user + 1 : 1;
}

/* Returns whether a user has as many of the CPU's slots as he may. */
static __always_inline bool has_enough_slots(const struct scratch_claims *claims, __u32 user)
{
	__u32 held = 0;

#pragma unroll
	for (int level = 0; level < (int)PP_WALK_LEVELS; level++)
		held += *(volatile const __u32 *)&claims->is_taken[level] == mark_of(user);
	return user && held >= POOL_SLOTS_OF_USER;
}

/* Claims one of the CPU's slots.  cmpxchg needs Linux 5.12; before, programs of uprobes ran with
 * preemption off. */
static __always_inline bool claim(__u32 *is_taken, __u32 mark)
{
	if (has_cmpxchg)
		return !__sync_val_compare_and_swap(is_taken, 0, mark);
	if (*(volatile __u32 *)is_taken)
		return false;
	*is_taken = mark;
	return true;
}

/* Returns the level of a slot that is claimed; -1: there is none, which is counted.  Not inlined:
 * the walk below its caller has no stack to spare. */
__weak __noinline int pool_claim(void)
{
	struct scratch taken;
	struct scratch_claims *claims = scratch_begin(&taken);
	__u32 user = user_of_current();

	if (!claims)
		return -1;
	if (has_enough_slots(claims, user)) {
		count_loss(PP_LOSS_NO_SCRATCH);
		return -1;
	}
#pragma unroll
	for (int level = 0; level < (int)PP_WALK_LEVELS; level++)
		if (claim(&claims->is_taken[level], mark_of(user)))
			return level;
	count_loss(PP_LOSS_NO_SCRATCH);
	return -1;
}

static __always_inline void scratch_enter_pool(struct scratch *taken)
{
	struct scratch_claims *claims = scratch_begin(taken);
	int level = pool_claim();

	if (claims && level >= 0 && level < (int)PP_WALK_LEVELS)
		scratch_use(taken, claims, (enum scratch_level)level);
}

#endif
