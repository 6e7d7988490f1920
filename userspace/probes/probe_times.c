/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probe_times.h"

#include <string.h>

void probe_times_begin(struct probe_times *times, uint64_t period_ns)
{
	memset(times, 0, sizeof(*times));
	times->period_ns = period_ns;
}

void probe_times_add(struct probe_times *times, uint32_t probe, uint32_t leader, uint64_t now_ns)
{
	probe_duty_begin(&times->probe[probe].duty, times->period_ns);
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
		probe_duty_set(&times->probe[probe].duty, share_ppm, now_ns);
}

uint64_t probe_times_look(struct probe_times *times, uint64_t now_ns, uint32_t chance)
{
	uint64_t off = 0;

	for (uint32_t i = 0; i < PP_PROBES_MAX; i++)
		if (times->probe[i].is_used && times->probe[i].leader == i &&
		    !probe_duty_wants_on(&times->probe[i].duty, now_ns, chance))
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
			probe_pace_close(&times->probe[i].pace, now);
}

void probe_times_restart_paces(struct probe_times *times)
{
	for (uint32_t i = 0; i < PP_PROBES_MAX; i++)
		probe_pace_restart(&times->probe[i].pace);
}

bool probe_times_apply(struct probe_times *times, uint32_t probe,
		       const struct probe_pace_point *now, struct pp_gate *ret_gate)
{
	const uint64_t now_ns = now->time_ns;
	struct probe_pace *pace = &times->probe[probe].pace;
	struct probe_duty *duty = &times->probe[times->probe[probe].leader].duty;
	const bool is_on = !(times->off >> probe & 1);
	const bool stays_on = is_on && duty->share_ppm == PROBE_DUTY_FULL;
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
		probe_pace_open(pace, now);
	if (is_on)
		probe_duty_open(duty, now_ns,
				times->probe[probe].has_no_pace ? 1 : probe_pace_correction(pace),
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
	const uint64_t on_ns = times->probe[probe].on_ns + (since_ns ? now_ns - since_ns : 0);
	const bool is_open = times->probe[probe].is_on && !since_ns;

	/* The gate's time was added when it was opened. */
	return on_ns - (is_open && duty->changes_ns > now_ns ? duty->changes_ns - now_ns : 0);
}
