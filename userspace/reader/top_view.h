/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides which rows of the model are shown, in which order, and handles keys.  Knows no
 * terminal. */
#ifndef READER_TOP_VIEW_H
#define READER_TOP_VIEW_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "reader/top_model.h"

#define TOP_FILTER_BYTES 128U

enum top_sort { TOP_BY_CPU, TOP_BY_GIL, TOP_BY_WAIT, TOP_BY_NAME };
extern const char *const top_sort_names[]; /* with NULL behind */

/* Release with top_view_release(). */
struct top_view {
	enum top_sort sort;
	unsigned int depth;	       /* 1: processes; 2: functions; 3: lines too */
	unsigned int functions, lines; /* the most functions per process, and lines per function */
	bool shows_idle;	       /* also shows processes with 0 in the sorted column */
	bool is_frozen, shows_help, wants_end;
	unsigned int first;	    /* number of rows scrolled past */
	unsigned int columns, rows; /* of the screen; 0: no limit */
	bool color, full_paths;
	bool is_typing; /* the user is typing a filter */
	char typed[TOP_FILTER_BYTES], filter[TOP_FILTER_BYTES];
	regex_t *regex;	   /* of the filter; owned; NULL: none */
	const char *error; /* about the text typed last; NULL */
};

void top_view_release(struct top_view *view);
/* Sets the filter, an extended regular expression; "": none.  Returns 0; -EINVAL: not an
 * expression, the old filter stays; -ENOMEM. */
int top_view_set_filter(struct top_view *view, const char *text);
/* Handles keys as a terminal sends them.  Returns whether something changed. */
bool top_view_keys(struct top_view *view, const char *keys, size_t size);
/* Prints whole lines, each ended by line_end.  model NULL: no data yet.  Returns 0 or -ENOMEM. */
int top_view_print(const struct top_view *view, const struct top_model *model, const char *line_end,
		   FILE *out);

#endif
