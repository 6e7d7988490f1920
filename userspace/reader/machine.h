/* SPDX-License-Identifier: BSD-2-Clause */
/* What the machine did, by process, from the ledgers and facts among the comments of profiles: how busy its CPUs
 * were, which processes took them, in Python, native code or the kernel, and what the processes waited for. */
#ifndef READER_MACHINE_H
#define READER_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/index_table.h"

#define MACHINE_WAITS 10U
/* Processes that are told apart; a hostile profile may name more, which are counted and left out. */
#define MACHINE_MAX_PROCESSES 65536U
#define MACHINE_COMM_BYTES 64U

/* Seconds, summed over threads and windows. */
struct machine_process {
	uint64_t pid;
	char comm[MACHINE_COMM_BYTES];
	double python_s, native_s, kernel_s, unsampled_s, wait_s[MACHINE_WAITS];
};

/* Release with machine_release().  All zero: nothing was told. */
struct machine {
	struct machine_process *process; /* owned */
	uint32_t count, capacity;
	struct index_table index;
	uint64_t left_out; /* lines of ledgers */
	uint64_t elapsed_ns, busy_ns, cpus;
};

void machine_release(struct machine *machine);
/* A comment of a window; others than ledgers and facts are left.  0 or -ENOMEM. */
int machine_add(struct machine *machine, const char *comment);
/* How busy the machine was, and a table of the `rows` processes that took most of the CPUs.  Nothing when less than two
 * processes are known: then the profile is not of a machine.  columns: of the terminal; 0: any. */
void machine_print(struct machine *machine, uint32_t rows, unsigned int columns, bool color,
		   FILE *out);

#endif
