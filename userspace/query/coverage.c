/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/coverage.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/kinds.h"
#include "profile/comments.h"

#define WHOLE 0.98
#define SIGMAS 3.0
#define TICK_NS (10.0 * NS_PER_MS) /* of the scheduler's times in /proc, which are sampled too */

void coverage_add(struct coverage *coverage, const char *comment)
{
	coverage->cpu_ns += facts_number(comment, "cpu_ns");
	coverage->scheduler_ns += facts_number(comment, "scheduler_ns");
	coverage->wait_ns += facts_number(comment, "wait_ns");
	coverage->ledger_wait_ns += facts_number(comment, "ledger_wait_ns");
	coverage->samples += facts_number(comment, "samples");
}

/* Returns whether CPU time is missing.  Samples and ticks come at random: their counts vary by
 * their roots. */
static bool incomplete_cpu(const struct coverage *coverage)
{
	const double got = (double)coverage->cpu_ns, all = (double)coverage->scheduler_ns;
	const double period = coverage->samples ? got / (double)coverage->samples : TICK_NS;

	return all > 0 && got < WHOLE * all && all - got > SIGMAS * sqrt(all * (period + TICK_NS));
}

static bool incomplete_waits(const struct coverage *coverage)
{
	return (double)coverage->wait_ns < WHOLE * (double)coverage->ledger_wait_ns;
}

static double percent(uint64_t part, uint64_t all)
{
	return 100.0 * (double)part / (double)all;
}

/* Returns whether the kind includes a part; `wall` includes both. */
static bool has(const char *kind, enum pp_profile part)
{
	return kind && (kind_is(kind, part) || kind_is(kind, PP_PROFILE_WALL));
}

const char *coverage_text(const struct coverage *coverage, const char *kind,
			  char buffer[COVERAGE_BYTES])
{
	const bool cpu = has(kind, PP_PROFILE_CPU) && incomplete_cpu(coverage);
	const bool waits = has(kind, PP_PROFILE_OFFCPU) && incomplete_waits(coverage);
	char part[2][COVERAGE_BYTES / 3] = {"", ""};

	if (cpu)
		snprintf(part[0], sizeof(part[0]), "%.1f %% of the scheduler's %.1f s of CPU time",
			 percent(coverage->cpu_ns, coverage->scheduler_ns),
			 (double)coverage->scheduler_ns / (double)NS_PER_SEC);
	if (waits)
		snprintf(part[1], sizeof(part[1]), "%.1f %% of the ledger's %.1f s of waits",
			 percent(coverage->wait_ns, coverage->ledger_wait_ns),
			 (double)coverage->ledger_wait_ns / (double)NS_PER_SEC);
	buffer[0] = '\0';
	if (cpu || waits)
		snprintf(buffer, COVERAGE_BYTES, "only %s%s%s %s in it", part[0],
			 cpu && waits ? " and " : "", part[1], cpu && waits ? "are" : "is");
	return buffer;
}
