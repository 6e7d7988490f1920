/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the kernel's list of a thread's return probes.  Its records may be freed beside us (from
 * 6.13 on by RCU): every read is a checked one, and a wrong address only ends a walk. */
#ifndef BPF_LIB_RETURN_INSTANCE_H
#define BPF_LIB_RETURN_INSTANCE_H

#include "lib/kernel.bpf.h"

#include <pyprofd/sample.h>

static __always_inline void return_read(const struct return_instance *instance,
					struct pp_return *ret_return)
{
	ret_return->stack = BPF_CORE_READ(instance, stack);
	ret_return->address = BPF_CORE_READ(instance, orig_ret_vaddr);
}

#endif
