/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/human.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define LONG_TIME_NS 120000000000ULL /* from here on in minutes */

struct step {
	double least;
	const char *name;
};

static void stepped(uint64_t value, const struct step *steps, size_t count, char *ret_text)
{
	size_t at = 0;
	double scaled;
	int digits;

	while (at + 1 < count && (double)value < steps[at].least * 0.9995)
		at++;
	scaled = (double)value / steps[at].least;
	digits = scaled >= 99.95 || value == 0 ? 0 : scaled >= 9.995 ? 1 : 2;
	snprintf(ret_text, HUMAN_BYTES, "%.*f %s", digits, scaled, steps[at].name);
}

static void long_time(uint64_t value, char *ret_text)
{
	uint64_t seconds = (value + 500000000) / 1000000000;

	if (seconds >= 3600)
		snprintf(ret_text, HUMAN_BYTES, "%" PRIu64 " h %" PRIu64 " min", seconds / 3600,
			 seconds / 60 % 60);
	else
		snprintf(ret_text, HUMAN_BYTES, "%" PRIu64 " min %" PRIu64 " s", seconds / 60,
			 seconds % 60);
}

void human_value(uint64_t value, const char *unit, char ret_text[HUMAN_BYTES])
{
	static const struct step times[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}};
	static const struct step bytes[] = {
		{0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}};

	if (!strcmp(unit, "nanoseconds") && value >= LONG_TIME_NS)
		long_time(value, ret_text);
	else if (!strcmp(unit, "nanoseconds"))
		stepped(value, times, ARRAY_SIZE(times), ret_text);
	else if (!strcmp(unit, "bytes"))
		stepped(value, bytes, ARRAY_SIZE(bytes), ret_text);
	else if (!*unit || !strcmp(unit, "count"))
		snprintf(ret_text, HUMAN_BYTES, "%" PRIu64, value);
	else
		snprintf(ret_text, HUMAN_BYTES, "%" PRIu64 " %.20s", value, unit);
}
