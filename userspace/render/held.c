/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/held.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/saturating.h"

void held_release(struct held *held)
{
	free(held->row);
	*held = (struct held){0};
}

/* ---- points ---- */

/* Takes the later window of the two parts that become one. */
static void halve_points(struct held *held)
{
	const uint64_t odd = held->first_point & 1;
	struct held_window merged[HELD_POINTS] = {0};

	for (uint32_t i = 0; i < HELD_POINTS; i++)
		if (held->point[i].end_ns)
			merged[(i + odd) / 2] = held->point[i];
	for (uint32_t r = 0; r < held->count; r++) {
		struct held_value value[HELD_POINTS] = {0};

		for (uint32_t i = 0; i < HELD_POINTS; i++)
			if (held->row[r].point[i].window == held->point[i].number)
				value[(i + odd) / 2] = held->row[r].point[i];
			else if (held->point[i].end_ns)
				value[(i + odd) / 2] = (struct held_value){0};
		memcpy(held->row[r].point, value, sizeof(value));
	}
	memcpy(held->point, merged, sizeof(merged));
	held->first_point /= 2;
	held->point_ns *= 2;
	held->points = (held->points + (uint32_t)odd + 1) / 2;
}

/* Lets the points begin earlier. */
static void shift_points(struct held *held, uint32_t by)
{
	for (uint32_t i = HELD_POINTS; i-- > 0;)
		held->point[i] = i >= by ? held->point[i - by] : (struct held_window){0};
	for (uint32_t r = 0; r < held->count; r++)
		for (uint32_t i = HELD_POINTS; i-- > 0;)
			held->row[r].point[i] =
				i >= by ? held->row[r].point[i - by] : (struct held_value){0};
	held->first_point -= by;
	held->points += by;
}

/* Returns the part of a window, after making room for it. */
static uint32_t place_point(struct held *held, const struct profile_window *window, uint64_t end_ns)
{
	if (!held->points) {
		held->point_ns = window->duration_ns ? window->duration_ns : 1;
		held->first_point = (end_ns - 1) / held->point_ns;
	}
	for (;; halve_points(held)) {
		const uint64_t at = (end_ns - 1) / held->point_ns;

		if (at >= held->first_point) {
			if (at - held->first_point >= HELD_POINTS)
				continue;
			if (at - held->first_point >= held->points)
				held->points = (uint32_t)(at - held->first_point) + 1;
			return (uint32_t)(at - held->first_point);
		}
		if (held->first_point - at + held->points <= HELD_POINTS) {
			shift_points(held, (uint32_t)(held->first_point - at));
			return 0;
		}
	}
}

/* ---- a window ---- */

/* Returns whether a window's values go into a place: they take that of older ones, and are added to
 * those of the same moment. */
static bool takes(struct held_window *place, uint64_t end_ns, uint32_t number)
{
	if (end_ns > place->end_ns)
		*place = (struct held_window){.end_ns = end_ns, .number = number};
	return end_ns == place->end_ns;
}

static void put(struct held_value *value, const struct held_window *window, int64_t bytes)
{
	if (value->window != window->number)
		*value = (struct held_value){.window = window->number};
	value->bytes = add_saturating(value->bytes, bytes);
}

static void put_least(struct held_least *least, uint64_t part, int64_t bytes)
{
	if (least->part != part || !least->windows)
		*least = (struct held_least){.bytes = INT64_MAX, .part = part};
	least->windows++;
	if (bytes < least->bytes)
		least->bytes = bytes;
}

static int make_room(struct held *held, uint32_t row)
{
	while (held->count <= row) {
		if (ARRAY_RESERVE(held->row, held->count, held->capacity))
			return -ENOMEM;
		held->row[held->count++] = (struct held_row){0};
	}
	return 0;
}

static uint64_t part_ns(const struct held *held)
{
	return held->older_ns / HELD_PARTS + 1;
}

/* Returns the slot of the window's part; HELD_SLOTS: newer windows have taken it. */
static uint32_t take_slot(struct held *held, uint64_t part)
{
	const uint32_t slot = (uint32_t)(part % HELD_SLOTS);

	if (held->least[slot].part > part)
		return HELD_SLOTS;
	if (held->least[slot].part != part) {
		held->least[slot].part = part;
		held->least[slot].windows = 0;
	}
	held->least[slot].windows++;
	return slot;
}

/* Where the values of one window go. */
struct places {
	uint32_t number, point, slot; /* slot HELD_SLOTS: none */
	bool is_last, is_point, is_peak;
};

