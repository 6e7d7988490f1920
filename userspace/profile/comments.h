/* SPDX-License-Identifier: BSD-2-Clause */
/* The comments of a profile that programs read: each is written and read here only. */
#ifndef PROFILE_COMMENTS_H
#define PROFILE_COMMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- a window's capture metadata: "facts samples=12 complete=11 ..." ---- */

/* Writing: the head once, then each fact.  prefix and name together are its name: no '=', no
 * space. */
void facts_begin(FILE *out);
void facts_put(FILE *out, const char *prefix, const char *name, uint64_t value);

/* Calls back for each counter of a comment, up to the first text that is not one; `name` is `size`
 * bytes without a NUL.  Ignores other comments. */
void facts_read(const char *comment,
		void (*on_fact)(void *context, const char *name, size_t size, uint64_t value),
		void *context);

/* ---- files of several windows (docs/design/profiles.md) ----
 * One comment lists each window, and those of one window alone say which one. */

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

/* Writes "window 10000 name=1795273360123-10000 start_ns=... duration_ns=... period=...". */
void window_mark_format(const struct window_mark *mark, char text[WINDOW_MARK_CHARS]);
/* Returns false for any other comment. */
bool window_mark_parse(const char *comment, struct window_mark *ret_mark);

/* Writes "window 10000: " before the comment of one window; on the heap.  Returns NULL without
 * memory. */
char *window_comment_format(uint64_t offset_ms, const char *comment);
/* Returns the comment itself and its window, or NULL when it is not of one window alone. */
const char *window_comment_parse(const char *comment, uint64_t *ret_offset_ms);

/* ---- the program that wrote the profile: "pyprofd 0.1.0 cpu 99Hz host=box" ---- */

#define WRITER_TEXT_BYTES 192U

struct profile_writer {
	char version[32];
	char kind[33];
	unsigned int hz;
	char host[64];
};

void profile_writer_format(const struct profile_writer *writer, char text[WRITER_TEXT_BYTES]);
/* Returns false for any other comment.  A later version may write more or less behind its number:
 * what is not there is "" or 0. */
bool profile_writer_parse(const char *comment, struct profile_writer *ret_writer);

#endif
