/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists what is looked for in one file: the legs of a plan's rows, and what raises the semaphore of
 * the interpreter's probe `line` where they need it. */
#ifndef PROBES_PROBE_WANTS_H
#define PROBES_PROBE_WANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/probe_plan.h"

struct file;
struct foreign;
struct probe_sites;

struct probe_wants {
	struct probe_wanted wanted[PROBE_WANTED_MAX];
	struct {
		uint32_t row, leg;
	} of[PROBE_WANTED_MAX];
	size_t count;
	size_t row_count;	/* of these; behind them: PROBE_LINE_NAME, PROBE_CARRIER_NAME */
	uint64_t line, carrier; /* the former's semaphore, the latter's site; 0: none */
};

/* Returns whether anything is looked for in a file, of all that processes map. */
bool probe_wants_any(const struct probe_plan *plan, const struct file *file);
/* Lists it.  *wants is all zeros. */
void probe_wants_list(const struct probe_plan *plan, const struct file *file,
		      struct probe_wants *wants);
/* Lists it for a file that no process has mapped yet and that may be an interpreter, without what
 * depends on the interpreter's version. */
void probe_wants_list_path(const struct probe_plan *plan, const char *path,
			   struct probe_wants *wants);
/* Adds the legs of one row, and no others are to come. */
void probe_wants_row(const struct probe_plan *plan, uint32_t row, struct probe_wants *wants);

/* Asks the parser's child about a file that is open here and in no table.  The descriptor is
 * borrowed.  As foreign_probes(). */
int probe_wants_ask(struct foreign *foreign, int fd, const struct probe_wants *wants,
		    struct probe_sites *ret_sites);

#endif
