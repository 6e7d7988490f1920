/* SPDX-License-Identifier: BSD-2-Clause */
/* Which processes are wanted. */
#ifndef DISCOVER_TARGET_H
#define DISCOVER_TARGET_H

#include <regex.h>

#include "base/cleanup.h"
#include "discover/process.h"
#include "discover/process_table.h"

#define TARGET_MAX_PIDS 4096U
#define TARGET_MAX_UIDS 4096U

/* Each kind that is given must hold; of one kind, any value.  A zeroed filter wants everything. */
struct target_filter {
	uint32_t *pid; /* owned; host tgids: these and their descendants */
	size_t pid_count;
	uint32_t *uid; /* owned; effective ones */
	size_t uid_count;
	bool has_comm;
	regex_t comm;	     /* of the process, not of its threads */
	char *cgroup_prefix; /* owned; "/a/b"; NULL: any */
};
void target_filter_release(struct target_filter *filter); /* safe on a zeroed one */

/* Add one value.  Return 0; -ENOSPC; -ENOMEM. */
int target_add_pid(struct target_filter *filter, uint32_t pid);
int target_add_uid(struct target_filter *filter, uint32_t uid);
/* POSIX extended, found anywhere in the name.  Returns 0; -EINVAL: not such an expression;
 * -EEXIST: one is set; -ENOMEM. */
int target_set_comm(struct target_filter *filter, const char *expression);
/* A cgroup and all below it: a directory (/sys/fs/cgroup/…, of a v1 tree or v2's) or a path as in
 * /proc/PID/cgroup, with or without the first slash.  Returns 0; -EEXIST: one is set; -ENOMEM. */
int target_set_cgroup(struct target_filter *filter, const char *prefix);

/* Whether details (uid, cgroup) must have been read for an answer. */
bool target_needs_details(const struct target_filter *filter);
/* Descent is what the table knows: the kernel side's inherited flag covers longer chains. */
bool target_matches(const struct target_filter *filter, const struct process_table *table,
		    const struct process *process);

/* Each pid must be that of a process, not of another thread.  Returns 0; -ESRCH with the first that
 * is not in *ret_missing; -errno. */
int target_check_pids(const struct target_filter *filter, uint32_t *ret_missing);

#endif
