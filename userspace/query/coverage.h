/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes from capture metadata how much of the scheduler's CPU time and of the ledger's waits the
 * profiles contain. */
#ifndef QUERY_COVERAGE_H
#define QUERY_COVERAGE_H

#include <stddef.h>
#include <stdint.h>

#define COVERAGE_BYTES 256U

/* Sums over all windows; all 0: the files do not have these counters. */
struct coverage {
	uint64_t cpu_ns, scheduler_ns;
	uint64_t wait_ns, ledger_wait_ns;
	uint64_t samples; /* number of samples that cpu_ns is computed from */
};

/* Adds the counters of a comment, if it is one with capture metadata. */
void coverage_add(struct coverage *coverage, const char *comment);
/* Returns "only 14.0 % of the scheduler's 22.4 s of CPU time is in it", for profiles of this kind,
 * when less than 98 % is in them and the counting error does not explain that.  "": nothing is
 * missing, or the share is not known. */
const char *coverage_text(const struct coverage *coverage, const char *kind,
			  char buffer[COVERAGE_BYTES]);

#endif
