/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows source code with its figures, as text and as HTML. */
#ifndef READER_LINE_VIEWS_H
#define READER_LINE_VIEWS_H

#include "reader/line_table.h"
#include "reader/source.h"

#define LINES_MAX_NOTE_BYTES 256U

struct lines_view {
	const char *file, *function; /* as the user typed them; function NULL: all */
	const char *source_path;     /* where to read the source; NULL: the path in the profile */
	const char *title, *unit;
	const struct totals *ran;
	uint64_t end_wall_ns; /* of the profile */
	bool all, color, is_python, has_waits;
	bool is_exact; /* lines were counted */
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

/* Print a file.  Return 0, -ENOMEM, or pyprof's exit code. */
int lines_print_text(const struct lines_view *view, const struct line_file *file);
int lines_print_html(const struct lines_view *view, const struct line_file *file);
void lines_begin_html(const struct lines_view *view);
void lines_end_html(void);

#endif
