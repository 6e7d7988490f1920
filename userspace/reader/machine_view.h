/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows what the machine did: by process (query/machine.h), and its GPUs. */
#ifndef READER_MACHINE_VIEW_H
#define READER_MACHINE_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "query/machine.h"

/* Prints how busy the machine was, and a table of the `rows` processes that used the CPUs most.
 * Prints nothing when fewer than two processes are known, because then the profile is not of a
 * machine. columns: of the terminal; 0: no limit. */
void machine_print(const struct machine *machine, uint32_t rows, unsigned int columns, bool color,
		   FILE *out);

/* Reads the same windows of kind gpu as a verb did, from: its live windows.  *ret_input has the
 * texts of usage; NULL: there are none.  Returns 0, or the exit code for the verb. */
int gpu_usage_read(struct gpu_usage *usage, const struct select *select, const struct input *from,
		   struct input **ret_input);
/* Prints a table of the GPUs, and of the `rows` processes with most memory of them; nothing when no
 * GPU is known.  What is not known is "-".  columns: of the terminal; 0: no limit. */
void gpu_usage_print(const struct gpu_usage *usage, uint32_t rows, unsigned int columns, bool color,
		     FILE *out);

#endif