static void choose_places(struct held *held, const struct profile_window *window, uint64_t end_ns,
			  struct places *ret_places)
{
	struct places places = {.number = ++held->windows};

	if (!held->first_end_ns || end_ns < held->first_end_ns)
		held->first_end_ns = end_ns;
	places.point = place_point(held, window, end_ns);
	places.slot = take_slot(held, (end_ns - 1) / part_ns(held));
	if (end_ns > held->last.end_ns)
		held->last_bytes = 0;
	places.is_last = takes(&held->last, end_ns, places.number);
	if (places.is_last)
		held->last_bytes = add_saturating(held->last_bytes, window->total);
	places.is_point = takes(&held->point[places.point], end_ns, places.number);
	places.is_peak = !held->peak.end_ns || window->total > held->peak_bytes;
	if (places.is_peak) {
		held->peak = (struct held_window){.end_ns = end_ns, .number = places.number};
		held->peak_bytes = window->total;
	}
	*ret_places = places;
}

static void put_row(struct held *held, struct held_row *row, const struct places *places)
{
	const int64_t bytes = row->now.bytes;

	row->now.window = 0;
	if (places->is_last)
		put(&row->last, &held->last, bytes);
	if (places->is_peak)
		put(&row->peak, &held->peak, bytes);
	if (places->is_point)
		put(&row->point[places->point], &held->point[places->point], bytes);
	if (places->slot < HELD_SLOTS)
		put_least(&row->least[places->slot], held->least[places->slot].part, bytes);
}

int held_add_window(struct held *held, const struct profile_window *window)
{
	const uint64_t end_ns = window->start_wall_ns + window->duration_ns;
	struct places places;

	/* As the rows' own levels: a window without any row is no level. */
	if (!window->delta_count)
		return 0;
	if (end_ns < window->start_wall_ns || !end_ns) {
		held->left_out += window->delta_count;
		return 0;
	}
	choose_places(held, window, end_ns, &places);
	/* A row may have several values of a window, which is one level. */
	for (size_t i = 0; i < window->delta_count; i++) {
		const struct held_window now = {.number = places.number};
		const struct profile_delta *delta = &window->delta[i];

		if (delta->row >= HELD_ROWS_MAX)
			held->left_out++;
		else if (make_room(held, delta->row))
			return -ENOMEM;
		else
			put(&held->row[delta->row].now, &now, delta->value);
	}
	for (size_t i = 0; i < window->delta_count; i++) {
		const uint32_t row = window->delta[i].row;

		if (row < HELD_ROWS_MAX && held->row[row].now.window == places.number)
			put_row(held, &held->row[row], &places);
	}
	return 0;
}

/* ---- figures ---- */

static int64_t value_of(const struct held_value *value, const struct held_window *window)
{
	return window->number && value->window == window->number ? value->bytes : 0;
}

int64_t held_at_end(const struct held *held, uint32_t row)
{
	return row < held->count ? value_of(&held->row[row].last, &held->last) : 0;
}

int64_t held_at_peak(const struct held *held, uint32_t row)
{
	return row < held->count ? value_of(&held->row[row].peak, &held->peak) : 0;
}

bool held_has_point(const struct held *held, uint32_t point)
{
	return held->point[point].end_ns;
}

int64_t held_at_point(const struct held *held, uint32_t row, uint32_t point)
{
	return row < held->count ? value_of(&held->row[row].point[point], &held->point[point]) : 0;
}

uint64_t held_long_ns(const struct held *held)
{
	const uint64_t range_ns = held->last.end_ns - held->first_end_ns;

	return range_ns < held->older_ns ? range_ns : held->older_ns;
}

int64_t held_for_long(const struct held *held, uint32_t row)
{
	int64_t least = held_at_end(held, row);
	uint64_t from, until;

	if (!held->last.end_ns || row >= held->count)
		return 0;
	until = (held->last.end_ns - 1) / part_ns(held);
	from = (held->last.end_ns - 1 - held_long_ns(held)) / part_ns(held);
	for (uint32_t i = 0; i < HELD_SLOTS; i++) {
		const struct held_least *own = &held->row[row].least[i];
		const uint64_t part = held->least[i].part;

		if (!held->least[i].windows || part < from || part > until)
			continue;
		/* A window that does not have the row. */
		if (own->part != part || own->windows < held->least[i].windows)
			return 0;
		if (own->bytes < least)
			least = own->bytes;
	}
	return least;
}
