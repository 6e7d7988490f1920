/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/merge_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/intern.h"
#include "pprof/pprof.h"
#include "pprof/pprof_tables.h"
#include "pprof/profile_read.h"
#include "profile/profile_data.h"
#include "profile/row_order.h"

/* A comment of a window. */
struct comment {
	const char *text; /* of merge.strings */
	uint32_t window;
};

struct merge {
	int hour_fd;
	const struct merge_group *group;
	struct window_mark *mark; /* owned; one a window */
	uint32_t window;	  /* whose file is read now */
	struct intern *strings;
	struct comment *comment;
	size_t comment_count, comment_capacity;
	int err; /* of a callback that returns none */
};

static void merge_release(struct merge *merge)
{
	intern_free(merge->strings);
	free(merge->comment);
	free(merge->mark);
}

void merged_file_release(struct merged_file *file)
{
	free(file->bytes);
	*file = (struct merged_file){0};
}

/* ---- reading ---- */

static void on_comment(void *context, const char *text)
{
	struct merge *merge = context;
	uint32_t string;

	if (!merge->err)
		merge->err = intern_string(merge->strings, text, &string);
	if (!merge->err)
		merge->err = ARRAY_RESERVE(merge->comment, merge->comment_count,
					   merge->comment_capacity);
	if (!merge->err)
		merge->comment[merge->comment_count++] = (struct comment){
			.text = intern_get(merge->strings, string, NULL), .window = merge->window};
}

static int window_done(void *context, struct profile *profile, const struct profile_window *window)
{
	struct merge *merge = context;
	struct window_mark *mark = &merge->mark[merge->window];

	(void)profile;
	mark->start_wall_ns = window->start_wall_ns;
	mark->duration_ns = window->duration_ns;
	mark->period = window->period;
	return window->period < 0 ? -EBADMSG : 0; /* the list of windows has no such number */
}

