/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes the windows of a merged file apart (docs/design/profiles.md); any other file is one
 * window. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "pprof/profile_reader.h"

/* ---- which windows the file has ---- */

static int compare_windows(const void *a, const void *b)
{
	const uint64_t offset_a = ((const struct reader_window *)a)->mark.offset_ms;
	const uint64_t offset_b = ((const struct reader_window *)b)->mark.offset_ms;

	return (offset_a > offset_b) - (offset_a < offset_b);
}

static int compare_offset(const void *key, const void *item)
{
	const uint64_t offset = *(const uint64_t *)key;
	const uint64_t other = ((const struct reader_window *)item)->mark.offset_ms;

	return (offset > other) - (offset < other);
}

static struct reader_window *find_window(const struct profile_reader *reader, uint64_t offset_ms)
{
	return bsearch(&offset_ms, reader->window, reader->window_count, sizeof(*reader->window),
		       compare_offset);
}

static int add_window(struct profile_reader *reader, const struct window_mark *mark)
{
	if (ARRAY_RESERVE(reader->window, reader->window_count, reader->window_capacity))
		return reader_fail(reader, -ENOMEM, "not enough memory");
	reader->window[reader->window_count++] =
		(struct reader_window){.mark = *mark, .is_wanted = true};
	return 0;
}

/* Parses a comment as it is in the file: most of a merged file's are not of the list. */
static bool parse_mark(const struct profile_reader *reader, uint64_t text,
		       struct window_mark *ret_mark)
{
	const struct pprof_text *at;
	char copy[WINDOW_MARK_CHARS];

	if (text >= reader->tables.text_count)
		return false; /* reader_add_comments() tells it */
	at = &reader->tables.text[text];
	if (at->size >= sizeof(copy))
		return false;
	memcpy(copy, reader->tables.bytes + at->offset, at->size);
	copy[at->size] = '\0';
	return window_mark_parse(copy, ret_mark);
}

static int list_marks(struct profile_reader *reader)
{
	struct window_mark mark;
	int err = 0;

	for (uint32_t i = 0; !err && i < reader->tables.comment_count; i++)
		if (parse_mark(reader, reader->tables.comment[i], &mark))
			err = add_window(reader, &mark);
	return err;
}

/* Sorts the windows of a merged file and asks which are wanted. */
static int choose_windows(struct profile_reader *reader)
{
	const struct profile_read_options *options = &reader->options;

	if (reader->adds_window)
		return reader_fail(reader, -EBADMSG, "has several windows already");
	qsort(reader->window, reader->window_count, sizeof(*reader->window), compare_windows);
	for (uint32_t i = 0; i < reader->window_count; i++) {
		struct reader_window *window = &reader->window[i];

		if (i && window->mark.offset_ms == window[-1].mark.offset_ms)
			return reader_fail(reader, -EBADMSG, "broken: it lists a window twice");
		window->is_wanted = !options->wants_window ||
				    options->wants_window(options->context, &window->mark);
	}
	return 0;
}

/* Finds the key of the label, so that samples are told apart without a look at texts. */
static void find_window_text(struct profile_reader *reader)
{
	const struct pprof_tables *tables = &reader->tables;
	const size_t size = strlen(WINDOW_LABEL);

	reader->has_window_text = false;
	for (uint32_t i = 0; i < tables->text_count && !reader->has_window_text; i++)
		if (tables->text[i].size == size &&
		    !memcmp(tables->bytes + tables->text[i].offset, WINDOW_LABEL, size)) {
			reader->has_window_text = true;
			reader->window_text = i;
		}
}

int reader_list_windows(struct profile_reader *reader)
{
	const struct window_mark whole = {.start_wall_ns = reader->tables.time_ns,
					  .duration_ns = reader->tables.duration_ns,
					  .period = reader->tables.period};
	int err;

	reader->window_count = 0;
	err = list_marks(reader);
	if (err)
		return err;
	reader->is_merged = reader->window_count;
	find_window_text(reader);
	return reader->is_merged ? choose_windows(reader) : add_window(reader, &whole);
}

int reader_compare_windows(struct profile_reader *reader)
{
	const uint32_t count = reader->window_count;
	OWNED_MEM struct reader_window *first = calloc(count, sizeof(*first));
	int err;

	if (!first)
		return reader_fail(reader, -ENOMEM, "not enough memory");
	memcpy(first, reader->window, count * sizeof(*first));
	err = reader_list_windows(reader);
	if (err)
		return err;
	if (reader->window_count != count)
		return reader_fail(reader, -EPROTO, "has other windows than offcpu's file");
	for (uint32_t i = 0; i < count; i++) {
		const struct window_mark *mark = &reader->window[i].mark;

		if (mark->offset_ms != first[i].mark.offset_ms ||
		    mark->start_ms != first[i].mark.start_ms)
			return reader_fail(reader, -EPROTO, "has other windows than offcpu's file");
		reader->window[i].is_wanted = first[i].is_wanted;
	}
	return 0;
}

int reader_take_window(struct profile_reader *reader, struct raw_label *label, uint32_t *count,
		       uint32_t *ret_window)
{
	const struct reader_window *window;

	for (uint32_t i = 0; reader->has_window_text && i < *count; i++) {
		if (label[i].key != reader->window_text || label[i].str)
			continue;
		window = find_window(reader, label[i].num);
		if (!window)
			break;
		label[i] = label[--*count];
		*ret_window = (uint32_t)(window - reader->window);
		return 0;
	}
	return reader_fail(reader, -EBADMSG, "broken: a sample is of no window of the file");
}

