/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/governor.h"

#define PPM 1000000ULL
/* A step is taken back when twice the cost would stay below this share of the cap. */
#define CALM_PERCENT 80U

static uint32_t share_ppm(uint64_t spent_ns, uint64_t elapsed_ns)
{
	const uint64_t ppm = elapsed_ns ? spent_ns * PPM / elapsed_ns : 0;

	return ppm < UINT32_MAX ? (uint32_t)ppm : UINT32_MAX;
}

/* Without a cap all steps are taken back. */
static bool has_room(const struct governor *governor, uint32_t ppm)
{
	return !governor->cap_ppm ||
	       2ULL * ppm * 100 < (uint64_t)governor->cap_ppm * CALM_PERCENT;
}

bool governor_look(struct governor *governor, uint64_t spent_ns, uint64_t now_ns,
		   uint32_t *ret_ppm)
{
	const bool is_first = !governor->looked_ns;

	*ret_ppm = share_ppm(spent_ns - governor->spent_ns, now_ns - governor->looked_ns);
	governor->spent_ns = spent_ns;
	governor->looked_ns = now_ns;
	if (is_first)
		return false;
	if (governor->cap_ppm && *ret_ppm > governor->cap_ppm) {
		governor->calm = 0;
		if (governor->steps == GOVERNOR_STEPS_MAX)
			return false;
		governor->steps++;
		return true;
	}
	if (!governor->steps || !has_room(governor, *ret_ppm)) {
		governor->calm = 0;
		return false;
	}
	if (++governor->calm < GOVERNOR_CALM_WINDOWS)
		return false;
	governor->calm = 0;
	governor->steps--;
	return true;
}
