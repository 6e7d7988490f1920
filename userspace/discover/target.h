/* SPDX-License-Identifier: BSD-2-Clause */
/* The filter that selects processes: --pid, --uid, --comm, --cgroup. */
#ifndef DISCOVER_TARGET_H
#define DISCOVER_TARGET_H

#include <regex.h>

#include "base/cleanup.h"
#include "discover/process.h"
#include "discover/process_table.h"

#define TARGET_MAX_PIDS 4096U
#define TARGET_MAX_UIDS 4096U

/* A process matches when it matches each kind of condition that is given, by any value of that
 * kind. A zeroed filter matches every process. */
struct target_filter {
	uint32_t *pid; /* owned; host tgids: these and their descendants */
	size_t pid_count;
	uint32_t *uid; /* owned; effective ones */
	size_t uid_count;
	bool has_comm;
	regex_t comm;	     /* of the process, not of its threads */
	char *cgroup_prefix; /* owned; "/a/b"; NULL: any */
};
void target_filter_release(struct target_filter *filter); /* a zeroed filter is fine */

/* Add one value.  Return 0; -ENOSPC; -ENOMEM. */
int target_add_pid(struct target_filter *filter, uint32_t pid);
int target_add_uid(struct target_filter *filter, uint32_t uid);
/* Sets a POSIX extended expression that is searched anywhere in the name. Returns 0; -EINVAL: not
 * such an expression; -EEXIST: one is set; -ENOMEM. */
int target_set_comm(struct target_filter *filter, const char *expression);
/* Sets a cgroup, which includes all below it: a directory (/sys/fs/cgroup/..., of a v1 tree or
 * v2's) or a path as in /proc/PID/cgroup, with or without the first slash. Returns 0; -EEXIST: one
 * is set; -ENOMEM. */
int target_set_cgroup(struct target_filter *filter, const char *prefix);

/* Returns whether target_matches() needs the details of a process (uid, cgroup). */
bool target_needs_details(const struct target_filter *filter);
/* Returns whether the process matches the filter. Descent is judged by what the table knows; the
 * inherited flag in the kernel side covers longer chains. */
bool target_matches(const struct target_filter *filter, const struct process_table *table,
		    const struct process *process);

#endif
