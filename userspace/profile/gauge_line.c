/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/gauge_line.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "profile/line_words.h"

#define ABSENT "absent"
#define NONE "none"
#define NO_UUID "-"

static const struct {
	const char *name;
	unsigned int decimals;
} gauges[] = {
#define GAUGE(id, name, decimals, unit) {name, decimals},
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

unsigned int gpu_gauge_decimals(enum gpu_gauge gauge)
{
	return gauges[gauge].decimals;
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

void gauge_line_set_name(struct gauge_line *line, const char *name)
{
	snprintf(line->name, sizeof(line->name), "%s", name);
	for (char *at = line->name; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
}

void gauge_process_line_set_comm(struct gauge_process_line *line, const char *comm)
{
	line_set_word(line->comm, sizeof(line->comm), comm);
}

/* ---- sums ---- */

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void add_figures(struct gpu_figures *sum, const struct gpu_figures *figures)
{
	if (!figures->is_known)
		return;
	sum->is_known = true;
	sum->mean = add(sum->mean, figures->mean);
	sum->min = add(sum->min, figures->min);
	sum->max = add(sum->max, figures->max);
}

void gauge_process_line_add(struct gauge_process_line *sum, const struct gauge_process_line *line)
{
	sum->others = add(sum->others, line->pid ? 1 : line->others);
	add_figures(&sum->memory_bytes, &line->memory_bytes);
	add_figures(&sum->sm, &line->sm);
}

/* ---- writing ---- */

/* A text that grows in a line's room, which is more than the longest line takes. */
struct line_text {
	char *text;
	size_t used;
};

__attribute__((format(printf, 2, 3))) static void put(struct line_text *line, const char *format,
						      ...)
{
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(line->text + line->used, GAUGE_LINE_CHARS - line->used, format, args);
	va_end(args);
	if (size > 0)
		line->used += (size_t)size;
	if (line->used >= GAUGE_LINE_CHARS)
		line->used = GAUGE_LINE_CHARS - 1;
}

static void put_value(struct line_text *line, uint64_t value, unsigned int decimals)
{
	if (decimals)
		put(line, "%" PRIu64 ".%" PRIu64, value / 10, value % 10);
	else
		put(line, "%" PRIu64, value);
}

static void put_figures(struct line_text *line, const char *name, const struct gpu_figures *figures,
			unsigned int decimals)
{
	put(line, " %s=", name);
	if (!figures->is_known) {
		put(line, ABSENT);
		return;
	}
	put_value(line, figures->mean, decimals);
	if (figures->mean == figures->min && figures->mean == figures->max)
		return;
	put(line, ",");
	put_value(line, figures->min, decimals);
	put(line, ",");
	put_value(line, figures->max, decimals);
}

static void put_reasons(struct line_text *line, const struct gauge_line *gpu)
{
	const char *before = "";

	put(line, " reasons=");
	for (unsigned int i = 0; gpu->has_reasons && i < GPU_REASON_COUNT; i++) {
		if (!gpu->reason_share[i])
			continue;
		put(line, "%s%s:", before, reasons[i].name);
		put_value(line, gpu->reason_share[i], 1);
		before = ",";
	}
	if (!before[0])
		put(line, "%s", gpu->has_reasons ? NONE : ABSENT);
}

void gauge_line_format(const struct gauge_line *line, char text[GAUGE_LINE_CHARS])
{
	struct line_text out = {.text = text};

	put(&out, GAUGE_LINE_PREFIX "device=%" PRIu64 " uuid=%s seconds=%" PRIu64, line->device,
	    line->uuid[0] ? line->uuid : NO_UUID, line->seconds);
	for (unsigned int i = 0; i < GPU_GAUGE_COUNT; i++)
		put_figures(&out, gauges[i].name, &line->gauge[i], gauges[i].decimals);
	put(&out, " memory_total=%" PRIu64 " power_limit=", line->memory_total_bytes);
	put_value(&out, line->power_limit, 1);
	put_reasons(&out, line);
	put(&out, " name=%s", line->name);
}

void gauge_process_line_format(const struct gauge_process_line *line, char text[GAUGE_LINE_CHARS])
{
	struct line_text out = {.text = text};

	if (line->pid)
		put(&out,
		    GAUGE_LINE_PREFIX "pid=%" PRIu64 " comm=%s device=%" PRIu64 " seconds=%" PRIu64,
		    line->pid, line->comm, line->device, line->seconds);
	else
		put(&out, GAUGE_LINE_PREFIX "others=%" PRIu64, line->others);
	put_figures(&out, "memory", &line->memory_bytes, 0);
	put_figures(&out, "sm", &line->sm, 1);
}

/* ---- reading ---- */

static bool read_text(const char **at, const char *text)
{
	const size_t size = strlen(text);

	if (strncmp(*at, text, size) != 0)
		return false;
	*at += size;
	return true;
}

static bool read_value(const char **at, const char *before, unsigned int decimals,
		       uint64_t *ret_value)
{
	uint64_t whole, tenths;
	const char *point;

	if (!line_read_number(at, before, &whole))
		return false;
	*ret_value = whole;
	if (!decimals)
		return true;
	point = *at;
	if (!line_read_number(at, ".", &tenths) || *at != point + 2)
		return false;
	return !__builtin_mul_overflow(whole, 10, &whole) &&
	       !__builtin_add_overflow(whole, tenths, ret_value);
}

static bool read_figures(const char **at, const char *name, unsigned int decimals,
			 struct gpu_figures *ret_figures)
{
	if (!read_text(at, " ") || !read_text(at, name) || !read_text(at, "="))
		return false;
	if (read_text(at, ABSENT))
		return true;
	ret_figures->is_known = true;
	if (!read_value(at, "", decimals, &ret_figures->mean))
		return false;
	ret_figures->min = ret_figures->max = ret_figures->mean;
	return **at != ',' || (read_value(at, ",", decimals, &ret_figures->min) &&
			       read_value(at, ",", decimals, &ret_figures->max));
}

/* Reasons come in their order, each at most once, none with a share of 0: as they are written. */
static bool read_reasons(const char **at, struct gauge_line *line)
{
	const char *before = "";

	if (!read_text(at, " reasons="))
		return false;
	if (read_text(at, ABSENT))
		return true;
	line->has_reasons = true;
	if (read_text(at, NONE))
		return true;
	for (unsigned int i = 0; i < GPU_REASON_COUNT; i++) {
		const char *start = *at;
		uint64_t share;

		if (!read_text(at, before) || !read_text(at, reasons[i].name)) {
			*at = start;
			continue;
		}
		if (!read_value(at, ":", 1, &share) || !share || share > GPU_SHARE_MAX)
			return false;
		line->reason_share[i] = (uint32_t)share;
		before = ",";
	}
	return before[0];
}

static bool read_name(const char *at, struct gauge_line *line)
{
	if (!read_text(&at, " name=") || strlen(at) >= sizeof(line->name))
		return false;
	gauge_line_set_name(line, at);
	return !strcmp(at, line->name);
}

bool gauge_line_parse(const char *comment, struct gauge_line *ret_line)
{
	struct gauge_line line = {0};

	if (!line_read_number(&comment, GAUGE_LINE_PREFIX "device=", &line.device) ||
	    !line_read_word(&comment, " uuid=", line.uuid, sizeof(line.uuid)) || !line.uuid[0] ||
	    !line_read_number(&comment, " seconds=", &line.seconds))
		return false;
	if (!strcmp(line.uuid, NO_UUID))
		memset(line.uuid, 0, sizeof(line.uuid));
	for (unsigned int i = 0; i < GPU_GAUGE_COUNT; i++)
		if (!read_figures(&comment, gauges[i].name, gauges[i].decimals, &line.gauge[i]))
			return false;
	if (!line_read_number(&comment, " memory_total=", &line.memory_total_bytes) ||
	    !read_value(&comment, " power_limit=", 1, &line.power_limit) ||
	    !read_reasons(&comment, &line) || !read_name(comment, &line))
		return false;
	*ret_line = line;
	return true;
}

bool gauge_process_line_parse(const char *comment, struct gauge_process_line *ret_line)
{
	struct gauge_process_line line = {0};

	if (!line_read_number(&comment, GAUGE_LINE_PREFIX "others=", &line.others) &&
	    (!line_read_number(&comment, GAUGE_LINE_PREFIX "pid=", &line.pid) || !line.pid ||
	     !line_read_word(&comment, " comm=", line.comm, sizeof(line.comm)) ||
	     !line_read_number(&comment, " device=", &line.device) ||
	     !line_read_number(&comment, " seconds=", &line.seconds)))
		return false;
	if (!read_figures(&comment, "memory", 0, &line.memory_bytes) ||
	    !read_figures(&comment, "sm", 1, &line.sm) || *comment)
		return false;
	*ret_line = line;
	return true;
}
