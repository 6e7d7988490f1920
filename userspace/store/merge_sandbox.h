/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes from the child that merges what it does not need. */
#ifndef STORE_MERGE_SANDBOX_H
#define STORE_MERGE_SANDBOX_H

/* Leaves the calling process the rights of the directory's owner without a capability, files below
 * the directory alone where the kernel has Landlock (5.13), no new processes, a bound of memory,
 * the system calls that reading and writing files take (others fail with ENOSYS; code in memory
 * that is added is its end), and the CPU and the disk when nobody else wants them.  It is killed
 * when its parent ends.  Cannot be undone.  Returns 0 or -errno. */
int merge_sandbox_enter(int directory_fd);

#endif
