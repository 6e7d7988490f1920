/* SPDX-License-Identifier: BSD-2-Clause */
/* Lets a second BPF object share the maps of the first one (kernel_side.h).  A program that walks
 * stacks takes the kernel a second to verify, so what not every run needs lies in objects of its
 * own, which a thread beside the loop opens and loads. */
#ifndef ATTACH_SHARED_OBJECT_H
#define ATTACH_SHARED_OBJECT_H

#include <stddef.h>

struct bpf_object;
struct kernel_side;

/* Makes an object that is opened, and not loaded, use the maps of `side` that have the same names.
 * own: names of maps of which the object gets its own, such as `scratch`, of whose slots a pool of
 * its own is made.  A map that `side` does not have made is not made here either.  Returns 0 or
 * -errno. */
int shared_object_use_maps(struct bpf_object *object, const struct kernel_side *side,
			   const char *const *own, size_t own_count);

#endif
