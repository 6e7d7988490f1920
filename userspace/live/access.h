/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides whether a user may see a process's stacks: as the kernel's PTRACE_MODE_READ, and no
 * more. */
#ifndef LIVE_ACCESS_H
#define LIVE_ACCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns true for root.  For other users, true when the process's real, effective and saved uid
 * are theirs, it has no capabilities and is dumpable, so that they own /proc/PID.  False when it is
 * gone. */
bool live_may_see(uid_t uid, uint32_t tgid);

#endif
