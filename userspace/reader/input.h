/* SPDX-License-Identifier: BSD-2-Clause */
/* From the command line to one merged profile: files, folders, time ranges, filters, progress. */
#ifndef READER_INPUT_H
#define READER_INPUT_H

#include "pprof/profile_read.h"
#include "reader/coverage.h"
#include "reader/select.h"
#include "render/short_paths.h"

struct input_options {
	const struct select *select;
	const char *const
		*keep_labels; /* as profile_read_options; what --group-by needs is added */
	bool drop_addresses, drop_lines, python_only; /* --python: always */
	const char *kind; /* of windows, above --kind; NULL: as --kind says */
	bool may_be_none; /* no such windows: NULL, and no word of it */
	/* --live: takes windows of this kind, too, for an input_read() that names this one in live_from.
	 * NULL: none. */
	const char *live_more;
	const struct input *live_from;
	int (*window_done)(void *context, struct profile *profile,
			   const struct profile_window *window);
	void (*path_begin)(void *context, int path); /* before its first file: path of select */
	void (*comment)(void *context, const char *text);
	void *context;
};

struct input;

/* Reads everything.  Errors are printed: one line with the file's name.
 * Returns 0, or what the verb shall exit with. */
int input_read(const struct input_options *options, struct input **ret_input);
void input_free(struct input *input);
DEFINE_OWNED(struct input, input)

struct profile *input_profile(const struct input *input);
const struct profile_reader *input_reader(const struct input *input);
/* Of the profile's source files; NULL with --full-paths. */
const struct short_paths *input_short_paths(const struct input *input);
/* "P.pb.gz", "DIR (360 windows)". */
const char *input_title(const struct input *input);
/* "only 14.0 % of ... is in it", or "": for the first line of a view. */
const char *input_coverage(const struct input *input, char buffer[COVERAGE_BYTES]);
/* As the user typed it. */
const char *input_path(const struct input *input, int index);

#endif
