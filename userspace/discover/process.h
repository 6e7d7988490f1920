/* SPDX-License-Identifier: BSD-2-Clause */
/* What the agent knows of a process. process_table fills it, every later stage reads it.
 * The agent's one thread (its loop) owns all of it. */
#ifndef DISCOVER_PROCESS_H
#define DISCOVER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <pyprofd/process.h>

#define BUILD_ID_MAX_BYTES 20U

/* Identifies a file while it is open or mapped, by the numbers that the kernel shows for a mapping.
 * inode 0: no file. */
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
	/* as the process sees it; owned by the table; "" when anonymous; "[vdso]" */
	const char *path;
	/* enum pp_file_id or a file id given by attach; PP_FILE_NONE: not assigned yet */
	uint32_t file;
	uint64_t bias; /* memory address - address in the file, valid once file is set */
};

/* What the kernel says of a process's mappings (struct pp_space_record). */
struct process_space {
	uint64_t code_pages, writes;
	uint32_t look; /* in which it was told last */
};

struct user_quota;

struct process {
	struct pp_process_id id;
	uint32_t ppid;	    /* as the host sees it */
	uint32_t inner_pid; /* in its own pid namespace; == id.tgid outside one */
	uint32_t uid;
	char comm[PP_COMM_BYTES];
	uint64_t start_ns;	  /* start of this program: fork or exec, CLOCK_MONOTONIC */
	uint64_t exit_ns;	  /* 0: alive */
	bool details_read;	  /* the fields below were read from /proc */
	const char *cgroup;	  /* path, owned by the table; "" unknown */
	const char *container_id; /* 64 hex digits or "" */
	uint32_t moves;		  /* counts changes of uid and cgroup */
	struct mapping *mapping;  /* owned; sorted by start, no overlaps */
	size_t mapping_count, mapping_capacity;
	struct user_quota *mapping_room; /* borrowed; bytes for mappings of all; NULL: no bound */
	bool mappings_changed; /* since the owner last cleared this flag */
	bool is_sampled;       /* the owner has seen a sample of it */
	bool is_queued;	       /* the owner has yet to publish it */
	bool is_at_rest;       /* it has not run since its memory was read */
	bool is_user_known;    /* process_user_kept() has found out */
	bool is_unread;	       /* its mappings are to be read again: processes/process_watch.c */
	struct process_space space;
	uint32_t user;	/* who answers for it, once that is known */
	uint32_t share; /* 1 + where processes/process_shares.h counts it; 0: nowhere */
	void *tables;	/* the data that attach and python keep for it; owned by attach */
};

#endif
