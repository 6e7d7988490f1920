/* SPDX-License-Identifier: BSD-2-Clause */
/* Two sides, each of windows, read into one profile: the time of every function, line and stack in
 * every window of both.  Equal code of both sides is one row, even when its line numbers differ. */
#ifndef DIFF_TABLE_H
#define DIFF_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index_table.h"
#include "pprof/profile_read.h"
#include "profile/profile_data.h"

/* Above this, neighbouring windows are merged, so that memory does not grow with their number. */
#define DIFF_MAX_SLOTS 256U

enum diff_side_id { DIFF_A, DIFF_B, DIFF_SIDES };
enum diff_by { DIFF_BY_FUNCTION, DIFF_BY_LINE, DIFF_BY_STACK, DIFF_TABLES };
enum diff_column { DIFF_SELF, DIFF_TOTAL, DIFF_COLUMNS };

/* Ids of strings of the profile.  offset: of the line from the start of its function, else from the
 * start of the file. */
struct diff_code {
	uint32_t name, file, module, class, offset;
	uint32_t has_start; /* offset counts from the function's start */
};

struct diff_sum {
	int64_t value, samples;
	double per_event; /* as totals_sum's */
};

struct diff_cell {
	uint32_t slot;
	int64_t value[DIFF_COLUMNS];
};

struct diff_series {
	struct diff_cell *cell; /* by slot; only those that are not 0 */
	uint32_t count, capacity;
	struct diff_sum sum[DIFF_COLUMNS];
};

/* The result of the tests for one column of a row; significance.h. */
struct diff_change {
	double share[DIFF_SIDES], cov[DIFF_SIDES]; /* cov < 0: not known */
	double low, high; /* of 95 % of the change; low > high: not known */
	double p;	  /* corrected for the number of tests; < 0: too few samples to test */
};

struct diff_row {
	struct diff_code code;		   /* not for stacks */
	uint32_t first_frame, frame_count; /* for stacks: range in diff_data.stack_frame */
	uint32_t start_line;		   /* as last seen; 0: unknown */
	struct diff_series side[DIFF_SIDES];
	struct diff_change change[DIFF_COLUMNS];
	uint64_t last_sample; /* its number: recursion counts once in total */
};

struct diff_table {
	struct diff_row *row;
	uint32_t count, capacity;
	struct index_table index;
	struct id_map row_of; /* by location of the profile, or by stack */
};

struct diff_side {
	double weight[DIFF_MAX_SLOTS]; /* total time of each slot */
	double duration[DIFF_MAX_SLOTS];
	uint32_t slot_count, stride; /* stride: windows a slot */
	uint32_t windows;
	uint64_t duration_ns;
	struct diff_sum all;
	int64_t *value; /* of each row of the profile */
	uint32_t value_count;
};

/* A zeroed one is empty.  Release with diff_data_release(). */
struct diff_data {
	const struct profile *profile; /* borrowed */
	struct diff_side side[DIFF_SIDES];
	struct diff_table table[DIFF_TABLES];
	uint32_t *stack_frame; /* rows of table[DIFF_BY_FUNCTION], leaf first, of all stacks */
	uint32_t stack_frame_count, stack_frame_capacity;
	uint64_t sample;
};

void diff_data_release(struct diff_data *data);
/* Adds a window to a side.  The profile is the same at each call; all windows of side A come before
 * those of B.  Returns 0 or -ENOMEM. */
int diff_data_add_window(struct diff_data *data, enum diff_side_id side, struct profile *profile,
			 const struct profile_window *window);
/* Returns the line to show; 0: unknown. */
uint32_t diff_row_line(const struct diff_row *row, enum diff_by by);

/* ---- whether two sides can be compared at all ---- */

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
