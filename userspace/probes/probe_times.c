/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probe_times.h"

#include <string.h>

#include "base/budget.h"

/* What lies so many periods back counts for a third. */
#define MEMORY_PERIODS 8.0
#define CORRECTION_MAX 8.0
/* Less CPU time than this says nothing. */
#define LEAST_OWN_NS 1000000.0

/* ---- a probe's share of the time ---- */

static uint64_t open_ns(const struct probe_duty *duty)
{
	const uint64_t ns = duty->period_ns / BUDGET_FULL * duty->share_ppm;

	return ns ? ns : 1;
}

static void duty_begin(struct probe_duty *duty, uint64_t period_ns)
{
	*duty = (struct probe_duty){
		.period_ns = period_ns, .share_ppm = BUDGET_FULL, .is_on = true, .stands_for = 1};
}

static void duty_set(struct probe_duty *duty, uint32_t share_ppm, uint64_t now_ns)
{
	const bool stayed_on = duty->share_ppm == BUDGET_FULL;

	duty->share_ppm = share_ppm < BUDGET_FULL ? share_ppm : BUDGET_FULL;
	if (stayed_on && duty->share_ppm < BUDGET_FULL) {
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

static bool duty_wants_on(struct probe_duty *duty, uint64_t now_ns, uint32_t chance)
{
	if (duty->share_ppm == BUDGET_FULL) {
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

static void duty_open(struct probe_duty *duty, uint64_t now_ns, double correction,
		      struct pp_gate *ret_gate)
{
	const uint64_t ns = open_ns(duty);
	const double periods = (double)duty->stands_for * (double)duty->period_ns / (double)ns;

	if (duty->share_ppm == BUDGET_FULL) {
		*ret_gate = (struct pp_gate){};
		return;
	}
	duty->changes_ns = now_ns + ns;
	*ret_gate = (struct pp_gate){
		.from_ns = now_ns,
		.until_ns = now_ns + ns,
		.scale = (uint64_t)(periods * correction * (1U << PP_GATE_SCALE_SHIFT))};
}

/* ---- how much a hit stands for ---- */

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

static void pace_open(struct probe_pace *pace, const struct probe_pace_point *point)
{
	const double keep = 1 - 1 / MEMORY_PERIODS;
	double ns, own_ns;

	if (span(&pace->opened, point, &ns, &own_ns)) {
		pace->all_ns = pace->all_ns * keep + ns;
		pace->all_own_ns = pace->all_own_ns * keep + own_ns;
	}
	pace->opened = *point;
}

static void pace_close(struct probe_pace *pace, const struct probe_pace_point *point)
{
	const double keep = 1 - 1 / MEMORY_PERIODS;
	double ns, own_ns;

	if (!span(&pace->opened, point, &ns, &own_ns))
		return;
	pace->on_ns = pace->on_ns * keep + ns;
	pace->on_own_ns = pace->on_own_ns * keep + own_ns;
}

static void pace_restart(struct probe_pace *pace)
{
	*pace = (struct probe_pace){};
}

static double pace_correction(const struct probe_pace *pace)
{
	double correction;

	if (pace->on_own_ns < LEAST_OWN_NS || pace->all_own_ns < LEAST_OWN_NS)
		return 1;
	correction = pace->all_own_ns / pace->all_ns / (pace->on_own_ns / pace->on_ns);
	if (correction > CORRECTION_MAX)
		return CORRECTION_MAX;
	return correction < 1 / CORRECTION_MAX ? 1 / CORRECTION_MAX : correction;
}

/* ---- all probes ---- */

void probe_times_begin(struct probe_times *times, uint64_t period_ns)
{
	memset(times, 0, sizeof(*times));
	times->period_ns = period_ns;
}

void probe_times_add(struct probe_times *times, uint32_t probe, uint32_t leader, uint64_t now_ns)
{
	duty_begin(&times->probe[probe].duty, times->period_ns);
	times->probe[probe].leader = leader;
	times->probe[probe].is_used = times->probe[probe].is_on = true;
	times->probe[probe].since_ns = now_ns;
}

void probe_times_leave_pace(struct probe_times *times, uint32_t probe)
{
	times->probe[probe].has_no_pace = true;
}

void probe_times_set_period(struct probe_times *times, uint32_t probe, uint64_t period_ns)
{
	times->probe[probe].duty.period_ns = period_ns;
}

bool probe_times_are_used(const struct probe_times *times)
{
	for (uint32_t i = 0; i < PP_PROBES_MAX; i++)
		if (times->probe[i].is_used)
			return true;
	return false;
}

void probe_times_set_share(struct probe_times *times, uint32_t probe, uint32_t share_ppm,
			   uint64_t now_ns)
{
	/* Others go with their leader. */
	if (times->probe[probe].is_used && times->probe[probe].leader == probe)
		duty_set(&times->probe[probe].duty, share_ppm, now_ns);
}

uint64_t probe_times_look(struct probe_times *times, uint64_t now_ns, uint32_t chance)
{
	uint64_t off = 0;

	for (uint32_t i = 0; i < PP_PROBES_MAX; i++)
		if (times->probe[i].is_used && times->probe[i].leader == i &&
		    !duty_wants_on(&times->probe[i].duty, now_ns, chance))
			off |= 1ULL << i;
	for (uint32_t i = 0; i < PP_PROBES_MAX; i++)
		if (times->probe[i].is_used && off >> times->probe[i].leader & 1)
			off |= 1ULL << i;
	times->off = off;
	return off;
}

void probe_times_close(struct probe_times *times, const struct probe_pace_point *now)
{
	for (uint32_t i = 0; i < PP_PROBES_MAX; i++)
		if (times->probe[i].is_used && times->probe[i].is_on && !times->probe[i].since_ns &&
		    times->off >> i & 1)
			pace_close(&times->probe[i].pace, now);
}

void probe_times_restart_paces(struct probe_times *times)
{
	for (uint32_t i = 0; i < PP_PROBES_MAX; i++)
		pace_restart(&times->probe[i].pace);
}

bool probe_times_apply(struct probe_times *times, uint32_t probe,
		       const struct probe_pace_point *now, struct pp_gate *ret_gate)
{
	const uint64_t now_ns = now->time_ns;
	struct probe_pace *pace = &times->probe[probe].pace;
	struct probe_duty *duty = &times->probe[times->probe[probe].leader].duty;
	const bool is_on = !(times->off >> probe & 1);
	const bool stays_on = is_on && duty->share_ppm == BUDGET_FULL;
	const bool stayed_on = times->probe[probe].since_ns;

	if (is_on == times->probe[probe].is_on && stays_on == stayed_on)
		return false;
	if (stayed_on)
		times->probe[probe].on_ns += now_ns - times->probe[probe].since_ns;
	times->probe[probe].since_ns = stays_on ? now_ns : 0;
	times->probe[probe].is_on = is_on;
	/* Closed: the time has passed in which it was open. */
	*ret_gate = (struct pp_gate){.from_ns = 1, .until_ns = 1};
	if (is_on && !stays_on)
		pace_open(pace, now);
	if (is_on)
		duty_open(duty, now_ns, times->probe[probe].has_no_pace ? 1 : pace_correction(pace),
			  ret_gate);
	if (is_on && !stays_on)
		times->probe[probe].on_ns += ret_gate->until_ns - ret_gate->from_ns;
	return true;
}

uint64_t probe_times_next_ns(const struct probe_times *times)
{
	uint64_t next_ns = UINT64_MAX;

	for (uint32_t i = 0; i < PP_PROBES_MAX; i++) {
		const uint64_t changes_ns = times->probe[i].duty.changes_ns;

		if (times->probe[i].is_used && changes_ns && changes_ns < next_ns)
			next_ns = changes_ns;
	}
	return next_ns;
}

uint64_t probe_times_on_ns(const struct probe_times *times, uint32_t probe, uint64_t now_ns)
{
	const struct probe_duty *duty = &times->probe[times->probe[probe].leader].duty;
	const uint64_t since_ns = times->probe[probe].since_ns;
	const bool stays_on = since_ns && now_ns > since_ns;
	const uint64_t on_ns = times->probe[probe].on_ns + (stays_on ? now_ns - since_ns : 0);
	const bool is_open = times->probe[probe].is_on && !since_ns;

	/* The gate's time was added when it was opened. */
	return on_ns - (is_open && duty->changes_ns > now_ns ? duty->changes_ns - now_ns : 0);
}
