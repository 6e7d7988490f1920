/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probe_pace.h"

#include <stdbool.h>

/* What lies so many periods back counts for a third. */
#define MEMORY_PERIODS 8.0
#define CORRECTION_MAX 8.0
/* Less CPU time than this says nothing. */
#define LEAST_OWN_NS 1000000.0

/* Returns whether `to` comes after `from`; a part of the sums may end before another one begins. */
static bool span(const struct probe_pace_point *from, const struct probe_pace_point *to,
		 double *ret_ns, double *ret_own_ns)
{
	if (!from->time_ns || to->time_ns <= from->time_ns)
		return false;
	*ret_ns = (double)(to->time_ns - from->time_ns);
	*ret_own_ns = to->own_ns > from->own_ns ? (double)(to->own_ns - from->own_ns) : 0;
	return true;
}

void probe_pace_open(struct probe_pace *pace, const struct probe_pace_point *point)
{
	const double keep = 1 - 1 / MEMORY_PERIODS;
	double ns, own_ns;

	if (span(&pace->opened, point, &ns, &own_ns)) {
		pace->all_ns = pace->all_ns * keep + ns;
		pace->all_own_ns = pace->all_own_ns * keep + own_ns;
	}
	pace->opened = *point;
}

void probe_pace_close(struct probe_pace *pace, const struct probe_pace_point *point)
{
	const double keep = 1 - 1 / MEMORY_PERIODS;
	double ns, own_ns;

	if (!span(&pace->opened, point, &ns, &own_ns))
		return;
	pace->on_ns = pace->on_ns * keep + ns;
	pace->on_own_ns = pace->on_own_ns * keep + own_ns;
}

void probe_pace_restart(struct probe_pace *pace)
{
	*pace = (struct probe_pace){};
}

double probe_pace_correction(const struct probe_pace *pace)
{
	double correction;

	if (pace->on_own_ns < LEAST_OWN_NS || pace->all_own_ns < LEAST_OWN_NS)
		return 1;
	correction = pace->all_own_ns / pace->all_ns / (pace->on_own_ns / pace->on_ns);
	if (correction > CORRECTION_MAX)
		return CORRECTION_MAX;
	return correction < 1 / CORRECTION_MAX ? 1 / CORRECTION_MAX : correction;
}
