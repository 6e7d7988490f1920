/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads executable mappings from /proc/PID/maps: once at the start, and after a lost side-band
 * record.
 * Source: proc_pid_maps(5), fs/proc/task_mmu.c. */
#ifndef DISCOVER_PROC_MAPS_H
#define DISCOVER_PROC_MAPS_H

#include "discover/process.h"

#define PROC_MAPS_MAX_BYTES (64U << 20)

struct proc_maps_summary {
	size_t line_count;
	size_t bad_line_count; /* lines that did not parse and were skipped */
	bool has_musl;	       /* some mapping, executable or not, is of musl's loader */
};

/* Calls back for each executable mapping of user space, in the order of the text (the kernel sorts
 * by address). time_ns and the inode's generation are 0; the path is valid until the callback
 * returns; a path that is too long is "//toolong", as in the side-band. A result other than 0 from
 * the callback ends the reading and is returned. Otherwise returns 0. */
int proc_maps_parse(const char *text, size_t size,
		    int (*callback)(void *context, const struct mapping *mapping), void *context,
		    struct proc_maps_summary *ret_summary);

/* Reads and parses the maps of a process. Returns also -ESRCH when the process is gone, a zombie or
 * a kernel thread (no mapping at all); -EFBIG above PROC_MAPS_MAX_BYTES; -EACCES; -ENOMEM.
 * ret_summary may be NULL. */
int proc_maps_read(uint32_t tgid, int (*callback)(void *context, const struct mapping *mapping),
		   void *context, struct proc_maps_summary *ret_summary);

#endif
