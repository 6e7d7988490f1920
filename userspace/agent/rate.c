/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/rate.h"

#include "agent/walk_budgets.h"
#include "attach/cpu_events.h"
#include "attach/kernel_side.h"
#include "base/log.h"
#include "options/options.h"

#define PPM_PER_PERCENT 1e4

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
	rate->governor.cap_ppm = is_one_profile(options) ? 0 : options->max_cpu_ppm;
}

void rate_ask(struct rate *rate, uint32_t hz, uint32_t max_cpu_ppm)
{
	rate->asked_hz = hz;
	rate->failed_hz = 0;
	rate->options->max_cpu_ppm = max_cpu_ppm;
	rate->governor.cap_ppm = is_one_profile(rate->options) ? 0 : max_cpu_ppm;
	rate->is_stale = true;
}

static uint32_t wanted_hz(const struct rate *rate)
{
	return (rate->asked_hz >> rate->governor.steps) ?: 1;
}

/* Told once: a cap that cannot be held is not told each window. */
static void tell_floor(struct rate *rate, uint32_t ppm)
{
	if (rate->governor.steps < GOVERNOR_STEPS_MAX || ppm <= rate->governor.cap_ppm ||
	    rate->is_floor_told)
		return;
	rate->is_floor_told = true;
	log_warn("pyprofd takes %.2f %% of a core at %u Hz, more than --max-cpu, and samples no "
		 "more rarely: give fewer --events, or choose processes",
		 ppm / PPM_PER_PERCENT, wanted_hz(rate));
}

void rate_govern(struct rate *rate, uint64_t spent_ns, uint64_t now_ns)
{
	const unsigned int before = rate->governor.steps;
	uint32_t ppm;

	if (!governor_look(&rate->governor, spent_ns, now_ns, &ppm)) {
		if (rate->governor.cap_ppm)
			tell_floor(rate, ppm);
		return;
	}
	if (rate->governor.steps > before)
		log_warn("pyprofd took %.2f %% of a core, more than --max-cpu %.2f: it goes down "
			 "to %u Hz",
			 ppm / PPM_PER_PERCENT, rate->governor.cap_ppm / PPM_PER_PERCENT,
			 wanted_hz(rate));
	else
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

	config->sample_period_ns = (uint32_t)cpu_events_period_ns(rate->events);
	config->sample_budget_ns = budgets.sample_ns;
	config->switch_budget_ns = budgets.switch_ns;
	config->memory_budget_ns = budgets.memory_ns;
	config->memory_shift_min = budgets.memory_shift_min;
}

void rate_follow(struct rate *rate)
{
	const uint32_t before = rate->options->hz, hz = wanted_hz(rate);
	/* What has failed is tried again with the governor's next step, or when it is asked for. */
	const bool has_failed = hz == rate->failed_hz && rate->governor.steps == rate->steps;
	int err;

	if ((hz == before || has_failed) && !rate->is_stale)
		return;
	err = hz == before ? 0 : cpu_events_set_hz(rate->events, hz);
	if (err) {
		if (hz != rate->failed_hz)
			log_warn_errno(err, "cannot sample at %u Hz and stays at %u Hz", hz,
				       before);
		rate->failed_hz = hz;
		rate->governor.steps = rate->steps;
	} else {
		rate->failed_hz = 0;
		rate->steps = rate->governor.steps;
		rate->options->hz = hz;
	}
	rate->is_stale = false;
	configure(rate);
}
