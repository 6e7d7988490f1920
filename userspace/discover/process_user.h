/* SPDX-License-Identifier: BSD-2-Clause */
/* The user who answers for what a process takes from tables that all share.  No state. */
#ifndef DISCOVER_PROCESS_USER_H
#define DISCOVER_PROCESS_USER_H

#include "discover/process.h"

/* Returns the effective user of a process, or the real one where that is root: anybody may start a
 * set-user-ID program.  In a user namespace of somebody else than root that namespace's owner,
 * because he may act there as tens of thousands of users.  That of the last fork or exec, where the
 * kernel side has told it, or of the first call of process_user_kept(); of a process that has ended
 * else what the table of processes knows. */
uint32_t process_user(const struct process *process);
/* Keeps what it returns: it is asked for often. */
uint32_t process_user_kept(struct process *process);

#endif
