/* SPDX-License-Identifier: BSD-2-Clause */
/* Can two sides be compared at all? */
#ifndef DIFF_COMPARABLE_H
#define DIFF_COMPARABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIFF_WHY_BYTES 256U
/* Of all CPUs of the host: the others' load may differ by so much. */
#define DIFF_MAX_LOAD_CHANGE 0.25

/* What one side says of itself.  All zero: nothing. */
struct diff_facts {
	char kind[33], host[64];
	unsigned int hz; /* 0: unknown */
	int64_t period;	 /* 0: unknown */
	int64_t value;	 /* all time of the side */
	double unit_ns;	 /* of one of value; 0: it is no time */
	uint64_t windows, elapsed_ns, host_busy_ns, host_cpus;
	uint32_t mixed; /* windows whose period is not that of the first */
	bool is_part;	/* of processes: what they do besides is no load of others */
};

/* A comment of one of the side's files: "pyprofd 0.1.0 cpu 99Hz host=box", "facts elapsed_ns=...". */
void diff_facts_add_comment(struct diff_facts *facts, const char *text);
void diff_facts_add_window(struct diff_facts *facts, int64_t period, int64_t value);
/* Share of the host's CPUs that others than the profile's processes took; < 0: not known. */
double diff_facts_load(const struct diff_facts *facts);

enum diff_unlike { DIFF_ALIKE, DIFF_UNLIKE, DIFF_EMPTY };
/* In words why not; DIFF_EMPTY: there is nothing to compare even if the user insists. */
enum diff_unlike diff_unlike(const struct diff_facts *a, const struct diff_facts *b,
			     char ret_why[DIFF_WHY_BYTES]);

#endif
