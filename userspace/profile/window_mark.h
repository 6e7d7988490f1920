/* SPDX-License-Identifier: BSD-2-Clause */
/* The comments of a file that holds several windows (docs/design/profiles.md): one lists each
 * window, and those of one window alone say which one.  They are written and read here only. */
#ifndef PROFILE_WINDOW_MARK_H
#define PROFILE_WINDOW_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
