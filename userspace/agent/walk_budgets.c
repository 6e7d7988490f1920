/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/walk_budgets.h"

#include <pyprofd/limits.h>

#include "base/clock.h"

#define PPM 1000000ULL
/* Parts of a CPU. */
#define SWITCHES_PPM 5000ULL
#define MEMORY_PPM 10000ULL
/* Of a history that nobody has asked for by name: each walk is a row to be named and written, and a
 * line of a few hundred KiB is of no interest there. */
#define MEMORY_DEFAULT_PPM 2500ULL
#define MEMORY_DEFAULT_SHIFT 3U
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

/* All together take no more of a CPU than its part of --max-cpu, however that is divided. */
static uint64_t capped(uint64_t ppm, uint64_t sum_ppm, const struct options *options, uint32_t cpus)
{
	const uint64_t cap_ppm = cpus ? options->max_cpu_ppm / cpus : options->max_cpu_ppm;

	return options->max_cpu_ppm && sum_ppm > cap_ppm ? ppm * cap_ppm / sum_ppm : ppm;
}

/* --budget-cpu is the sum of all.  Samples are always taken, as they also divide the ledger's CPU
 * time. */
struct walk_budgets walk_budgets_of(const struct options *options, uint32_t cpus)
{
	bool has_switches = options->events & PP_CAPTURES_OF_WAITS || options->timeline;
	const bool is_default = options->events_are_default;
	uint64_t memory = !(options->events & PP_CAPTURE_MEM) ? 0
			  : is_default			      ? MEMORY_DEFAULT_PPM
							      : MEMORY_PPM;
	uint64_t samples = samples_ppm(options->hz), switches = SWITCHES_PPM, sum;

	if (options->budget_cpu_ppm) {
		memory = memory ? options->budget_cpu_ppm / 4 : 0;
		switches = has_switches ? (options->budget_cpu_ppm - memory) / 3 : 0;
		samples = options->budget_cpu_ppm - memory - switches;
	}
	sum = samples + memory + (has_switches ? switches : 0);
	samples = capped(samples, sum, options, cpus);
	switches = capped(switches, sum, options, cpus);
	memory = capped(memory, sum, options, cpus);
	return (struct walk_budgets){
		.sample_ns = (uint32_t)(samples * PP_BUDGET_PERIOD_NS / PPM),
		.switch_ns = (uint32_t)(switches * PP_BUDGET_PERIOD_NS / PPM),
		.memory_ns = (uint32_t)(memory * PP_BUDGET_PERIOD_NS / PPM),
		.memory_shift_min = is_default ? MEMORY_DEFAULT_SHIFT : 0,
	};
}
