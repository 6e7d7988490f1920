/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums up what the machine did, by process, from the ledgers and the capture metadata in the
 * comments of profiles: how busy its CPUs were, which processes used them for Python, native or
 * kernel code, and what the processes waited for. */
#ifndef QUERY_MACHINE_H
#define QUERY_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index_table.h"

#define MACHINE_WAITS 11U
/* The most processes with sums of their own.  A hostile profile may name more; those are counted
 * and left out. */
#define MACHINE_MAX_PROCESSES 65536U
#define MACHINE_COMM_BYTES 64U

/* Seconds, summed over threads and windows. */
struct machine_process {
	uint64_t pid;
	char comm[MACHINE_COMM_BYTES];
	double python_s, native_s, kernel_s, unsampled_s, wait_s[MACHINE_WAITS];
};

/* Release with machine_release().  A zeroed one is empty. */
struct machine {
	/* A process that changes its name keeps its sums, under the last name; else it has sums for
	 * each name. */
	bool by_pid;
	struct machine_process *process; /* owned */
	uint32_t count, capacity;
	struct index_table index;
	/* Processes without a line of their own, because pyprofd bounds the lines of a profile. */
	struct machine_process others;
	bool has_others;
	uint64_t left_out; /* number of ledger lines */
	uint64_t elapsed_ns, busy_ns, cpus;
};

void machine_release(struct machine *machine);
/* Adds a comment of a window; ignores comments other than ledgers and capture metadata.  Returns 0
 * or -ENOMEM. */
int machine_add(struct machine *machine, const char *comment);
/* Return the seconds on the CPU; those of all waits. */
double machine_cpu_s(const struct machine_process *process);
double machine_wait_s(const struct machine_process *process);
void machine_add_up(struct machine_process *sum, const struct machine_process *process);
/* Puts the processes in order: the more CPU time first, of as much the more waits.  Nothing may be
 * added afterwards. */
void machine_sort(struct machine *machine);
/* Returns the ledger's name of machine_process.wait_s[wait]: "gil", "run_queue". */
const char *machine_wait_name(unsigned int wait);

#endif
