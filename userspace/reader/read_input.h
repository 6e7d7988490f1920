/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a verb's input with a person at the terminal: progress, messages, Ctrl-C. */
#ifndef READER_READ_INPUT_H
#define READER_READ_INPUT_H

#include "base/kinds.h"
#include "query/input.h"
#include "query/select.h"

/* For input_options.keep_labels: none; who a sample is of. */
extern const char *const input_no_labels[];
extern const char *const input_thread_labels[];

/* input_read() with options.watcher set: shows progress on a terminal, and prints errors.  SIGINT
 * ends only the wait for live windows.  Returns 0, or the exit code for the verb. */
int read_input(struct input_options options, struct input **ret_input);
/* Reads the same windows of a kind of records as a verb did, from: its live windows.  *ret_input
 * NULL: there are none.  Returns what read_input() does. */
int read_records(struct input_options options, const struct input *from, struct input **ret_input);

/* What a verb looks for, and what it says where that is not there. */
struct wanted_kinds {
	enum pp_profile kind[2]; /* the preferred one first */
	unsigned int count;
	const char *nothing; /* "no memory" */
	const char *how_to_record;
};
/* Sets select->kind to the first of the kinds that the first path has, which alone is looked at,
 * before anything is read of it; where that is not known, to the preferred one.  Returns 0, or
 * READER_BAD_INPUT after one line on stderr. */
int choose_kind(struct select *select, const struct wanted_kinds *wanted);
/* Says that there is none of them.  Returns READER_BAD_INPUT. */
int input_has_none(const struct wanted_kinds *wanted, const char *title);
/* Returns whether a path may have several kinds: a directory, or a collector of another machine;
 * of_url: what it returns of a plain URL. */
bool path_has_kinds(const char *path, bool of_url);

/* Reads the exact totals of what a selection of kind cuda chooses, after it was read into `from`
 * with live_more GPU_LIVE_MORE.  are_whole: with all labels and frames.  *ret_records is of kind
 * cuda_calls, and *ret_input has its strings; both are NULL where there are none.  Returns 0, or
 * the exit code for the verb. */
#define GPU_LIVE_MORE (1U << PP_PROFILE_GPU | 1U << PP_PROFILE_CUDA_CALLS)
int gpu_input_totals(const struct select *select, const struct input *from, bool are_whole,
		     struct input **ret_input, const struct profile **ret_records);

#define EXACT_PATH_BYTES 4096U

/* A profile that was made, in a directory of its own below TMPDIR. */
struct exact {
	char path[EXACT_PATH_BYTES]; /* "": there is none */
};

/* Records the selected pids for live_seconds, and shows the seconds on a terminal.  lines: for
 * --lines; NULL: calls are counted; slowdown: for --max-slowdown; NULL: its default.  Ctrl-C ends
 * it early, with what was counted until then.  From then on `select` is of the profile alone; it
 * goes when *ret_exact is released.  Returns READER_OK, or READER_BAD_INPUT after one line on
 * stderr. */
int exact_record(struct select *select, const char *lines, const char *slowdown,
		 struct exact *ret_exact);
/* Deletes the profile; a zeroed one is fine. */
void exact_release(struct exact *exact);

#endif
