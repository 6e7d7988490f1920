/* SPDX-License-Identifier: BSD-2-Clause */
/* What kernels of the GPU are called.  A kernel is launched by a handle of the driver, or by the
 * address of a function on the host that stands for it.  In this order:
 *   1. what the program gave to the driver when it asked for the handle (drain/cuda_names.h),
 *   2. of a host function: what its file registers it as, or its symbol,
 *   3. of a launch whose stack was taken: the stub that called the runtime (launch_site.h), where
 *      its file registers that function, or nvcc has called it so,
 *   4. kernel@0xHANDLE (FILE), where FILE launched it first.
 * Files and mangled names are read by the child that parses files.  The loop's thread. */
#ifndef GPU_KERNEL_NAMES_H
#define GPU_KERNEL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/cuda.h>

#include "base/cleanup.h"
#include "base/slice.h"

struct counts;
struct cuda_names;
struct cuda_totals;
struct kernel_names;
struct services;

/* All is borrowed.  Without services->foreign mangled names stay so.  Returns 0 or -ENOMEM. */
int kernel_names_new(const struct services *services, const struct cuda_names *handles,
		     const struct cuda_totals *totals, struct kernel_names **ret_names);
void kernel_names_free(struct kernel_names *names);
DEFINE_OWNED(struct kernel_names, kernel_names)

/* Finds the names of all kernels that these counters launch, as far as they are not known.  Returns
 * 1 when the slice is over and there is more to do: it is called again with the same counters; 0;
 * -ENOMEM. */
int kernel_names_resolve(struct kernel_names *names, const struct counts *counts,
			 const struct slice *slice);
/* Forgets those of ended processes. */
void kernel_names_tidy(struct kernel_names *names,
		       bool (*is_alive)(void *context, struct pp_process_id id), void *context);
/* Returns the name of a launch's kernel; valid until the next call of any of these. */
const char *kernel_names_get(struct kernel_names *names, const struct pp_cuda_what *what);
/* Returns how many kernels have been shown by their handle, or by a name that is cut or could not
 * be demangled. */
uint64_t kernel_names_unnamed(const struct kernel_names *names);

#endif
