/* SPDX-License-Identifier: BSD-2-Clause */
/* The tracepoints of the running kernel, as its BTF lists them.  No state. */
#ifndef ATTACH_TRACEPOINT_NAMES_H
#define ATTACH_TRACEPOINT_NAMES_H

#include <stddef.h>

/* Returns 0: programs can be attached to the tracepoint; -ENOENT: there is none of this name,
 * `near` has the nearest one or ""; -EPERM: no program of ours may run there, `why` says why;
 * -errno. */
int tracepoint_check(const char *group, const char *name, char *near, size_t near_size, char *why,
		     size_t why_size);

#endif
