/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows why the GPUs of processes are slow (reader/why_processes.h). */
#ifndef READER_WHY_VIEW_H
#define READER_WHY_VIEW_H

#include <stdio.h>

#include "query/gpu_usage.h"
#include "reader/why_processes.h"
#include "render/table.h"

struct why_shown {
	const struct why_processes *processes;
	const struct gpu_usage *gauges;
	const char *title;
	uint64_t duration_ns; /* that was recorded */
	uint32_t rows;	      /* processes; 0: all */
	bool color;
	bool is_scaled; /* launches were counted for a part of the time */
};

/* Prints each process: what was found, what was looked at and did not stand out, what cannot be
 * judged; then each GPU that has gauges. */
void why_print_text(const struct why_shown *shown);
/* Writes all of it.  Returns 0 or -EIO. */
int why_print_json(const struct why_shown *shown, FILE *out);
/* Writes the findings, a row each, with their evidence.  Returns 0 or -ENOMEM. */
int why_put_table(const struct why_shown *shown, struct table *table);

#endif
