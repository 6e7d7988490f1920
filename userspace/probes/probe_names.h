/* SPDX-License-Identifier: BSD-2-Clause */
/* Notes where the probes of a plan were found, and tells of what --probe names that is not there,
 * with the nearest names. */
#ifndef PROBES_PROBE_NAMES_H
#define PROBES_PROBE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/probe_sites.h"
#include "probes/probe_plan.h"

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
