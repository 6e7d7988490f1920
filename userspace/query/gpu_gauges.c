/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/gpu_gauges.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "gpu device="
#define SECONDS_MAX 1e9 /* of one comment, so that sums stay finite */

/* Returns the value of " WORD=" in a comment, or NULL.  A GPU's name comes last, and may have any
 * words in it. */
static const char *value_of(const char *comment, const char *word)
{
	const size_t size = strlen(word);

	for (const char *at = strchr(comment, ' '); at; at = strchr(at + 1, ' ')) {
		if (!strncmp(at, " name=", strlen(" name=")))
			return NULL;
		if (!strncmp(at + 1, word, size) && at[1 + size] == '=')
			return at + 1 + size + 1;
	}
	return NULL;
}

/* Returns a number from 0 to `most`; NAN: it is none, as "absent". */
static double number_of(const char *text, double most)
{
	char *end;
	double number;

	if (!text || *text < '0' || *text > '9')
		return NAN;
	number = strtod(text, &end);
	return end > text && number >= 0 && number <= most ? number : NAN;
}

static struct gpu_gauges_device *find(struct gpu_gauges *gauges, uint64_t number)
{
	for (uint32_t i = 0; i < gauges->count; i++)
		if (gauges->device[i].device == number)
			return &gauges->device[i];
	if (gauges->count == GPU_GAUGES_DEVICES_MAX)
		return NULL;
	gauges->device[gauges->count] = (struct gpu_gauges_device){.device = number};
	return &gauges->device[gauges->count++];
}

void gpu_gauges_add(struct gpu_gauges *gauges, const char *comment)
{
	static const char *const words[] = {[GPU_GAUGES_UTILIZATION] = "utilization",
					    [GPU_GAUGES_ACTIVE] = "sm_active",
					    [GPU_GAUGES_OCCUPANCY] = "sm_occupancy"};
	struct gpu_gauges_device *device;
	double seconds;
	char *end;
	uint64_t number;

	if (strncmp(comment, PREFIX, strlen(PREFIX)) != 0)
		return;
	number = strtoull(comment + strlen(PREFIX), &end, 10);
	seconds = number_of(value_of(comment, "seconds"), SECONDS_MAX);
	if (end == comment + strlen(PREFIX) || *end != ' ' || !(seconds > 0))
		return;
	device = find(gauges, number);
	for (unsigned int i = 0; device && i < GPU_GAUGES; i++) {
		const double percent = number_of(value_of(comment, words[i]), 100);

		if (isnan(percent))
			continue;
		device->seconds[i] += seconds;
		device->sum[i] += percent / 100 * seconds;
	}
}

double gpu_gauges_mean(const struct gpu_gauges_device *device, enum gpu_gauges_at gauge)
{
	return device->seconds[gauge] > 0 ? device->sum[gauge] / device->seconds[gauge] : NAN;
}
