/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which hits of a probe are counted that is on for a part of the time, and how often each
 * (include/pyprofd/probe.h: struct pp_gate). */
#ifndef BPF_LIB_GATE_H
#define BPF_LIB_GATE_H

#include "lib/kernel.bpf.h"

#include <pyprofd/probe.h>

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

#endif
