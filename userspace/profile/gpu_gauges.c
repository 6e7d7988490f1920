/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/gpu_gauges.h"

#include <stddef.h>
#include <string.h>

#define GAUGE(id, name, unit) {name, unit, 0},
const struct gpu_term gpu_gauges[] = {GPU_GAUGES(GAUGE)};
#define REASON(id, name, bit) {name, "", bit},
const struct gpu_term gpu_reasons[] = {GPU_REASONS(REASON)};

static unsigned int find(const struct gpu_term *term, unsigned int count, const char *name)
{
	unsigned int at = 0;

	while (at < count && strcmp(term[at].name, name) != 0)
		at++;
	return at;
}

enum gpu_gauge gpu_gauge_find(const char *name)
{
	return (enum gpu_gauge)find(gpu_gauges, GPU_GAUGE_COUNT, name);
}

enum gpu_reason gpu_reason_find(const char *name)
{
	return (enum gpu_reason)find(gpu_reasons, GPU_REASON_COUNT, name);
}

uint64_t gpu_reason_mask(enum gpu_reason reason)
{
	uint64_t known = 0;

	if (reason != GPU_REASON_OTHER)
		return gpu_reasons[reason].bit;
	for (size_t i = 0; i < GPU_REASON_COUNT; i++)
		known |= gpu_reasons[i].bit;
	return ~known;
}
