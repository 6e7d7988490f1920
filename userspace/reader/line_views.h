/* SPDX-License-Identifier: BSD-2-Clause */
/* The source with its figures, as text and as HTML. */
#ifndef READER_LINE_VIEWS_H
#define READER_LINE_VIEWS_H

#include "reader/line_table.h"
#include "reader/source.h"

#define LINES_MAX_NOTE_BYTES 256U

struct lines_view {
	const char *file, *function; /* as the user said; function NULL: all */
	const char *source_path;     /* NULL: where it ran */
	const char *title, *unit;
	const struct totals *ran;
	uint64_t end_wall_ns; /* of the profile */
	bool all, color, is_python, has_waits;
};

/* Lines [first, last] that are shown together. */
struct lines_span {
	uint32_t first, last;
};

/* Release with lines_page_release(). */
struct lines_page {
	struct source source;
	char note[LINES_MAX_NOTE_BYTES]; /* on the source; "": it is as it was */
	struct lines_span *span;	 /* ascending, apart */
	uint32_t count, capacity;
};

/* What is shown of a file.  0; -ENOENT: no such function in it; -ENOMEM. */
int lines_page_make(const struct lines_view *view, const struct line_file *file,
		    struct lines_page *ret_page);
void lines_page_release(struct lines_page *page);

/* 0, -ENOMEM, or what pyprof exits with. */
int lines_print_text(const struct lines_view *view, const struct line_file *file);
int lines_print_html(const struct lines_view *view, const struct line_file *file);
void lines_begin_html(const struct lines_view *view);
void lines_end_html(void);

#endif
