/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What all programs of user probes share: which site is hit, for how many hits it counts, and what
 * they need because they can be preempted (from Linux 6.0 on). */
#ifndef BPF_LIB_USER_PROBE_H
#define BPF_LIB_USER_PROBE_H

#include "lib/user.bpf.h"
#include "lib/walk.bpf.h"

#include <pyprofd/probe.h>

/* Returns the number of the site that was hit, the link's cookie; before 5.15 the stub that jumps
 * to the program has written it to `now`, a map (userspace/attach/probe_links.h). */
static __always_inline __u32 site_hit(void *ctx, void *now)
{
	__u32 zero = 0, *stubs;

	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_attach_cookie))
		return bpf_get_attach_cookie(ctx);
	stubs = bpf_map_lookup_elem(now, &zero);
	return stubs ? *stubs : 0;
}

/* ---- probes that are on for a part of the time: include/pyprofd/probe.h, struct pp_gate ---- */

/* Returns how many hits one stands for, in units of 1 / 65,536; 0: it does not count. */
static __always_inline __u64 gate_scale(const struct pp_gate *gate, __u64 now_ns)
{
	if (!gate || !gate->until_ns)
		return 1 << PP_GATE_SCALE_SHIFT;
	return now_ns >= gate->from_ns && now_ns < gate->until_ns ? gate->scale : 0;
}

/* Multiplies by a scale; rounded at random, so that sums stay right. */
static __always_inline __u64 scaled(__u64 value, __u64 scale)
{
	if (scale == 1 << PP_GATE_SCALE_SHIFT)
		return value;
	return (value * scale + (bpf_get_prandom_u32() & 0xffff)) >> PP_GATE_SCALE_SHIFT;
}

/* ---- no private stack ----
 * From 6.13 on the kernel gives a program of this kind one private stack a CPU, though it can be
 * preempted by another task's hit: both then write to the same stack, and the kernel panics
 * (opentelemetry-ebpf-instrumentation#3056).  It gives none to programs in which any
 * function has a tail call (kernel/bpf/verifier.c: check_max_stack_depth()), also one that is never
 * made.  tests/e2e/test_probes.py and the guests of tests/kernel-matrix look at the code that the
 * kernel has made, tests/lint/check_bpf.py for the call in each program that needs it.
 *
 * The maps are empty, but on kernels without cookies: there the first has on_probe, to which stubs
 * jump.  All programs of one map are of one type.
 * Weak: files of one object have them together. */
__weak MAP(probe_programs, PROG_ARRAY, 1, __u32, __u32);
__weak MAP(tracepoint_programs, PROG_ARRAY, 1, __u32, __u32);

__weak const volatile bool is_tail_called; /* never */

/* Comes first in a program that can be preempted. */
#define REFUSE_PRIVATE_STACK(ctx, programs)                                                        \
	do {                                                                                       \
		if (is_tail_called)                                                                \
			bpf_tail_call(ctx, &(programs), 0);                                        \
	} while (0)

/* ---- slots ----
 * Preempted programs run beside all others of their CPU, so their objects have a `scratch` of their
 * own, of whose slots each hit claims one.  A thread that is preempted in a hit keeps its slot
 * until it has the CPU again.  Somebody with many threads in hits of their own would have all slots
 * of each CPU, so one is left to others. */
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
