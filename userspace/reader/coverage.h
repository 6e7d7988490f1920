/* SPDX-License-Identifier: BSD-2-Clause */
/* How much of the scheduler's CPU time and of the ledger's waits is in profiles, by their facts. */
#ifndef READER_COVERAGE_H
#define READER_COVERAGE_H

#include <stddef.h>
#include <stdint.h>

#define COVERAGE_BYTES 256U

/* Sums of all windows; all 0: they do not tell. */
struct coverage {
	uint64_t cpu_ns, scheduler_ns;
	uint64_t wait_ns, ledger_wait_ns;
	uint64_t samples; /* that cpu_ns is made from */
};

/* Adds what a comment says, if it is one of facts. */
void coverage_add(struct coverage *coverage, const char *comment);
/* "only 14.0 % of the scheduler's 22.4 s of CPU time is in it": what belongs to profiles of this kind and is
 * less than 98 %, and not by a counting error.  "": nothing is missing, or it is not known. */
const char *coverage_text(const struct coverage *coverage, const char *kind,
			  char buffer[COVERAGE_BYTES]);

#endif
