/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts the windows of sample types together that are not summed up: the last window's values of
 * levels, as what is held at the end of two windows is not held twice, and the most of maxima. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/kinds.h"
#include "pprof/profile_reader.h"

void reader_find_levels(struct profile_reader *reader, const struct profile_options *options)
{
	for (size_t i = 0; i < options->value_count; i++) {
		const enum pp_merge merge =
			kind_value_merge(options->kind, options->value_type[i].type);

		reader->levels |= merge == PP_MERGE_LAST ? 1U << i : 0;
		reader->maxima |= merge == PP_MERGE_MAX ? 1U << i : 0;
	}
}

static bool is_level(const struct profile_reader *reader, size_t value_index)
{
	/* The windows of a file that is merged stay apart. */
	return !reader->adds_window && (reader->levels | reader->maxima) & 1U << value_index;
}

int reader_take_levels(struct profile_reader *reader, uint32_t row, uint32_t window,
		       const int64_t *value)
{
	reader->window[window].has_rows = true;
	for (size_t i = 0; (reader->levels | reader->maxima) >> i; i++) {
		if (!value[i] || !is_level(reader, i))
			continue;
		if (ARRAY_RESERVE(reader->level, reader->level_count, reader->level_capacity))
			return -ENOMEM;
		reader->level[reader->level_count++] =
			(struct reader_level){.row = row,
					      .window = window,
					      .value_index = (uint32_t)i,
					      .value = value[i]};
	}
	return 0;
}

void reader_leave_levels_out(const struct profile_reader *reader, int64_t *value)
{
	for (size_t i = 0; (reader->levels | reader->maxima) >> i; i++)
		if (is_level(reader, i))
			value[i] = 0;
}

static void clear_levels(const struct profile_reader *reader)
{
	struct profile *profile = reader->profile;
	const size_t values = profile->options.value_count;

	for (size_t i = 0; i < values; i++) {
		if (!is_level(reader, i) || !(reader->levels & 1U << i))
			continue;
		for (uint32_t row = 0; row < profile->row_count; row++)
			profile->value[(size_t)row * values + i] = 0;
	}
}

static uint64_t last_start_ns(const struct profile_reader *reader)
{
	uint64_t last_ns = 0;

	for (uint32_t i = 0; i < reader->window_count; i++) {
		const struct reader_window *window = &reader->window[i];

		if (window->has_rows && window->mark.start_wall_ns > last_ns)
			last_ns = window->mark.start_wall_ns;
	}
	return last_ns;
}

static int compare_levels(const void *left, const void *right)
{
	const struct reader_level *a = left, *b = right;

	if (a->value_index != b->value_index)
		return a->value_index < b->value_index ? -1 : 1;
	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	return (a->window > b->window) - (a->window < b->window);
}

static int64_t add(int64_t a, int64_t b)
{
	return __builtin_add_overflow(a, b, &a) ? INT64_MAX : a;
}

/* Sums up what rows that are one have in one window, and keeps the most of all windows. */
static void finish_maxima(struct profile_reader *reader)
{
	const struct profile *profile = reader->profile;
	int64_t sum = 0;

	if (!reader->maxima || !reader->level_count)
		return;
	qsort(reader->level, reader->level_count, sizeof(*reader->level), compare_levels);
	for (size_t i = 0; i < reader->level_count; i++) {
		const struct reader_level *level = &reader->level[i];
		int64_t *value = &profile->value[(size_t)level->row * profile->options.value_count +
						 level->value_index];

		if (!(reader->maxima & 1U << level->value_index))
			continue;
		sum = i && !compare_levels(level - 1, level) ? add(sum, level->value)
							     : level->value;
		if (sum > *value)
			*value = sum;
	}
}

void reader_finish_levels(struct profile_reader *reader)
{
	struct profile *profile = reader->profile;
	const uint64_t last_ns = reader->levels ? last_start_ns(reader) : 0;

	if (last_ns > reader->levels_start_ns) {
		clear_levels(reader);
		reader->levels_start_ns = last_ns;
	}
	for (size_t i = 0; i < reader->level_count; i++) {
		const struct reader_level *level = &reader->level[i];
		int64_t *value = &profile->value[(size_t)level->row * profile->options.value_count +
						 level->value_index];

		if (reader->levels & 1U << level->value_index &&
		    reader->window[level->window].mark.start_wall_ns == reader->levels_start_ns)
			*value = add(*value, level->value);
	}
	finish_maxima(reader);
	reader->level_count = 0;
}
