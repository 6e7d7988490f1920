/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/strip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/saturating.h"

#define STRIP_VERSION 1

void strip_release(struct strip *strip)
{
	free(strip->point);
	*strip = (struct strip){0};
}

int strip_init(struct strip *strip, uint64_t from_ms, uint64_t until_ms, uint32_t points)
{
	struct strip_point *point;
	uint64_t span_ms;

	if (until_ms <= from_ms || until_ms - from_ms > STRIP_SPAN_MAX_MS || !points ||
	    points > REQUEST_POINTS_MAX)
		return -EINVAL;
	span_ms = until_ms - from_ms;
	if (points > span_ms)
		points = (uint32_t)span_ms;
	point = calloc(points, sizeof(*point));
	if (!point)
		return -ENOMEM;
	*strip = (struct strip){
		.from_ms = from_ms, .until_ms = until_ms, .point = point, .count = points};
	return 0;
}

/* Returns where an interval begins, from the range's begin; of `count`: where the range ends. */
static uint64_t edge_ms(const struct strip *strip, uint32_t index)
{
	return (strip->until_ms - strip->from_ms) * index / strip->count;
}

/* Returns the interval of a moment of the range, from the range's begin. */
static uint32_t interval_of(const struct strip *strip, uint64_t at_ms)
{
	const uint64_t span_ms = strip->until_ms - strip->from_ms;
	uint32_t index = (uint32_t)(at_ms * strip->count / span_ms);

	/* Edges are rounded down: one may lie at or before the moment. */
	while (index + 1 < strip->count && edge_ms(strip, index + 1) <= at_ms)
		index++;
	return index;
}

/* Returns what a window has up to some time of it; rounded down, so that parts add up. */
static int64_t part(int64_t value, uint64_t ms, uint64_t duration_ms)
{
	return (int64_t)((__int128)value * ms / duration_ms);
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Adds a window.  Returns how long it is in the range. */
static uint64_t divide(struct strip *strip, uint64_t start_ms, uint64_t duration_ms, bool is_known,
		       int64_t value)
{
	const uint64_t length_ms = duration_ms ? duration_ms : 1;
	const uint64_t end_ms =
		length_ms > UINT64_MAX - start_ms ? UINT64_MAX : start_ms + length_ms;
	const uint64_t last_ms = earlier(end_ms, strip->until_ms);
	const uint64_t first_ms = later(start_ms, strip->from_ms);
	uint64_t at_ms = first_ms;

	if (at_ms >= last_ms)
		return 0;
	strip->windows++;
	strip->window_ms = later(strip->window_ms, length_ms);
	for (uint32_t i = interval_of(strip, at_ms - strip->from_ms); at_ms < last_ms; i++) {
		const uint64_t next_ms = earlier(last_ms, strip->from_ms + edge_ms(strip, i + 1));
		struct strip_point *point = &strip->point[i];

		if (is_known)
			point->recorded_ms += next_ms - at_ms;
		else
			point->pending_ms += next_ms - at_ms;
		point->value = add_saturating(point->value,
					      part(value, next_ms - start_ms, length_ms) -
						      part(value, at_ms - start_ms, length_ms));
		at_ms = next_ms;
	}
	return last_ms - first_ms;
}

void strip_add(void *context, uint64_t start_ms, uint64_t duration_ms, int64_t value)
{
	(void)divide(context, start_ms, duration_ms, true, value < 0 ? 0 : value);
}

void strip_add_pending(void *context, uint64_t start_ms, uint64_t duration_ms)
{
	struct strip *strip = context;

	strip->pending += divide(strip, start_ms, duration_ms, false, 0) != 0;
}

void strip_add_left_out(void *context, uint64_t start_ms, uint64_t duration_ms)
{
	struct strip *strip = context;

	strip->left_out_ms += divide(strip, start_ms, duration_ms, false, 0);
}

/* ---- JSON ---- */

static void put_values(struct json_writer *json, const struct strip *strip)
{
	json_put_open(json, "value", '[');
	for (uint32_t i = 0; i < strip->count; i++) {
		if (strip->point[i].recorded_ms)
			json_int(json, strip->point[i].value);
		else
			json_double(json, __builtin_nan(""));
	}
	json_close(json, ']');
}

static void put_times(struct json_writer *json, const struct strip *strip, const char *name,
		      bool is_pending)
{
	json_newline(json);
	json_put_open(json, name, '[');
	for (uint32_t i = 0; i < strip->count; i++)
		json_int(json, (int64_t)(is_pending ? strip->point[i].pending_ms
						    : strip->point[i].recorded_ms));
	json_close(json, ']');
}

void strip_put(const struct strip *strip, const char *kind, const char *unit,
	       struct json_writer *json)
{
	json_put_int(json, "version", STRIP_VERSION);
	json_put_string(json, "kind", kind);
	json_put_string(json, "unit", unit);
	json_put_int(json, "from", (int64_t)strip->from_ms);
	json_put_int(json, "until", (int64_t)strip->until_ms);
	json_put_int(json, "window_ms", (int64_t)strip->window_ms);
	json_put_int(json, "windows", (int64_t)strip->windows);
	json_put_int(json, "pending", (int64_t)strip->pending);
	json_put_int(json, "broken", (int64_t)strip->broken);
	json_put_int(json, "unreadable", (int64_t)strip->unreadable);
	json_key(json, "full");
	json_bool(json, strip->left_out_ms);
	json_put_int(json, "full_ms", (int64_t)strip->left_out_ms);
	put_values(json, strip);
	put_times(json, strip, "recorded_ms", false);
	put_times(json, strip, "pending_ms", true);
}

/* ---- the answer ---- */

struct told {
	const struct strip *strip;
	const char *kind, *unit;
};

static void put_told(struct json_writer *json, const void *context)
{
	const struct told *told = context;

	strip_put(told->strip, told->kind, told->unit, json);
}

void strip_answer(struct file_totals *totals, const char *store, const struct request *request,
		  uint64_t now_ms, struct answer *ret_answer)
{
	CLEANUP(strip_release) struct strip strip = {0};
	const struct file_totals_calls calls = {.known = strip_add,
						.pending = strip_add_pending,
						.left_out = strip_add_left_out,
						.context = &strip};
	struct store_range range = {0};
	struct file_totals_state state = {0};
	int err;

	*ret_answer = (struct answer){0};
	request_range(request, now_ms, &range.since_ms, &range.until_ms);
	err = strip_init(&strip, range.since_ms, range.until_ms, request->points);
	if (err == -EINVAL) {
		answer_say(ret_answer, 400, "from is not before until, or ten years before it\n");
		return;
	}
	if (!err)
		err = file_totals_read(totals, store, request->stored, &range, STRIP_BUDGET_NS,
				       &calls, &state);
	if (err == -EINVAL) {
		answer_say(ret_answer, 400, "kind=%s: made of cpu and offcpu: ask for these\n",
			   request->stored);
		return;
	}
	strip.broken = state.broken;
	strip.unreadable = state.unreadable;
	if (err)
		answer_say_clean(ret_answer, err == -ENOMEM ? 503 : 404, strerror(-err));
	else
		answer_json(ret_answer, put_told,
			    &(struct told){&strip, request->stored, state.unit});
}
