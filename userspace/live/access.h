/* SPDX-License-Identifier: BSD-2-Clause */
/* May a user see a process's stacks?  As the kernel's PTRACE_MODE_READ, and no more than that. */
#ifndef LIVE_ACCESS_H
#define LIVE_ACCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* root: always.  Others: real, effective and saved uid are theirs, it holds no capabilities, and
 * is dumpable: what /proc/PID holds is theirs.  False when it is gone. */
bool live_may_see(uid_t uid, uint32_t tgid);

#endif
