/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads what a selection names into one merged profile: files, directories, time ranges, what runs
 * now. */
#ifndef QUERY_INPUT_H
#define QUERY_INPUT_H

#include "pprof/profile_read.h"
#include "query/coverage.h"
#include "query/select.h"
#include "query/watcher.h"
#include "render/short_paths.h"

struct input_options {
	const struct select *select;
	const struct watcher *watcher; /* required */
	const char *const
		/* as in profile_read_options; labels that --group-by needs are added */
		*keep_labels;
	bool drop_addresses, drop_lines, python_only; /* --python sets it for all verbs */
	/* Of windows, overrides --kind and --sample-type; NULL: these decide.  A kind of records is
	 * read from files of other kinds, too, that have its values. */
	const char *kind;
	/* Bytes of memory for what is read, and of windows of --live that wait; 0: as much as
	 * anybody gets.  What needs more is an error, -EFBIG. */
	size_t memory_max, live_max;
	bool may_be_none; /* when there are no such windows: NULL, without a message */
	/* With --live: also fetches windows of these kinds, bits 1 << enum pp_profile, for a later
	 * input_read() that has this input in live_from. */
	uint32_t live_more;
	const struct input *live_from;
	bool comments_only; /* no sample is read: the profile is empty */
	bool drop_stacks;   /* samples have labels alone, and no stack is looked at */
	int (*window_done)(void *context, struct profile *profile,
			   const struct profile_window *window);
	/* called before a path's first file; `path`: index in select */
	void (*path_begin)(void *context, int path);
	void (*comment)(void *context, const char *text);
	void *context;
};

struct input;

/* Reads everything.  Returns 0; -errno, and in why one line with the file's name, or "" where
 * watcher.words has it. */
int input_read(const struct input_options *options, char why[WHY_BYTES], struct input **ret_input);
void input_free(struct input *input);
DEFINE_OWNED(struct input, input)

struct profile *input_profile(const struct input *input);
const struct profile_reader *input_reader(const struct input *input);
struct profile_read_totals input_totals(const struct input *input);
/* Returns the type and unit of the values that are shown. */
const struct profile_value_type *input_value_type(const struct input *input);
/* Returns the short paths of the profile's source files; NULL with --full-paths. */
const struct short_paths *input_short_paths(const struct input *input);
/* Returns "P.pb.gz" or "DIR (360 windows)". */
const char *input_title(const struct input *input);
/* Returns "only 14.0 % of ... is in it" for the first line of a view, or "". */
const char *input_coverage(const struct input *input, char buffer[COVERAGE_BYTES]);
/* Returns a path as the user typed it, after utf8_clean(). */
const char *input_path(const struct input *input, int index);

#endif
