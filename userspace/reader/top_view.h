/* SPDX-License-Identifier: BSD-2-Clause */
/* What of the model is shown, in which order, and what keys do to that.  Knows no terminal. */
#ifndef READER_TOP_VIEW_H
#define READER_TOP_VIEW_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "reader/top_model.h"

#define TOP_FILTER_BYTES 128U

enum top_sort { TOP_BY_CPU, TOP_BY_GIL, TOP_BY_WAIT, TOP_BY_NAME };

/* Release with top_view_release(). */
struct top_view {
	enum top_sort sort;
	unsigned int depth;		/* 1: processes; 2: functions; 3: lines, too */
	unsigned int functions, lines; /* of one process; of one function, at most */
	bool shows_idle;		/* processes that have nothing in the column sorted by */
	bool is_frozen, shows_help, wants_end;
	unsigned int first;	     /* rows that are scrolled over */
	unsigned int columns, rows; /* of the screen; 0: as many as there are */
	bool color, full_paths;
	bool is_typing; /* a filter */
	char typed[TOP_FILTER_BYTES], filter[TOP_FILTER_BYTES];
	regex_t *regex;	   /* of the filter; owned; NULL: none */
	const char *error; /* of what was typed last; NULL */
};

void top_view_release(struct top_view *view);
/* Extended regular expression; "": none.  0; -EINVAL: it is none, and the old one stays; -ENOMEM. */
int top_view_set_filter(struct top_view *view, const char *text);
/* Keys as a terminal sends them.  Whether something changed. */
bool top_view_keys(struct top_view *view, const char *keys, size_t size);
bool top_view_sort(struct top_view *view, const char *name);
/* Whole lines, each ended by line_end.  model NULL: there is nothing yet.  0 or -ENOMEM. */
int top_view_print(const struct top_view *view, const struct top_model *model, const char *line_end,
		   FILE *out);

#endif
