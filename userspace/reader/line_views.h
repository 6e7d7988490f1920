/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows source code with its figures, as text and as HTML. */
#ifndef READER_LINE_VIEWS_H
#define READER_LINE_VIEWS_H

#include "reader/line_table.h"
#include "reader/source.h"
#include "render/table.h"

#define LINES_MAX_NOTE_BYTES 256U
#define LINES_MAX_TABLE_COLUMNS 10U

struct lines_view {
	const char *file, *function; /* as the user typed them; function NULL: all */
	const char *source_path;     /* where to read the source; NULL: the path in the profile */
	const char *title, *unit;
	const struct totals *ran;
	uint64_t end_wall_ns; /* of the profile */
	bool all, is_python, has_waits;
	bool is_exact;					     /* lines were counted */
	struct table_column column[LINES_MAX_TABLE_COLUMNS]; /* of the table that is written */
};

/* Lines [first, last] that are shown as one block. */
struct lines_span {
	uint32_t first, last;
};

/* Release with lines_page_release(). */
struct lines_page {
	struct source source;
	char note[LINES_MAX_NOTE_BYTES]; /* about the source; "": it has not changed */
	struct lines_span *span;	 /* ascending, without overlaps */
	uint32_t count, capacity;
};

/* Selects what to show of a file.  Returns 0; -ENOENT: it has no such function; -ENOMEM. */
int lines_page_make(const struct lines_view *view, const struct line_file *file,
		    struct lines_page *ret_page);
void lines_page_release(struct lines_page *page);

/* Begins the table of lines, for programs one of all files; for people lines_put() begins one a
 * file. */
void lines_begin(struct lines_view *view, struct table *table);
/* Write a file.  Return 0, -ENOMEM, or pyprof's exit code. */
int lines_put(struct lines_view *view, const struct line_file *file, struct table *table);
int lines_print_html(const struct lines_view *view, const struct line_file *file);
void lines_begin_html(const struct lines_view *view);
void lines_end_html(void);

#endif
