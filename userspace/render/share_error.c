/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/share_error.h"

#include <math.h>

#define NORMAL_975 1.959964 /* quantile of the normal distribution */

/* The same quantile of Student's distribution (Abramowitz and Stegun, Handbook of Mathematical
 * Functions, 26.7.5);
 * 11 % too small for one degree of freedom, 1 % for two. */
static double student_975(double degrees)
{
	static const double term[] = {2.37227, 2.82250, 2.55585, 1.58953};
	double quantile = NORMAL_975, divisor = 1;

	for (unsigned int i = 0; i < sizeof(term) / sizeof(term[0]); i++) {
		divisor *= degrees;
		quantile += term[i] / divisor;
	}
	return quantile;
}

/* Degrees of freedom of a sum of two variances (Satterthwaite), each known from value^2 / per_event
 * events.  Each is a sum of squares about 0, not about a mean: no degree is lost. */
static double degrees_of(double mine, double others, double my_events, double others_events)
{
	double spread = 0;

	if (mine > 0)
		spread += mine * mine / my_events;
	if (others > 0)
		spread += others * others / others_events;
	return spread > 0 ? fmax((mine + others) * (mine + others) / spread, 1) : 1;
}

static double events_of(double value, double per_event)
{
	return per_event > 0 ? fmax(value * value / per_event, 1) : 1;
}

double share_error(const struct share_part *part, const struct share_part *all, bool few_known)
{
	double p = part->value / all->value, rest = all->value - part->value;
	double rest_per_event = fmax(all->per_event - part->per_event, 0);
	double mine = (1 - p) * (1 - p) * part->per_event, others = p * p * rest_per_event;
	double error = sqrt(mine + others) / all->value;

	if (!few_known)
		return error;
	error *= student_975(degrees_of(mine, others, events_of(part->value, part->per_event),
					events_of(rest, rest_per_event))) /
		 NORMAL_975;
	return fmin(error, sqrt(fmax(p * (1 - p), 0))); /* of a single event */
}
