/* SPDX-License-Identifier: BSD-2-Clause */
/* Notes where the probes of a plan were found, and tells of what --probe names that is not there,
 * with the nearest names. */
#ifndef PROBES_PROBE_NAMES_H
#define PROBES_PROBE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/probe_sites.h"
#include "probes/probe_plan.h"

struct file;
struct foreign;
struct opener_file;
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

/* Asks the parser's child about an open file that is in no table.  As foreign_probes(). */
int probe_wants_ask(struct foreign *foreign, struct opener_file *file,
		    const struct probe_wants *wants, struct probe_sites *ret_sites);

struct foreign;

/* What is known of a row's probe. */
struct probe_known {
	bool is_seen; /* a file in which it is to be */
	bool is_refusal_told;
	uint32_t sites;
	uint32_t refusals; /* bits of enum probe_refusal */
	char path[256];	   /* of such a file */
	char nearest[PROBE_NEAREST_MAX][PROBE_NEAREST_BYTES];
};

/* Takes the answer about a row's leg in a file of this path; tells once that some of its places
 * are left out. */
void probe_known_note(struct probe_known *known, const struct probe_row *row,
		      const struct probe_found *answer, const char *path);

/* Look whether what a row of --probe names is there, once the processes are known: in a file that
 * one of them maps, else in that of this machine; among the kernel's tracepoints.  Return 0;
 * -ENXIO with a line in the log; -ENOMEM. */
int probe_check_binary(const struct probe_plan *plan, uint32_t row, struct foreign *foreign,
		       struct probe_known *known);
int probe_check_tracepoint(const struct probe_row *row);

#endif
