/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

struct step {
	double size;
	const char *name;
};

static const struct step byte_steps[] = {
	{0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}};

/* Returns the largest of the steps that the value fills. */
static const struct step *step_of(double value, const struct step *step)
{
	while (step->size > 1 && fabs(value) < step->size * 0.9995)
		step++;
	return step;
}

/* Returns how many digits after the point make three in all. */
static int digits_of(double shown)
{
	return fabs(shown) >= 99.95 ? 0 : fabs(shown) >= 9.995 ? 1 : 2;
}

/* Formats three significant digits; of the last step, which is 1, whole numbers as they are. */
static const char *scaled(double value, const struct step *steps, char *buffer)
{
	const struct step *step = step_of(value, steps);
	const double shown = value / step->size;
	const bool is_whole = step->size <= 1 && shown == floor(shown);

	snprintf(buffer, FORMAT_BYTES, "%.*f %s", is_whole ? 0 : digits_of(shown), shown,
		 step->name);
	return buffer;
}

double format_unit_ns(const char *unit)
{
	static const struct step units[] = {
		{1, "nanoseconds"}, {1, "ns"},	      {1e3, "microseconds"}, {1e3, "us"},
		{1e6, "ms"},	    {1e9, "seconds"}, {1e6, "milliseconds"}, {1e9, "s"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(unit, units[i].name))
			return units[i].size;
	return 0;
}

const char *format_value(int64_t value, const char *unit, char buffer[FORMAT_BYTES])
{
	static const struct step times[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
	double ns = format_unit_ns(unit);

	if (ns > 0)
		return scaled((double)value * ns, times, buffer);
	if (!strcmp(unit, "bytes"))
		return scaled((double)value, byte_steps, buffer);
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

static void stepped(double value, const struct step *steps, char *ret_text)
{
	const struct step *step = step_of(value, steps);
	const double shown = value / step->size;

	snprintf(ret_text, HUMAN_BYTES, "%.*f %s", shown <= 0 ? 0 : digits_of(shown), shown,
		 step->name);
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

void human_value(uint64_t value, const char *unit, char ret_text[HUMAN_BYTES])
{
	static const struct step times[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}};
	/* As in the page, which knows the units' whole names alone. */
	const double unit_ns = strlen(unit) > strlen("ns") ? format_unit_ns(unit) : 0;
	const double time = (double)value * unit_ns;

	if (time >= LONG_TIME_NS)
		long_time(time, ret_text);
	else if (unit_ns > 0)
		stepped(time, times, ret_text);
	else if (!strcmp(unit, "bytes"))
		stepped((double)value, byte_steps, ret_text);
	else if (!*unit || !strcmp(unit, "count"))
		snprintf(ret_text, HUMAN_BYTES, "%" PRIu64, value);
	else
		snprintf(ret_text, HUMAN_BYTES, "%" PRIu64 " %.20s", value, unit);
}
