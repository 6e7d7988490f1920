/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/walk_budgets.h"

#include <pyprofd/limits.h>

#include "base/clock.h"

#define PPM 1000000ULL
/* Parts of a CPU. */
#define SWITCHES_PPM 5000ULL
#define SAMPLES_MIN_PPM 10000ULL
#define SAMPLES_MAX_PPM 200000ULL
/* A usual sample costs 10 to 40 us.  Who asks for a high rate gets the time for it. */
#define SAMPLE_NS 50000ULL

static uint64_t samples_ppm(uint32_t hz)
{
	uint64_t ppm = hz * SAMPLE_NS * PPM / NS_PER_SEC;

	if (ppm < SAMPLES_MIN_PPM)
		return SAMPLES_MIN_PPM;
	return ppm > SAMPLES_MAX_PPM ? SAMPLES_MAX_PPM : ppm;
}

/* --budget-cpu is the sum of both.  Samples are always taken, as they also divide the ledger's CPU
 * time. */
struct walk_budgets walk_budgets_of(const struct options *options)
{
	bool has_switches = options->events & PP_CAPTURES_OF_WAITS ||
			    options->timeline;
	uint64_t samples = samples_ppm(options->hz), switches = SWITCHES_PPM;

	if (options->budget_cpu_ppm) {
		switches = has_switches ? options->budget_cpu_ppm / 3 : 0;
		samples = options->budget_cpu_ppm - switches;
	}
	return (struct walk_budgets){
		.sample_ns = (uint32_t)(samples * PP_BUDGET_PERIOD_NS / PPM),
		.switch_ns = (uint32_t)(switches * PP_BUDGET_PERIOD_NS / PPM),
	};
}
