/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows what the machine did, by process (query/machine.h). */
#ifndef READER_MACHINE_VIEW_H
#define READER_MACHINE_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "query/machine.h"

/* Prints how busy the machine was, and a table of the `rows` processes that used the CPUs most.
 * Prints nothing when fewer than two processes are known, because then the profile is not of a
 * machine. columns: of the terminal; 0: no limit. */
void machine_print(struct machine *machine, uint32_t rows, unsigned int columns, bool color,
		   FILE *out);

#endif
