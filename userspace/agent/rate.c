/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/rate.h"

#include "agent/walk_budgets.h"
#include "attach/cpu_events.h"
#include "attach/kernel_side.h"
#include "base/log.h"
#include "options/options.h"

void rate_init(struct rate *rate)
{
	rate->start_hz = rate->wanted_hz = rate->options->hz;
}

bool rate_can_be(const struct rate *rate, uint32_t hz)
{
	const bool is_one_profile = rate->options->output_kind == OPTIONS_OUTPUT_PPROF ||
				    rate->options->output_kind == OPTIONS_OUTPUT_FOLDED;

	return hz == rate->start_hz ||
	       (!is_one_profile && hz <= rate->start_hz * RATE_GROWTH_MAX);
}

/* What the kernel side makes of the rate. */
static void configure(const struct rate *rate)
{
	const struct walk_budgets budgets = walk_budgets_of(rate->options);
	volatile struct pp_config *config = kernel_side_config(rate->kernel);

	config->sample_period_ns = (uint32_t)cpu_events_period_ns(rate->events);
	config->sample_budget_ns = budgets.sample_ns;
	config->switch_budget_ns = budgets.switch_ns;
}

void rate_follow(struct rate *rate)
{
	const uint32_t before = rate->options->hz;
	int err;

	if (rate->wanted_hz == before)
		return;
	err = cpu_events_set_hz(rate->events, rate->wanted_hz);
	if (err) {
		log_warn_errno(err, "cannot sample at %u Hz and stays at %u Hz", rate->wanted_hz,
			       before);
		rate->wanted_hz = before;
		return;
	}
	rate->options->hz = rate->wanted_hz;
	configure(rate);
}
