/* SPDX-License-Identifier: BSD-2-Clause */
/* What of the difference between two sides is more than chance. */
#ifndef DIFF_SIGNIFICANCE_H
#define DIFF_SIGNIFICANCE_H

#include "diff/table.h"

/* From so many windows a side on, p is that of Mann-Whitney's U; below, of Student's t. */
#define DIFF_MIN_WINDOWS 8U
/* Of both sides together; rows with fewer samples are not tested, so they cost the others nothing. */
#define DIFF_MIN_SAMPLES 20

/* How p is found. */
enum diff_way { DIFF_WAY_RANKS, DIFF_WAY_BOOTSTRAP, DIFF_WAY_SAMPLES, DIFF_WAY_NONE };
enum diff_way diff_way(const struct diff_data *data);

/* Fills share, cov and p of every row's change; p is corrected over all of the table.
 * ret_tests: how many there were.  0 or -ENOMEM. */
int diff_test_table(struct diff_data *data, enum diff_by by, uint32_t *ret_tests);
/* Fills low and high.  0 or -ENOMEM. */
int diff_test_interval(const struct diff_data *data, struct diff_row *row, enum diff_column column);
/* All time by recorded time: share is that, of one CPU when the values are times.  p is of this one
 * test.  0 or -ENOMEM. */
int diff_test_all(const struct diff_data *data, double unit_ns, struct diff_change *ret_change);

#endif
