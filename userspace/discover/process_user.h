/* SPDX-License-Identifier: BSD-2-Clause */
/* The user who answers for what a process takes from tables that all share.  No state. */
#ifndef DISCOVER_PROCESS_USER_H
#define DISCOVER_PROCESS_USER_H

#include "discover/process.h"

/* Returns the effective user of a process; in a user namespace of somebody else than root that
 * namespace's owner, because he may act there as tens of thousands of users.  For a process that
 * has ended: what the table of processes knows. */
uint32_t process_user(const struct process *process);
/* The same as of the first call for this process: it is asked for often. */
uint32_t process_user_kept(struct process *process);

#endif
