/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probe_governor.h"

#define PPM 1000000.0
/* From one period to the next a share grows by no more than this. */
#define GROWTH 2U
/* A program's hits come in bursts: what was needed counts for less from period to period. */
#define FADES 0.8
#define ENOUGH 1e9 /* CPUs: nobody is bounded */

/* What a probe and those that have its share would take of a CPU if they stayed on. */
struct needs {
	double need[PP_PROBES_MAX]; /* by leader; 0: none */
	bool was_on[PP_PROBES_MAX]; /* by leader */
	double fixed;		    /* of those that stay on */
	double spent;		    /* ns, of all */
};

static void add_need(struct probe_governor *governor, uint32_t number,
		     const struct probe_costs *costs, uint64_t elapsed_ns, struct needs *needs)
{
	struct probe_governed *probe = &governor->probe[number];
	const uint64_t hits = costs->hits[number].hits - probe->hits;
	const uint64_t ns = costs->hits[number].ns - probe->ns;
	const uint64_t on_ns = costs->on_ns[number] - probe->on_ns;
	const double spent = (double)hits * probe->hit_ns + (double)ns;

	probe->hits = costs->hits[number].hits;
	probe->ns = costs->hits[number].ns;
	probe->on_ns = costs->on_ns[number];
	needs->spent += spent;
	probe->cost_ppm = elapsed_ns ? (uint32_t)(spent / (double)elapsed_ns * PPM) : 0;
	if (!on_ns)
		return;
	if (probe->stays_on)
		needs->fixed += spent / (double)on_ns;
	else
		needs->need[probe->leader] += spent / (double)on_ns;
	needs->was_on[probe->leader] = true;
}

/* Shares out what may be taken of a CPU: who needs less than an equal part leaves the rest to the
 * others.  Returns the part of those that need more. */
static double equal_part(const struct needs *needs, uint32_t count, double room)
{
	uint32_t left = 0;
	double part;
	bool has_changed = true;
	bool is_served[PP_PROBES_MAX] = {};

	for (uint32_t i = 0; i < count; i++)
		left += needs->need[i] > 0;
	while (left && has_changed) {
		has_changed = false;
		part = room / left;
		for (uint32_t i = 0; i < count; i++) {
			if (is_served[i] || needs->need[i] <= 0 || needs->need[i] > part)
				continue;
			is_served[i] = has_changed = true;
			room -= needs->need[i];
			left--;
		}
	}
	if (!left)
		return ENOUGH;
	return room > 0 ? room / left : 0;
}

/* Takes in what the periods before needed. */
static void remember_needs(struct probe_governor *governor, struct needs *needs)
{
	for (uint32_t i = 0; i < governor->count; i++) {
		struct probe_governed *probe = &governor->probe[i];
		const double before = needs->was_on[i] ? probe->need * FADES : probe->need;

		probe->need = needs->need[i] > before ? needs->need[i] : before;
		needs->need[i] = probe->need;
	}
}

static uint32_t share_of(double need, double part, uint32_t before)
{
	uint32_t share = PROBE_SHARE_FULL;

	if (need > part)
		share = (uint32_t)(part / need * PPM);
	if (share > before * GROWTH)
		share = before * GROWTH;
	return share < PROBE_SHARE_MIN ? PROBE_SHARE_MIN : share;
}

bool probe_governor_look(struct probe_governor *governor, const struct probe_costs *costs,
			 const struct probe_programs *of)
{
	const uint64_t elapsed_ns = of->elapsed_ns;
	struct needs needs = {};
	double programs, room, part;
	bool has_changed = false;

	if (!elapsed_ns)
		return false;
	for (uint32_t i = 0; i < governor->count; i++)
		if (governor->probe[i].is_used)
			add_need(governor, i, costs, elapsed_ns, &needs);
	programs = ((double)of->cpu_ns - needs.spent) / (double)elapsed_ns;
	if (programs < (double)of->least_ns / (double)elapsed_ns)
		programs = (double)of->least_ns / (double)elapsed_ns;
	governor->cost_ppm = (uint32_t)(needs.spent / (double)elapsed_ns / programs * PPM);
	remember_needs(governor, &needs);
	room = programs * governor->bound_ppm / PPM - needs.fixed;
	part = equal_part(&needs, governor->count, room);
	for (uint32_t i = 0; i < governor->count; i++) {
		struct probe_governed *probe = &governor->probe[i];
		const uint32_t before = probe->share_ppm;

		if (!probe->is_used || probe->stays_on)
			continue;
		if (probe->leader != i)
			probe->share_ppm = governor->probe[probe->leader].share_ppm;
		else if (needs.was_on[i])
			probe->share_ppm = share_of(needs.need[i], part, before);
		has_changed |= probe->share_ppm != before;
	}
	return has_changed;
}
