/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides whether two sides can be compared at all. */
#ifndef DIFF_COMPARABLE_H
#define DIFF_COMPARABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIFF_WHY_BYTES 256U
/* The largest change of other processes' load that is accepted, as a share of all CPUs of the
 * host. */
#define DIFF_MAX_LOAD_CHANGE 0.25

/* What the profiles of one side say about their making.  All zero: nothing. */
struct diff_facts {
	char kind[33], host[64];
	unsigned int hz; /* samples per second; 0: unknown */
	int64_t period;	 /* 0: unknown */
	int64_t value;	 /* sum of the side's values */
	double unit_ns;	 /* of one unit of value; 0: the values are not times */
	uint64_t windows, elapsed_ns, host_busy_ns, host_cpus;
	uint32_t mixed; /* windows whose period is not that of the first */
	/* of selected processes only, whose other work does not count as load of others */
	bool is_part;
};

/* Adds a comment of one of the side's files: "pyprofd 0.1.0 cpu 99Hz host=box", "facts
 * elapsed_ns=...". */
void diff_facts_add_comment(struct diff_facts *facts, const char *text);
void diff_facts_add_window(struct diff_facts *facts, int64_t period, int64_t value);
/* Returns the share of the host's CPUs that processes outside of the profile took; < 0: not
 * known. */
double diff_facts_load(const struct diff_facts *facts);

enum comparable { COMPARABLE, NOT_COMPARABLE, NOTHING_TO_COMPARE };
/* Compares two sides and says in words why they differ; NOTHING_TO_COMPARE: there is nothing to
 * compare even if the user insists. */
enum comparable comparable_sides(const struct diff_facts *a, const struct diff_facts *b,
				 char ret_why[DIFF_WHY_BYTES]);

#endif
