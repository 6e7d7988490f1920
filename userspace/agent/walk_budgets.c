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
#define CAP_MAX_PPM 500000ULL /* half of a CPU is the programs' */
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
static uint64_t capped(uint64_t ppm, uint64_t sum_ppm, uint64_t cap_ppm)
{
	return cap_ppm && sum_ppm > cap_ppm ? ppm * cap_ppm / sum_ppm : ppm;
}

/* Of a run that has an end --max-cpu is the sum of all, up to a half of each CPU; a permanent run
 * stays below its own bounds, too.  Samples are always taken, as they also divide the ledger's CPU
 * time. */
struct walk_budgets walk_budgets_of(const struct options *options, uint32_t cpus)
{
	bool has_switches = options->events & PP_CAPTURES_OF_WAITS || options->timeline;
	const bool is_default = options->events_are_default;
	uint64_t memory = !(options->events & PP_CAPTURE_MEM) ? 0
			  : is_default			      ? MEMORY_DEFAULT_PPM
							      : MEMORY_PPM;
	uint64_t samples = samples_ppm(options->hz), switches = SWITCHES_PPM, sum;
	uint64_t cap = options->max_cpu_ppm / (cpus ?: 1);

	if (cap > CAP_MAX_PPM)
		cap = CAP_MAX_PPM;
	if (cap && (options->duration_ns || options->command)) {
		memory = memory ? cap / 4 : 0;
		switches = has_switches ? (cap - memory) / 3 : 0;
		samples = cap - memory - switches;
	}
	sum = samples + memory + (has_switches ? switches : 0);
	samples = capped(samples, sum, cap);
	switches = capped(switches, sum, cap);
	memory = capped(memory, sum, cap);
	return (struct walk_budgets){
		.sample_ns = (uint32_t)(samples * PP_BUDGET_PERIOD_NS / PPM),
		.switch_ns = (uint32_t)(switches * PP_BUDGET_PERIOD_NS / PPM),
		.memory_ns = (uint32_t)(memory * PP_BUDGET_PERIOD_NS / PPM),
		.memory_shift_min = is_default ? MEMORY_DEFAULT_SHIFT : 0,
	};
}
