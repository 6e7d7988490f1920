/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums up what the machine did, by process, from profiles of kind ledger and capture metadata: how
 * busy its CPUs were, which processes used them for Python, native or kernel code, and what the
 * processes waited for. */
#ifndef QUERY_MACHINE_H
#define QUERY_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/ledger_state.h"
#include "query/input.h"

/* Of all threads and windows. */
struct machine_process {
	int64_t pid;
	const char *comm; /* borrowed from the profile */
	int64_t ns[LEDGER_STATE_COUNT];
};

/* Release with machine_release().  A zeroed one is empty. */
struct machine {
	struct machine_process
		*process; /* owned; the more CPU time first, of as much the more waits */
	uint32_t count;
	/* Processes without rows of their own, because pyprofd bounds those of a profile. */
	struct machine_process others;
	bool has_others;
	uint64_t elapsed_ns, busy_ns, cpus;
};

void machine_release(struct machine *machine);
/* Adds the capture metadata of a window; ignores other comments. */
void machine_add_facts(struct machine *machine, const char *comment);
/* Returns how to read windows of kind ledger for machine_fill(). */
struct input_options machine_input(void);
/* Lists the processes of a profile of kind ledger, once.  by_pid: a process that changes its name
 * keeps its sums, under the last name; else it has sums for each name.  Returns 0 or -ENOMEM. */
int machine_fill(struct machine *machine, const struct profile *profile, bool by_pid);
/* Return the time on the CPU; that of all waits. */
int64_t machine_cpu_ns(const struct machine_process *process);
int64_t machine_wait_ns(const struct machine_process *process);
void machine_add_up(struct machine_process *sum, const struct machine_process *process);

#endif
