/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/format.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

struct step {
	double size;
	const char *name;
};

/* Formats three significant digits. */
static const char *scaled(double value, const struct step *step, size_t count, char *buffer)
{
	size_t i = 0;
	double shown;

	while (i + 1 < count && fabs(value) < step[i].size * 0.9995)
		i++;
	shown = value / step[i].size;
	snprintf(buffer, FORMAT_BYTES, "%.*f %s",
		 fabs(shown) >= 99.95 || (i + 1 == count && shown == floor(shown)) ? 0
		 : fabs(shown) >= 9.995						   ? 1
										   : 2,
		 shown, step[i].name);
	return buffer;
}

double format_unit_ns(const char *unit)
{
	static const struct step units[] = {
		{1, "nanoseconds"}, {1, "ns"},	      {1e3, "microseconds"}, {1e3, "us"},
		{1e6, "ms"},	    {1e9, "seconds"}, {1e6, "milliseconds"}, {1e9, "s"},
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(unit, units[i].name))
			return units[i].size;
	return 0;
}

const char *format_value(int64_t value, const char *unit, char buffer[FORMAT_BYTES])
{
	static const struct step times[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
	static const struct step bytes[] = {{1099511627776.0, "TiB"},
					    {1073741824.0, "GiB"},
					    {1048576.0, "MiB"},
					    {1024.0, "KiB"},
					    {1, "B"}};
	double ns = format_unit_ns(unit);

	if (ns > 0)
		return scaled((double)value * ns, times, 4, buffer);
	if (!strcmp(unit, "bytes"))
		return scaled((double)value, bytes, 5, buffer);
	snprintf(buffer, FORMAT_BYTES, "%" PRId64, value);
	return buffer;
}

const char *format_share(double share, char buffer[FORMAT_BYTES])
{
	snprintf(buffer, FORMAT_BYTES, "%.1f %%", share * 100);
	return buffer;
}

const char *format_span(uint64_t ns, char buffer[FORMAT_BYTES])
{
	double seconds = (double)ns / 1e9;

	if (seconds < 120)
		snprintf(buffer, FORMAT_BYTES, "%.0f s", ceil(seconds));
	else if (seconds < 7200)
		snprintf(buffer, FORMAT_BYTES, "%.0f min", ceil(seconds / 60));
	else if (seconds < 172800)
		snprintf(buffer, FORMAT_BYTES, "%.0f h", ceil(seconds / 3600));
	else
		snprintf(buffer, FORMAT_BYTES, "%.0f days", ceil(seconds / 86400));
	return buffer;
}

/* ---- as the page formats them ---- */

#define LONG_TIME_NS 120e9 /* from here on shown in minutes */

struct human_step {
	double least;
	const char *name;
};

static void stepped(double value, const struct human_step *steps, size_t count, char *ret_text)
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
	static const struct human_step units[] = {
		{1, "nanoseconds"}, {1e3, "microseconds"}, {1e6, "milliseconds"}, {1e9, "seconds"}};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (!strcmp(unit, units[i].name))
			return units[i].least;
	}
	return 0;
}

void human_value(uint64_t value, const char *unit, char ret_text[HUMAN_BYTES])
{
	static const struct human_step times[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}};
	static const struct human_step bytes[] = {
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
