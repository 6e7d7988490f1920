/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests whether two sets of windows differ, and by how much.  Works on numbers only, not on
 * profiles. */
#ifndef DIFF_STATISTICS_H
#define DIFF_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* Up to this many windows per side the distribution of U is enumerated, also with ties. */
#define STATISTICS_MAX_EXACT 20U

/* One side: window i has value[i] and weight[i].  Borrowed. */
struct stat_side {
	const double *value, *weight;
	uint32_t count;
};

/* Returns the sum of values / sum of weights; 0 when the weights are 0. */
double stat_share(const struct stat_side *side);
/* Returns standard deviation / mean of the windows' shares; < 0: not known (fewer than 2, or all
 * 0). */
double stat_cov(const struct stat_side *side);

/* Return the two-sided p of a standard normal z, and of Student's t. */
double stat_normal_p(double z);
double stat_student_p(double t, double freedom);

/* The test for sides of two given sizes, for many uses. */
struct mann_whitney;
/* Creates the test; both counts are at least 1.  Returns 0 or -ENOMEM. */
int mann_whitney_new(uint32_t a_count, uint32_t b_count, struct mann_whitney **ret_test);
void mann_whitney_free(struct mann_whitney *test);
DEFINE_OWNED(struct mann_whitney, mann_whitney)
/* Returns the two-sided p of the hypothesis that a and b come from one distribution: exact, or
 * above STATISTICS_MAX_EXACT by the normal approximation, corrected for ties and continuity. */
double mann_whitney_p(struct mann_whitney *test, const double *a, const double *b);

struct stat_interval {
	double low, high; /* of 95 % of the resamples */
	double error[2];  /* standard error of each side's share */
};

/* Computes the interval of share(b) - share(a) over resamples of whole windows.  The same seed
 * gives the same figures.  Returns 0 or -ENOMEM. */
int stat_bootstrap(const struct stat_side *a, const struct stat_side *b, uint64_t seed,
		   struct stat_interval *ret_interval);

struct stat_test {
	double p, weight; /* weight > 0, chosen without knowledge of p */
};

/* Applies Holm's correction with weights, in place: afterwards the chance of one false alarm among
 * all rows with p below some value is at most that value.  Returns 0 or -ENOMEM. */
int stat_holm(struct stat_test *test, size_t count);

#endif
