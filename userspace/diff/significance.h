/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides which differences between two sides are more than chance. */
#ifndef DIFF_SIGNIFICANCE_H
#define DIFF_SIGNIFICANCE_H

#include "diff/table.h"

/* With at least this many windows per side, p is that of Mann-Whitney's U; with fewer, of Student's
 * t. */
#define DIFF_MIN_WINDOWS 8U
/* Of both sides together.  Rows with fewer samples are not tested, so that they do not weaken the
 * correction for the others. */
#define DIFF_MIN_SAMPLES 20

/* How p is computed. */
enum significance_way {
	SIGNIFICANCE_BY_RANKS,
	SIGNIFICANCE_BY_BOOTSTRAP,
	SIGNIFICANCE_BY_SAMPLES,
	SIGNIFICANCE_BY_NONE
};
enum significance_way significance_way(const struct diff_data *data);

/* Fills share, cov and p of every row's change; p is corrected over the whole table.
 * ret_tests: the number of tests.  Returns 0 or -ENOMEM. */
int significance_of_table(struct diff_data *data, enum diff_by by, uint32_t *ret_tests);
/* Fills low and high.  Returns 0 or -ENOMEM. */
int significance_interval(const struct diff_data *data, struct diff_row *row,
			  enum diff_column column);
/* Tests the total time per recorded time: share is the total in CPUs when the values are times.  p
 * is of this single test.  Returns 0 or -ENOMEM. */
int significance_of_all(const struct diff_data *data, double unit_ns,
			struct diff_change *ret_change);

#define DIFF_RULE_DEFAULT_P 0.05

struct diff_rule {
	enum diff_by by;
	enum diff_column column;
	bool shrinks;  /* '<': below -points */
	double change; /* of the share of the total: 0.03 */
	double p;
};

/* Parses "[function|line|stack] self|total >|< N% [p < P]".  Returns 0 or -EINVAL. */
int diff_rule_parse(const char *text, struct diff_rule *ret_rule);
/* Returns whether a row of the rule's table meets the rule. */
bool diff_rule_holds(const struct diff_rule *rule, const struct diff_row *row);

#endif