static int open_window(const struct merge *merge, int *ret_fd)
{
	const struct merge_window *window = &merge->group->window[merge->window];
	struct store_file file = {.start_ms = window->start_ms, .duration_ms = window->duration_ms};
	char name[STORE_FILE_CHARS];
	int fd;

	memcpy(file.kind, merge->group->kind, sizeof(file.kind));
	store_file_name(&file, name);
	fd = openat(merge->hour_fd, name, MERGE_OPEN_FLAGS);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static int read_window(struct merge *merge, struct profile_reader *reader)
{
	OWNED_FD int fd = -1;
	int err = open_window(merge, &fd);

	if (err)
		return err;
	profile_reader_set_window(reader, merge->mark[merge->window].offset_ms);
	err = profile_reader_add(reader, fd, merge->group->kind);
	return err ? err : merge->err;
}

/* Lists the windows by their names.  A name that another one has begun with moves on by
 * milliseconds, as its offset tells windows apart. */
static int list_windows(struct merge *merge)
{
	const struct merge_window *window = merge->group->window;
	uint64_t offset_ms = 0;

	merge->mark = calloc(merge->group->window_count, sizeof(*merge->mark));
	if (!merge->mark)
		return -ENOMEM;
	for (size_t i = 0; i < merge->group->window_count; i++) {
		const uint64_t own_ms = window[i].start_ms - window[0].start_ms;

		offset_ms = i && own_ms <= offset_ms ? offset_ms + 1 : own_ms;
		merge->mark[i] = (struct window_mark){
			.offset_ms = offset_ms,
			.start_ms = window[i].start_ms,
			.duration_ms = window[i].duration_ms,
			.start_wall_ns = window[i].start_ms * NS_PER_MS,
			.duration_ns = window[i].duration_ms * NS_PER_MS,
		};
	}
	return 0;
}

static int read_all(struct merge *merge, struct profile_reader *reader)
{
	int err = 0;

	for (size_t i = 0; !err && i < merge->group->window_count; i++) {
		merge->window = (uint32_t)i;
		if (merge->group->window[i].has_file)
			err = read_window(merge, reader);
	}
	return err;
}

/* ---- comments ---- */

static int compare_comments(const void *a, const void *b)
{
	const struct comment *comment_a = a, *comment_b = b;
	int result = strcmp(comment_a->text, comment_b->text);

	if (result)
		return result;
	return (comment_a->window > comment_b->window) - (comment_a->window < comment_b->window);
}

/* Returns whether comments of one text are one of each window. */
static bool is_of_all(const struct merge *merge, const struct comment *comment, size_t count)
{
	if (count != merge->group->window_count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (comment[i].window != i)
			return false;
	return true;
}

static int add_of_window(const struct merge *merge, struct profile *profile,
			 const struct comment *comment)
{
	OWNED_MEM char *text =
		window_comment_format(merge->mark[comment->window].offset_ms, comment->text);

	return text ? profile_add_comment(profile, text) : -ENOMEM;
}

/* Adds comments of one text. */
static int add_alike(const struct merge *merge, struct profile *profile,
		     const struct comment *comment, size_t count)
{
	int err = 0;

	if (is_of_all(merge, comment, count))
		return profile_add_comment(profile, comment->text);
	for (size_t i = 0; !err && i < count; i++)
		err = add_of_window(merge, profile, &comment[i]);
	return err;
}

/* Replaces the profile's comments by the list of its windows, and what these said.  Sorted: those
 * of one kind lie together. */
static int set_comments(struct merge *merge, struct profile *profile)
{
	const struct comment *comment = merge->comment;
	int err = 0;

	if (merge->comment_count + merge->group->window_count > PPROF_MAX_COMMENTS)
		return -E2BIG;
	profile->comment_count = 0;
	for (size_t i = 0; !err && i < merge->group->window_count; i++) {
		char text[WINDOW_MARK_CHARS];

		window_mark_format(&merge->mark[i], text);
		err = profile_add_comment(profile, text);
	}
	if (merge->comment_count)
		qsort(merge->comment, merge->comment_count, sizeof(*merge->comment),
		      compare_comments);
	for (size_t i = 0, end; !err && i < merge->comment_count; i = end) {
		for (end = i + 1; end < merge->comment_count; end++)
			if (comment[end].text != comment[i].text)
				break;
		err = add_alike(merge, profile, &comment[i], end - i);
	}
	return err;
}

/* ---- writing ---- */

static void set_times(const struct merge *merge, struct profile *profile, struct store_file *name)
{
	const struct merge_group *group = merge->group;
	uint64_t end_ms = 0, duration_ns = 0;

	for (size_t i = 0; i < group->window_count; i++) {
		uint64_t own_ms;

		if (__builtin_add_overflow(group->window[i].start_ms, group->window[i].duration_ms,
					   &own_ms))
			own_ms = UINT64_MAX;
		if (own_ms > end_ms)
			end_ms = own_ms;
		if (__builtin_add_overflow(duration_ns, merge->mark[i].duration_ns, &duration_ns))
			duration_ns = INT64_MAX;
	}
	*name = (struct store_file){.start_ms = group->window[0].start_ms,
				    .duration_ms = end_ms - group->window[0].start_ms,
				    .is_merged = true};
	snprintf(name->kind, sizeof(name->kind), "%s", group->kind);
	profile->options.start_wall_ns = merge->mark[0].start_wall_ns;
	profile->options.duration_ns = duration_ns;
}

/* Makes the file of all that was read. */
static int encode(struct merge *merge, struct profile *profile, struct merged_file *ret_file)
{
	CLEANUP(merged_file_release) struct merged_file file = {0};
	int err;

	profile_weigh_modules(profile);
	err = profile_order_rows(profile, WINDOW_LABEL);
	if (!err)
		err = set_comments(merge, profile);
	if (err)
		return err;
	set_times(merge, profile, &file.name);
	err = profile_encode_pprof_small(profile, &file.bytes, &file.size);
	if (err)
		return err;
	*ret_file = file;
	file = (struct merged_file){0};
	return 0;
}

int merge_group_files(int hour_fd, const struct merge_group *group, struct merged_file *ret_file)
{
	CLEANUP(merge_release) struct merge merge = {.hour_fd = hour_fd, .group = group};
	const struct profile_read_options options = {
		.window_done = window_done, .comment = on_comment, .context = &merge};
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	int err = intern_new(&merge.strings);

	if (!err)
		err = profile_reader_new(&options, &reader);
	if (!err)
		err = list_windows(&merge);
	if (!err)
		err = read_all(&merge, reader);
	if (err)
		return err;
	return profile_reader_profile(reader)
		       ? encode(&merge, profile_reader_profile(reader), ret_file)
		       : -ENODATA;
}
