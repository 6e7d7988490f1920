/* SPDX-License-Identifier: BSD-2-Clause */
/* A process as the agent knows it.  Filled by process_table, read by every later stage.
 * One thread (the loop) owns all of it. */
#ifndef DISCOVER_PROCESS_H
#define DISCOVER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <pyprofd/process.h>

#define BUILD_ID_MAX_BYTES 20U

/* What names a file as long as it is open or mapped, as the kernel shows it of a mapping.  inode 0: no file. */
struct file_key {
	uint32_t major, minor;
	uint64_t inode;
	uint64_t inode_generation; /* 0: unknown */
};

/* One executable mapping. */
struct mapping {
	uint64_t start, end; /* addresses in the process, end exclusive */
	uint64_t offset;     /* bytes into the file */
	uint64_t time_ns;    /* when it appeared; 0: found by reading /proc */
	struct file_key key;
	const char *path;    /* as the process sees it; owned by the table; "" anonymous; "[vdso]" */
	uint32_t file;	     /* enum pp_file_id or a file id given by attach; PP_FILE_NONE: not yet */
	uint64_t bias;	     /* memory address - address in the file, once file is set */
};

struct process {
	struct pp_process_id id;
	uint32_t ppid;	    /* host */
	uint32_t inner_pid; /* in its own pid namespace; == id.tgid outside one */
	uint32_t uid;
	char comm[PP_COMM_BYTES];
	uint64_t start_ns;	 /* this image's: fork or exec, CLOCK_MONOTONIC */
	uint64_t exit_ns;	 /* 0: alive */
	bool details_read;	 /* /proc was read for the fields below */
	const char *cgroup;	 /* path, owned by the table; "" unknown */
	const char *container_id; /* 64 hex digits or "" */
	struct mapping *mapping; /* owned; sorted by start, no overlaps */
	size_t mapping_count, mapping_capacity;
	bool mappings_changed; /* since the owner last cleared it */
	bool is_sampled;       /* the owner has seen a sample of it */
	void *tables;	       /* attach's and python's part, owned by attach */
};

#endif
