/* SPDX-License-Identifier: BSD-2-Clause */
/* The BPF object that counts memory which programs touch (bpf/own/memory.bpf.c).  It shares the
 * maps of the first object (kernel_side.h).  One thread at a time. */
#ifndef ATTACH_MEMORY_SIDE_H
#define ATTACH_MEMORY_SIDE_H

#include <stddef.h>

#include "base/cleanup.h"

struct kernel_side;
struct memory_side;

/* Loads the programs and attaches them.  They count nothing while PP_CONFIG_PAUSED is set.  Returns
 * 0 or -errno with one line in `why`. */
int memory_side_open(const struct kernel_side *kernel, char *why, size_t why_size,
		     struct memory_side **ret_side);
void memory_side_free(struct memory_side *side); /* NULL is allowed */
DEFINE_OWNED(struct memory_side, memory_side)

#endif
