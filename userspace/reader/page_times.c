/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/page_times.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"

void page_times_release(struct page_times *times)
{
	free(times->window);
	free(times->delta);
	*times = (struct page_times){0};
}

int page_times_add(struct page_times *times, const struct profile_window *window)
{
	int err = ARRAY_RESERVE(times->window, times->window_count, times->window_capacity);

	if (err)
		return err;
	if (window->delta_count > PAGE_TIMES_MAX_DELTAS - times->delta_count)
		times->is_full = true;
	times->window[times->window_count++] =
		(struct page_window){.start_wall_ns = window->start_wall_ns,
				     .duration_ns = window->duration_ns,
				     .first = times->delta_count};
	for (size_t i = 0; !times->is_full && i < window->delta_count; i++) {
		if (!window->delta[i].value)
			continue;
		err = ARRAY_RESERVE(times->delta, times->delta_count, times->delta_capacity);
		if (err)
			return err;
		times->delta[times->delta_count++] = (struct page_delta){
			.row = window->delta[i].row, .value = window->delta[i].value};
	}
	return 0;
}

enum column { COLUMN_START, COLUMN_DURATION, COLUMN_FIRST, COLUMN_SAMPLE, COLUMN_VALUE };

static int64_t cell(const struct page_times *times, const struct flame_tree *tree,
		    enum column column, uint32_t i)
{
	switch (column) {
	case COLUMN_START:
		return (int64_t)(times->window[i].start_wall_ns / NS_PER_MS);
	case COLUMN_DURATION:
		return (int64_t)(times->window[i].duration_ns / NS_PER_MS);
	case COLUMN_FIRST:
		return times->window[i].first;
	case COLUMN_SAMPLE:
		return tree->sample_of_row[times->delta[i].row];
	default:
		return times->delta[i].value;
	}
}

static void put_column(struct json_writer *json, const struct page_times *times,
		       const struct flame_tree *tree, const char *name, enum column column)
{
	uint32_t count = column >= COLUMN_SAMPLE ? times->delta_count : times->window_count;

	json_key(json, name);
	json_open(json, '[');
	for (uint32_t i = 0; i < count; i++)
		json_int(json, cell(times, tree, column, i));
	json_close(json, ']');
}

void page_times_write(struct json_writer *json, const struct page_times *times,
		      const struct flame_tree *tree)
{
	if (times->window_count < 2 || times->is_full)
		return;
	for (uint32_t i = 0; i < times->delta_count; i++)
		if (times->delta[i].row >= tree->row_count ||
		    tree->sample_of_row[times->delta[i].row] == FLAME_NO_SAMPLE)
			return;
	json_key(json, "times");
	json_open(json, '{');
	put_column(json, times, tree, "start", COLUMN_START);
	put_column(json, times, tree, "duration", COLUMN_DURATION);
	put_column(json, times, tree, "first", COLUMN_FIRST);
	put_column(json, times, tree, "sample", COLUMN_SAMPLE);
	put_column(json, times, tree, "value", COLUMN_VALUE);
	json_close(json, '}');
	json_newline(json);
}
