/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows what GPUs did (query/gpu_usage.h). */
#ifndef READER_GAUGE_VIEW_H
#define READER_GAUGE_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "query/gpu_usage.h"

/* Prints a table of the GPUs, and of the `rows` processes with most memory of them; nothing when no
 * GPU is known.  What is not known is "-".  columns: of the terminal; 0: no limit. */
void gpu_usage_print(struct gpu_usage *usage, uint32_t rows, unsigned int columns, bool color,
		     FILE *out);

#endif
