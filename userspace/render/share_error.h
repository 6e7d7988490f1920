/* SPDX-License-Identifier: BSD-2-Clause */
/* The standard error of a share of all, where events come by chance. */
#ifndef RENDER_SHARE_ERROR_H
#define RENDER_SHARE_ERROR_H

#include <stdbool.h>

struct share_part {
	double value;	  /* sum */
	double per_event; /* sum of value^2 / events: the variance that counting alone gives */
};

/* few_known: the events stand for others, so that their number is known from themselves only
 * (`effective`).  The error is then as much larger as Student's distribution of so few is wider:
 * 1.96 of it holds the truth in 95 of 100. */
double share_error(const struct share_part *part, const struct share_part *all, bool few_known);

#endif
