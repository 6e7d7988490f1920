/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the last window's values of sample types that are levels: what is held at the end of two
 * windows is not held twice. */
#include <errno.h>

#include "base/array.h"
#include "base/kinds.h"
#include "pprof/profile_reader.h"

void reader_find_levels(struct profile_reader *reader, const struct profile_options *options)
{
	for (size_t i = 0; i < options->value_count; i++)
		if (kind_value_is_level(options->kind, options->value_type[i].type))
			reader->levels |= 1U << i;
}

static bool is_level(const struct profile_reader *reader, size_t value_index)
{
	/* The windows of a file that is merged stay apart. */
	return !reader->adds_window && reader->levels & 1U << value_index;
}

int reader_take_levels(struct profile_reader *reader, uint32_t row, uint32_t window,
		       const int64_t *value)
{
	reader->window[window].has_rows = true;
	for (size_t i = 0; reader->levels && i < reader->profile->options.value_count; i++) {
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
	for (size_t i = 0; reader->levels && i < reader->profile->options.value_count; i++)
		if (is_level(reader, i))
			value[i] = 0;
}

static void clear_levels(const struct profile_reader *reader)
{
	struct profile *profile = reader->profile;
	const size_t values = profile->options.value_count;

	for (size_t i = 0; i < values; i++) {
		if (!is_level(reader, i))
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

		if (reader->window[level->window].mark.start_wall_ns == reader->levels_start_ns &&
		    __builtin_add_overflow(*value, level->value, value))
			*value = INT64_MAX;
	}
	reader->level_count = 0;
}
