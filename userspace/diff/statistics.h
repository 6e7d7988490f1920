/* SPDX-License-Identifier: BSD-2-Clause */
/* Do two sets of windows differ, and by how much?  Figures only: nothing here knows of profiles. */
#ifndef DIFF_STATISTICS_H
#define DIFF_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* Up to so many windows a side the distribution of U is counted out, that of ties as well. */
#define STATISTICS_MAX_EXACT 20U

/* One side: window i took value[i] of weight[i].  Borrowed. */
struct stat_side {
	const double *value, *weight;
	uint32_t count;
};

/* sum of values / sum of weights; 0 without any weight. */
double stat_share(const struct stat_side *side);
/* Standard deviation / mean of the windows' shares; < 0: not known (fewer than 2, or all 0). */
double stat_cov(const struct stat_side *side);

/* Two-sided p of a standard normal z, and of Student's t. */
double stat_normal_p(double z);
double stat_student_p(double t, double freedom);

/* For many tests of sides of these sizes. */
struct mann_whitney;
/* Both counts at least 1.  0 or -ENOMEM. */
int mann_whitney_new(uint32_t a_count, uint32_t b_count, struct mann_whitney **ret_test);
void mann_whitney_free(struct mann_whitney *test);
DEFINE_OWNED(struct mann_whitney, mann_whitney)
/* Two-sided p of the hypothesis that a and b come from one distribution: exact, or above
 * STATISTICS_MAX_EXACT by the normal approximation, corrected for ties and continuity. */
double mann_whitney_p(struct mann_whitney *test, const double *a, const double *b);

struct stat_interval {
	double low, high; /* of 95 % of the resamples */
	double error[2];  /* standard error of each side's share */
};

/* share(b) - share(a) over resamples of whole windows.  The same seed gives the same figures.
 * 0 or -ENOMEM. */
int stat_bootstrap(const struct stat_side *a, const struct stat_side *b, uint64_t seed,
		   struct stat_interval *ret_interval);

struct stat_test {
	double p, weight; /* weight > 0, chosen without a look at p */
};

/* Holm's correction with weights, in place: p of each so that the chance of one false alarm among all is
 * at most p.  0 or -ENOMEM. */
int stat_holm(struct stat_test *test, size_t count);

#endif
