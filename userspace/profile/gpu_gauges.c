/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/gpu_gauges.h"

#include <string.h>

#include "base/cleanup.h"

static const struct {
	const char *name, *unit;
} gauges[] = {
#define GAUGE(id, name, unit) {name, unit},
	GPU_GAUGES(GAUGE)};

static const struct {
	const char *name;
	uint64_t bit;
} reasons[] = {
#define REASON(id, name, bit) {name, bit},
	GPU_REASONS(REASON)};

const char *gpu_gauge_name(enum gpu_gauge gauge)
{
	return gauges[gauge].name;
}

const char *gpu_gauge_unit(enum gpu_gauge gauge)
{
	return gauges[gauge].unit;
}

enum gpu_gauge gpu_gauge_find(const char *name)
{
	unsigned int gauge = 0;

	while (gauge < GPU_GAUGE_COUNT && strcmp(gauges[gauge].name, name) != 0)
		gauge++;
	return (enum gpu_gauge)gauge;
}

const char *gpu_reason_name(enum gpu_reason reason)
{
	return reasons[reason].name;
}

uint64_t gpu_reason_mask(enum gpu_reason reason)
{
	uint64_t known = 0;

	if (reason != GPU_REASON_OTHER)
		return reasons[reason].bit;
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		known |= reasons[i].bit;
	return ~known;
}

enum gpu_reason gpu_reason_find(const char *name)
{
	unsigned int reason = 0;

	while (reason < GPU_REASON_COUNT && strcmp(reasons[reason].name, name) != 0)
		reason++;
	return (enum gpu_reason)reason;
}
