/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probe_duty.h"

static uint64_t open_ns(const struct probe_duty *duty)
{
	const uint64_t ns = duty->period_ns / PROBE_DUTY_FULL * duty->share_ppm;

	return ns ? ns : 1;
}

void probe_duty_begin(struct probe_duty *duty, uint64_t period_ns)
{
	*duty = (struct probe_duty){.period_ns = period_ns,
				    .share_ppm = PROBE_DUTY_FULL,
				    .is_on = true,
				    .stands_for = 1};
}

void probe_duty_set(struct probe_duty *duty, uint32_t share_ppm, uint64_t now_ns)
{
	const bool stayed_on = duty->share_ppm == PROBE_DUTY_FULL;

	duty->share_ppm = share_ppm < PROBE_DUTY_FULL ? share_ppm : PROBE_DUTY_FULL;
	if (stayed_on && duty->share_ppm < PROBE_DUTY_FULL) {
		/* It was on for long enough; the next period begins now. */
		duty->began_ns = now_ns - duty->period_ns;
		duty->changes_ns = now_ns;
	}
}

/* Begins the next period: returns when in it the links go on. */
static uint64_t next_on(struct probe_duty *duty, uint64_t now_ns, uint32_t chance)
{
	const uint64_t room_ns = duty->period_ns - open_ns(duty);

	duty->began_ns += duty->period_ns;
	duty->stands_for = 1;
	if (now_ns > duty->began_ns) {
		const uint64_t missed = (now_ns - duty->began_ns) / duty->period_ns;

		duty->began_ns += missed * duty->period_ns;
		duty->stands_for += missed;
	}
	return duty->began_ns + (uint64_t)((double)room_ns * chance / UINT32_MAX);
}

bool probe_duty_wants_on(struct probe_duty *duty, uint64_t now_ns, uint32_t chance)
{
	if (duty->share_ppm == PROBE_DUTY_FULL) {
		duty->began_ns = duty->changes_ns = 0;
		duty->is_on = true;
		return true;
	}
	if (!duty->changes_ns || now_ns < duty->changes_ns)
		return duty->is_on;
	duty->is_on = !duty->is_on;
	duty->changes_ns = duty->is_on ? 0 : next_on(duty, now_ns, chance);
	return duty->is_on;
}

void probe_duty_open(struct probe_duty *duty, uint64_t now_ns, double correction,
		     struct pp_gate *ret_gate)
{
	const uint64_t ns = open_ns(duty);
	const double periods = (double)duty->stands_for * (double)duty->period_ns / (double)ns;

	if (duty->share_ppm == PROBE_DUTY_FULL) {
		*ret_gate = (struct pp_gate){};
		return;
	}
	duty->changes_ns = now_ns + ns;
	*ret_gate = (struct pp_gate){
		.from_ns = now_ns,
		.until_ns = now_ns + ns,
		.scale = (uint64_t)(periods * correction * (1U << PP_GATE_SCALE_SHIFT))};
}