/* ---- comments ---- */

static bool has_comment(const struct profile *profile, uint32_t string)
{
	for (uint32_t i = 0; i < profile->comment_count; i++)
		if (profile->comment[i] == string)
			return true;
	return false;
}

static void drop_comments_of_window(struct profile *profile)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < profile->comment_count; i++)
		if (!facts_are_of_window(intern_get(profile->strings, profile->comment[i], NULL)))
			profile->comment[kept++] = profile->comment[i];
	profile->comment_count = kept;
}

/* Adds a comment of so many windows. */
static int add_comment(struct profile_reader *reader, const char *text, uint32_t windows)
{
	uint32_t string;
	int err;

	for (uint32_t i = 0; reader->options.comment && i < windows; i++)
		reader->options.comment(reader->options.context, text);
	if (!windows || (reader->totals.windows > 1 && facts_are_of_window(text)))
		return 0;
	err = intern_string(reader->strings, text, &string);
	if (err || has_comment(reader->profile, string))
		return err;
	return profile_add_comment(reader->profile, text);
}

static uint32_t wanted_windows(const struct profile_reader *reader)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < reader->window_count; i++)
		count += reader->window[i].is_wanted;
	return count;
}

/* A comment of a merged file is of one window, or of all. */
static int add_merged_comment(struct profile_reader *reader, const char *text, uint32_t windows)
{
	const struct reader_window *window;
	struct window_mark mark;
	uint64_t offset_ms;
	const char *own = window_comment_parse(text, &offset_ms);

	if (!own)
		return window_mark_parse(text, &mark) ? 0 : add_comment(reader, text, windows);
	window = find_window(reader, offset_ms);
	return window && window->is_wanted ? add_comment(reader, own, 1) : 0;
}

int reader_add_comments(struct profile_reader *reader)
{
	const uint32_t windows = wanted_windows(reader);
	int err = 0;

	if (reader->totals.windows > 1)
		drop_comments_of_window(reader->profile);
	for (uint32_t i = 0; !err && i < reader->tables.comment_count; i++) {
		const char *text;

		err = reader_passing_text(reader, reader->tables.comment[i], &text);
		if (!err)
			err = reader->is_merged ? add_merged_comment(reader, text, windows)
						: add_comment(reader, text, 1);
	}
	return err;
}

/* ---- deltas ---- */

/* Sorts the deltas by window, and keeps their order within one. */
static int sort_deltas(struct profile_reader *reader)
{
	size_t at = 0;

	if (reader->sorted_capacity < reader->delta_capacity) {
		free(reader->sorted);
		reader->sorted_capacity = 0;
		reader->sorted = calloc(reader->delta_capacity, sizeof(*reader->sorted));
		if (!reader->sorted)
			return reader_fail(reader, -ENOMEM, "not enough memory");
		reader->sorted_capacity = reader->delta_capacity;
	}
	for (uint32_t i = 0; i < reader->delta_count; i++)
		reader->window[reader->delta[i].window].delta_count++;
	for (uint32_t i = 0; i < reader->window_count; i++) {
		const size_t count = reader->window[i].delta_count;

		reader->window[i].delta_count = at;
		at += count;
	}
	for (uint32_t i = 0; i < reader->delta_count; i++)
		reader->sorted[reader->window[reader->delta[i].window].delta_count++] =
			reader->delta[i];
	return 0;
}

static int finish_window(struct profile_reader *reader, const struct window_mark *mark,
			 const struct profile_delta *delta, size_t count)
{
	struct profile_window window = {.start_wall_ns = mark->start_wall_ns,
					.duration_ns = mark->duration_ns,
					.delta = delta,
					.delta_count = count,
					.period = mark->period};
	const struct profile_options *options = &reader->profile->options;
	int err;

	window.is_level = reader->levels & 1U << reader->value_index;
	window.is_most = reader->maxima & 1U << reader->value_index;
	window.counts_effective =
		reader->count_index >= 0 &&
		!strcmp(options->value_type[reader->count_index].type, "effective");
	for (size_t i = 0; i < window.delta_count; i++)
		if (__builtin_add_overflow(window.total, window.delta[i].value, &window.total))
			window.total = INT64_MAX;
	err = reader->options.window_done(reader->options.context, reader->profile, &window);
	return err ? reader_fail(reader, err, "not enough memory") : 0;
}

int reader_finish_windows(struct profile_reader *reader)
{
	size_t begin = 0;
	int err;

	if (!reader->options.window_done)
		return 0;
	if (!reader->is_merged)
		return finish_window(reader, &reader->window[0].mark, reader->delta,
				     reader->delta_count);
	err = sort_deltas(reader);
	for (uint32_t i = 0; !err && i < reader->window_count; i++) {
		const struct reader_window *window = &reader->window[i];

		if (window->is_wanted)
			/* Without any delta there is no list. */
			err = finish_window(reader, &window->mark,
					    reader->sorted ? reader->sorted + begin : NULL,
					    window->delta_count - begin);
		begin = window->delta_count; /* where the next window's begin */
	}
	return err;
}

int reader_add_empty_window(struct profile_reader *reader, const struct window_mark *mark)
{
	return reader->options.window_done ? finish_window(reader, mark, NULL, 0) : 0;
}
