/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes from the agent's children what they do not need. */
#ifndef PARSER_SANDBOX_H
#define PARSER_SANDBOX_H

enum parser_sandbox {
	/* Keeps the capabilities to look at other users' processes (CAP_SYS_PTRACE,
	 * CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE; those that it has), and may open files to
	 * read them; no new memory. */
	PARSER_SANDBOX_MEMORY,
	/* Parses files: no capabilities, opens nothing, maps what it is given, and has memory up to
	 * a limit. */
	PARSER_SANDBOX_FILES,
	/* Opens perf events of whole CPUs, with CAP_SYS_ADMIN and CAP_PERFMON, and nothing else. */
	PARSER_SANDBOX_EVENTS,
};

/* Leaves the calling process what its kind needs: no files to write, no new processes, and only the
 * system calls that answer requests: any other one kills it.
 * Cannot be undone. Returns 0 or -errno. */
int parser_sandbox_enter(enum parser_sandbox which);

#endif
