/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes from the child that loads NVML what a vendor's code shall not have. */
#ifndef GAUGES_SANDBOX_H
#define GAUGES_SANDBOX_H

/* Leaves the calling process, before it loads a vendor's library, no capability, no terminal, no
 * new privileges, no new processes, a bound of memory, and the user "nobody" where it is root's,
 * with the group of the GPUs' device files where these are that group's alone.  It may read what
 * that user may, and write to nothing but the device files and the pipe where the kernel has
 * Landlock (5.13); of system calls it has those that look at files and devices; others fail with
 * ENOSYS.  It is killed when its parent ends.  Cannot be undone.  Returns 0 or -errno. */
int gauges_sandbox_enter(void);

#endif
