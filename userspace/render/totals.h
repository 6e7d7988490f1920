/* SPDX-License-Identifier: BSD-2-Clause */
/* Self and total of each function (line, file, module, or group of samples), with standard errors.
 * Fed window by window while the profile is read: this gives the spread between windows without a
 * figure stored for each window. */
#ifndef RENDER_TOTALS_H
#define RENDER_TOTALS_H

#include <stdbool.h>

#include "pprof/profile_read.h"
#include "render/code_table.h"

/* With fewer windows than this, the spread between them says nothing; then the number of samples
 * gives the error. */
#define TOTALS_MIN_WINDOWS 8U

enum totals_by { TOTALS_BY_CODE, TOTALS_BY_GROUP };

/* Sums over windows i of a value x[i], beside the windows' own totals w[i]. */
struct totals_sum {
	int64_t value;	  /* sum x */
	int64_t samples;  /* number of samples in it; 0: unknown */
	double per_event; /* sum of value^2 / samples: the variance that counting alone gives */
	double squares;	  /* sum x^2 */
	double products;  /* sum x w */
};

struct totals_row {
	uint32_t code, group;
	struct totals_sum self, total;
	/* In the window being read. */
	int64_t window_self, window_total;
	uint32_t last_window; /* number + 1 */
	uint64_t last_sample; /* number + 1: recursion counts once in total */
};

/* Release with totals_release(). */
struct totals {
	struct code_table code;
	struct groups groups;
	enum totals_by by;
	struct totals_row *row;
	uint32_t count, capacity;
	struct index_table index;
	struct id_map row_of_code; /* without groups: saves the search */
	struct totals_sum all;
	uint32_t windows;
	uint64_t level_start_ns; /* of the window that the sums have, when values are levels */
	bool few_known;	      /* the number of events is the effective one, as in share_error.h */
	uint64_t duration_ns; /* sum */
	uint32_t *touched;    /* rows of the window being read */
	uint32_t touched_count, touched_capacity;
	uint64_t sample; /* number */
};

struct totals_options {
	enum totals_by by;
	enum code_by code_by;
	struct grouping group_by;
};

/* Call it before the first window. */
void totals_init(struct totals *totals, const struct totals_options *options);
void totals_release(struct totals *totals);
/* Adds a window; the window_done of profile_read_options.  The profile is the same at each call.  A
 * window whose values are levels takes the place of those that began before it.
 * Returns 0 or -ENOMEM. */
int totals_add_window(struct totals *totals, struct profile *profile,
		      const struct profile_window *window);

/* Return a sum's share of the total, 0 to 1 (where values have both signs, of
 * profile_signed_whole()), and its standard error; < 0: not known. */
double totals_share(const struct totals *totals, const struct totals_sum *sum);
double totals_share_error(const struct totals *totals, const struct totals_sum *sum);
/* Returns how long to record, in ns, until the standard error is `wanted` (0.01); 0: it is already,
 * or the error is not known. */
uint64_t totals_wanted_ns(const struct totals *totals, const struct totals_sum *sum, double wanted);

struct share_part {
	double value;	  /* sum */
	double per_event; /* sum of value^2 / events: the variance that counting alone gives */
};

/* few_known: the events stand for others, so that their number is known from themselves only
 * (`effective`).  The error is then as much larger as Student's distribution of so few is wider:
 * 1.96 of it holds the truth in 95 of 100. */
double share_error(const struct share_part *part, const struct share_part *all, bool few_known);

#endif
