/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/rate.h"

#include <pyprofd/limits.h>

#include "attach/cpu_events.h"
#include "attach/kernel_side.h"
#include "base/clock.h"
#include "base/log.h"

#define PPM 1000000ULL
#define PPM_PER_PERCENT 1e4
/* A step is taken back when twice the cost would stay below this share of the cap. */
#define CALM_PERCENT 80U
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

/* ---- the budgets of walks ---- */

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

/* ---- the rate ---- */

/* A profile has one period. */
static bool is_one_profile(const struct options *options)
{
	return options->output_kind == OPTIONS_OUTPUT_PPROF ||
	       options->output_kind == OPTIONS_OUTPUT_FOLDED;
}

void rate_init(struct rate *rate)
{
	const struct options *options = rate->options;

	rate->start_hz = rate->asked_hz = options->hz;
	rate->cap_ppm = is_one_profile(options) ? 0 : options->max_cpu_ppm;
}

void rate_ask(struct rate *rate, uint32_t hz, uint32_t max_cpu_ppm)
{
	rate->asked_hz = hz;
	rate->failed_hz = 0;
	rate->options->max_cpu_ppm = max_cpu_ppm;
	rate->cap_ppm = is_one_profile(rate->options) ? 0 : max_cpu_ppm;
	rate->is_stale = true;
}

static uint32_t wanted_hz(const struct rate *rate)
{
	return (rate->asked_hz >> rate->wanted_steps) ?: 1;
}

/* Told once: a cap that cannot be held is not told each window. */
static void tell_floor(struct rate *rate, uint32_t ppm)
{
	if (rate->wanted_steps < RATE_STEPS_MAX || ppm <= rate->cap_ppm || rate->is_floor_told)
		return;
	rate->is_floor_told = true;
	log_warn("pyprofd takes %.2f %% of a core at %u Hz, more than --max-cpu, and samples no "
		 "more rarely: give fewer --events, or choose processes",
		 ppm / PPM_PER_PERCENT, wanted_hz(rate));
}

static uint32_t share_ppm(uint64_t spent_ns, uint64_t elapsed_ns)
{
	const uint64_t ppm = elapsed_ns ? spent_ns * PPM / elapsed_ns : 0;

	return ppm < UINT32_MAX ? (uint32_t)ppm : UINT32_MAX;
}

/* Without a cap all steps are taken back. */
static bool has_room(const struct rate *rate, uint32_t ppm)
{
	return !rate->cap_ppm || 2ULL * ppm * 100 < (uint64_t)rate->cap_ppm * CALM_PERCENT;
}

/* Looks at the end of a window; the first look only begins: what the start takes is not the rate's
 * doing.  Returns what was taken of a core since the last look. */
static uint32_t look(struct rate *rate, uint64_t spent_ns, uint64_t now_ns)
{
	const bool is_first = !rate->looked_ns;
	const uint32_t ppm = share_ppm(spent_ns - rate->spent_ns, now_ns - rate->looked_ns);

	rate->spent_ns = spent_ns;
	rate->looked_ns = now_ns;
	if (is_first)
		return ppm;
	if (rate->cap_ppm && ppm > rate->cap_ppm) {
		rate->calm = 0;
		if (rate->wanted_steps < RATE_STEPS_MAX)
			rate->wanted_steps++;
	} else if (!rate->wanted_steps || !has_room(rate, ppm)) {
		rate->calm = 0;
	} else if (++rate->calm >= RATE_CALM_WINDOWS) {
		rate->calm = 0;
		rate->wanted_steps--;
	}
	return ppm;
}

void rate_govern(struct rate *rate, uint64_t spent_ns, uint64_t now_ns)
{
	const unsigned int before = rate->wanted_steps;
	const uint32_t ppm = look(rate, spent_ns, now_ns);

	if (rate->wanted_steps == before && rate->cap_ppm)
		tell_floor(rate, ppm);
	else if (rate->wanted_steps > before)
		log_warn("pyprofd took %.2f %% of a core, more than --max-cpu %.2f: it goes down "
			 "to %u Hz",
			 ppm / PPM_PER_PERCENT, rate->cap_ppm / PPM_PER_PERCENT, wanted_hz(rate));
	else if (rate->wanted_steps < before)
		log_info("pyprofd took %.2f %% of a core: it goes back up to %u Hz",
			 ppm / PPM_PER_PERCENT, wanted_hz(rate));
}

bool rate_can_be(const struct rate *rate, uint32_t hz)
{
	return hz == rate->start_hz ||
	       (!is_one_profile(rate->options) && hz <= rate->start_hz * RATE_GROWTH_MAX);
}

/* What the kernel side makes of the rate. */
static void configure(const struct rate *rate)
{
	const struct walk_budgets budgets =
		walk_budgets_of(rate->options, cpu_events_count(rate->events));
	volatile struct pp_config *config = kernel_side_config(rate->kernel);

	config->sample_budget_ns = budgets.sample_ns;
	config->switch_budget_ns = budgets.switch_ns;
	config->memory_budget_ns = budgets.memory_ns;
	config->memory_shift_min = budgets.memory_shift_min;
}

void rate_follow(struct rate *rate)
{
	const uint32_t before = rate->options->hz, hz = wanted_hz(rate);
	/* What has failed is tried again with the next step, or when it is asked for. */
	const bool has_failed = hz == rate->failed_hz && rate->wanted_steps == rate->steps;
	int err;

	if ((hz == before || has_failed) && !rate->is_stale)
		return;
	err = hz == before ? 0 : cpu_events_set_hz(rate->events, hz);
	if (err) {
		if (hz != rate->failed_hz)
			log_warn_errno(err, "cannot sample at %u Hz and stays at %u Hz", hz,
				       before);
		rate->failed_hz = hz;
		rate->wanted_steps = rate->steps;
	} else {
		rate->failed_hz = 0;
		rate->steps = rate->wanted_steps;
		rate->options->hz = hz;
	}
	rate->is_stale = false;
	configure(rate);
}
