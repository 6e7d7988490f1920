/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes from the parser child what it does not need. */
#ifndef PARSER_SANDBOX_H
#define PARSER_SANDBOX_H

/* Leaves the calling process the capabilities to look at other users' processes (CAP_SYS_PTRACE,
 * CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE; those that it has), no files to write, no new
 * memory, no new processes, and only the system calls that answer requests: any other one kills it.
 * Cannot be undone. Returns 0 or -errno. */
int parser_sandbox_enter(void);

#endif
