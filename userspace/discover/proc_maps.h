/* SPDX-License-Identifier: BSD-2-Clause */
/* /proc/PID/maps -> executable mappings.  Read once at start and after a lost side-band record.
 * Source: proc_pid_maps(5), fs/proc/task_mmu.c. */
#ifndef DISCOVER_PROC_MAPS_H
#define DISCOVER_PROC_MAPS_H

#include "discover/process.h"

#define PROC_MAPS_MAX_BYTES (64U << 20)

struct proc_maps_summary {
	size_t line_count;
	size_t bad_line_count; /* did not parse and were skipped */
	bool has_musl;	       /* any mapping, executable or not, is of musl's loader */
};

/* Calls back for each executable mapping of user space, in the order of the text (the kernel's is by
 * address).  time_ns is 0, no inode generation; path lives until the callback returns;
 * a path that is too long is "//toolong", as in the side-band.  A callback's result other than 0
 * ends the reading and is returned.  Else returns 0. */
int proc_maps_parse(const char *text, size_t size,
		    int (*callback)(void *context, const struct mapping *mapping), void *context,
		    struct proc_maps_summary *ret_summary);

/* The same for a process.  Returns also -ESRCH when it is gone, a zombie or a kernel thread (no
 * mapping at all); -EFBIG beyond PROC_MAPS_MAX_BYTES; -EACCES; -ENOMEM.  ret_summary may be NULL. */
int proc_maps_read(uint32_t tgid, int (*callback)(void *context, const struct mapping *mapping),
		   void *context, struct proc_maps_summary *ret_summary);

#endif
