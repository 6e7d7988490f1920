/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads how much memory of a process is resident, from /proc/PID/status. Source:
 * proc_pid_status(5). */
#ifndef DISCOVER_RESIDENT_MEMORY_H
#define DISCOVER_RESIDENT_MEMORY_H

#include <stddef.h>
#include <stdint.h>

struct resident_memory {
	uint64_t anonymous_bytes; /* RssAnon: heap, stacks, private pages that were written */
	uint64_t file_bytes;	  /* RssFile: mapped files, programs and libraries among them */
	uint64_t shared_bytes;	  /* RssShmem: shared memory, tmpfs */
	uint64_t peak_bytes;	  /* VmHWM: the most that was resident in all */
};

/* Parses a text without reading /proc. Its line `Name:` is chosen by the process. Returns 0;
 * -ENODATA: the task has no memory of its own (a kernel thread, or one that has ended); -EBADMSG:
 * a figure is missing or is no number of kB. */
int resident_memory_parse(const char *text, size_t size, struct resident_memory *ret_memory);
/* Reads and parses the file of a process. Returns as resident_memory_parse(); -ESRCH; -errno. */
int resident_memory_read(uint32_t pid, struct resident_memory *ret_memory);

#endif
