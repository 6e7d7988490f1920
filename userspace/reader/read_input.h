/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a verb's input with a person at the terminal: progress, messages, Ctrl-C. */
#ifndef READER_READ_INPUT_H
#define READER_READ_INPUT_H

#include "query/input.h"
#include "query/select.h"
#include "reader/select_options.h"

/* input_read() with options.watcher set: shows progress on a terminal, and prints errors.  SIGINT
 * ends only the wait for live windows.  Returns 0, or the exit code for the verb. */
int read_input(struct input_options options, struct input **ret_input);
/* Reads the same windows of a kind of records as a verb did, from: its live windows.  *ret_input
 * NULL: there are none.  Returns what read_input() does. */
int read_records(struct input_options options, const struct input *from, struct input **ret_input);

/* Both return READER_BAD_INPUT, after a line that says what is missing and how_to_record. */
int gpu_input_none(const char *title, const char *how_to_record);
/* Looks at the first path alone, before anything is read of it: 0 when it may have profiles of kind
 * cuda. */
int gpu_input_check(const struct select_options *shared, const char *how_to_record);

#define EXACT_PATH_BYTES 4096U

/* A profile that was made, in a directory of its own below TMPDIR. */
struct exact {
	char path[EXACT_PATH_BYTES]; /* "": there is none */
};

/* All is borrowed. */
struct exact_options {
	struct select *select; /* pid and live_seconds */
	const char *lines;     /* for --lines; NULL: calls are counted */
	const char *slowdown;  /* for --max-slowdown; NULL: its default */
};
/* Records, and shows the seconds on a terminal.  Ctrl-C ends it early, with what was counted until
 * then.  From then on `select` is of the profile alone; it goes when *ret_exact is released.
 * Returns READER_OK, or READER_BAD_INPUT after one line on stderr. */
int exact_record(const struct exact_options *options, struct exact *ret_exact);
/* Deletes the profile; a zeroed one is fine. */
void exact_release(struct exact *exact);

#endif
