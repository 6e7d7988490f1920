/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses --fail-if 'self > 3% p < 0.01', which decides when a difference fails a build. */
#ifndef DIFF_RULE_H
#define DIFF_RULE_H

#include "diff/table.h"

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
