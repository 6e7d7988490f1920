/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/human.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define LONG_TIME_NS 120e9 /* from here on shown in minutes */

struct step {
	double least;
	const char *name;
};

static void stepped(double value, const struct step *steps, size_t count, char *ret_text)
{
	size_t at = 0;
	double scaled;
	int digits;

	while (at + 1 < count && value < steps[at].least * 0.9995)
		at++;
	scaled = value / steps[at].least;
	digits = scaled >= 99.95 || scaled <= 0 ? 0 : scaled >= 9.995 ? 1 : 2;
	snprintf(ret_text, HUMAN_BYTES, "%.*f %s", digits, scaled, steps[at].name);
}

static void long_time(double value, char *ret_text)
{
	uint64_t seconds = (uint64_t)(value / 1e9 + 0.5);

	if (seconds >= 3600)
		snprintf(ret_text, HUMAN_BYTES, "%" PRIu64 " h %" PRIu64 " min", seconds / 3600,
			 seconds / 60 % 60);
	else
		snprintf(ret_text, HUMAN_BYTES, "%" PRIu64 " min %" PRIu64 " s", seconds / 60,
			 seconds % 60);
}

/* Returns 0 when it is not a unit of time. */
static double nanoseconds_of(const char *unit)
{
	static const struct step units[] = {
		{1, "nanoseconds"}, {1e3, "microseconds"}, {1e6, "milliseconds"}, {1e9, "seconds"}};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (!strcmp(unit, units[i].name))
			return units[i].least;
	}
	return 0;
}

void human_value(uint64_t value, const char *unit, char ret_text[HUMAN_BYTES])
{
	static const struct step times[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}};
	static const struct step bytes[] = {
		{0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}};
	double time = (double)value * nanoseconds_of(unit);

	if (time >= LONG_TIME_NS)
		long_time(time, ret_text);
	else if (nanoseconds_of(unit) > 0)
		stepped(time, times, ARRAY_SIZE(times), ret_text);
	else if (!strcmp(unit, "bytes"))
		stepped((double)value, bytes, ARRAY_SIZE(bytes), ret_text);
	else if (!*unit || !strcmp(unit, "count"))
		snprintf(ret_text, HUMAN_BYTES, "%" PRIu64, value);
	else
		snprintf(ret_text, HUMAN_BYTES, "%" PRIu64 " %.20s", value, unit);
}
