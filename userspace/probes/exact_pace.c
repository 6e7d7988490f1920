/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/exact_pace.h"

#define LEAST_SHARE 10U /* a tenth of the time is a process's own, however late it is */

static double share_of(const struct exact_pace *one, uint64_t elapsed_ns, double cost_ns)
{
	const uint64_t most_ns = elapsed_ns - elapsed_ns / LEAST_SHARE;
	/* On a busy machine the time without a CPU is no time of the process. */
	const uint64_t late_ns = one->delay_ns < most_ns ? one->delay_ns : most_ns;

	return elapsed_ns ? cost_ns / (double)(elapsed_ns - late_ns) : 0;
}

double exact_pace_share(const struct exact_pace *of, size_t count, uint64_t elapsed_ns,
			uint64_t cost_ns)
{
	uint64_t cpu_ns = 0;
	double most = 0;

	for (size_t i = 0; i < count; i++)
		cpu_ns += of[i].cpu_ns;
	for (size_t i = 0; i < count; i++) {
		const double part = cpu_ns ? (double)of[i].cpu_ns / (double)cpu_ns : 1;
		const double share = share_of(&of[i], elapsed_ns, (double)cost_ns * part);

		if (share > most)
			most = share;
	}
	return most;
}
