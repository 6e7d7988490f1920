/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From 6.13 on the kernel gives a program of this kind one private stack a CPU, though a program of
 * a user probe can be preempted by another task's hit: both then write to the same stack, and the
 * kernel panics (opentelemetry-ebpf-instrumentation#3056).  It gives none to programs in which any
 * function has a tail call (kernel/bpf/verifier.c: check_max_stack_depth()), also one that is never
 * made.  tests/e2e/test_probes.py and the guests of tests/kernel-matrix look at the code that the
 * kernel has made, tests/lint/check_bpf.py for the call in each program that needs it. */
#ifndef BPF_LIB_PRIVATE_STACK_H
#define BPF_LIB_PRIVATE_STACK_H

#include "lib/maps.bpf.h"

/* Empty, but on kernels without cookies: there the first has on_probe, to which stubs jump
 * (userspace/attach/probe_links.h).  All programs of one map are of one type.
 * Weak: files of one object have them together. */
struct programs_map {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
};
__weak struct programs_map probe_programs SEC(".maps");
__weak struct programs_map tracepoint_programs SEC(".maps");

__weak const volatile bool is_tail_called; /* never */

/* Comes first in a program that can be preempted. */
#define REFUSE_PRIVATE_STACK(ctx, programs)                                                        \
	do {                                                                                       \
		if (is_tail_called)                                                                \
			bpf_tail_call(ctx, &(programs), 0);                                        \
	} while (0)

#endif
