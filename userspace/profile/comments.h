/* SPDX-License-Identifier: BSD-2-Clause */
/* The comments of a profile that programs read are lines of facts: "NAME=VALUE NAME=VALUE ...",
 * separated by a blank.  Facts of one window begin with a number; others say first what they are
 * of. */
#ifndef PROFILE_COMMENTS_H
#define PROFILE_COMMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct fact {
	const char *name, *text; /* in the comment, without NUL */
	size_t name_size, text_size;
	bool is_number;
	uint64_t number; /* else 0 */
};

/* Writes one more fact of a line.  prefix and name together are its name: no '=', no blank. */
void facts_put(FILE *out, const char *prefix, const char *name, uint64_t value);
/* Reads the fact at *at and moves behind it.  Returns false at the end of the facts. */
bool fact_next(const char **at, struct fact *ret_fact);
bool fact_is(const struct fact *fact, const char *name);
/* Finds a fact of a comment.  Returns false when it has none of that name. */
bool facts_find(const char *comment, const char *name, struct fact *ret_fact);
/* Returns a number; 0: there is none of that name. */
uint64_t facts_number(const char *comment, const char *name);
/* Returns whether a comment's facts are of one window. */
bool facts_are_of_window(const char *comment);

/* Of the program that wrote the profile: "pyprofd=0.1.0 kind=cpu hz=99 host=box". */
#define FACT_WRITER "pyprofd"

/* ---- files of several windows (docs/design/profiles.md) ----
 * One comment lists each window, and those of one window alone begin with which one. */

#define WINDOW_MARK_CHARS 192U
/* Of samples: in which window they were taken, milliseconds since the file's start. */
#define WINDOW_LABEL "window"
#define WINDOW_LABEL_UNIT "milliseconds"

/* One window of several. */
struct window_mark {
	uint64_t offset_ms; /* the label of its samples; no two of a file have the same */
	/* As in the name of the file that the window had for itself: no two windows of a kind have
	 * the same, except where the clock was set back. */
	uint64_t start_ms, duration_ms;
	uint64_t start_wall_ns, duration_ns; /* as in that file; 0: it did not say */
	int64_t period;			     /* as in that file */
};

/* Writes "window=10000 start_ms=... duration_ms=... start_ns=... duration_ns=... period=...". */
void window_mark_format(const struct window_mark *mark, char text[WINDOW_MARK_CHARS]);
/* Returns false for any other comment. */
bool window_mark_parse(const char *comment, struct window_mark *ret_mark);

/* Writes "window=10000 " before the comment of one window; on the heap.  Returns NULL without
 * memory. */
char *window_comment_format(uint64_t offset_ms, const char *comment);
/* Returns the comment itself and its window, or NULL when it is not of one window alone. */
const char *window_comment_parse(const char *comment, uint64_t *ret_offset_ms);

#endif
