/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows source code with its figures, as text, as a table and as HTML. */
#ifndef READER_LINE_VIEWS_H
#define READER_LINE_VIEWS_H

#include "query/input.h"
#include "render/table.h"
#include "render/totals.h"

#define LINES_MAX_TABLE_COLUMNS 10U

struct lines_view {
	const char *file, *function; /* as the user typed them; function NULL: all */
	const char *source_path;     /* where to read the source; NULL: the path in the profile */
	const char *title, *unit;
	const struct profile *profile;
	/* Totals by CODE_BY_SOURCE_LINE of samples on the CPU, and of waits grouped by
	 * GROUP_BY_WAIT. */
	const struct totals *ran;
	const struct totals *waited; /* NULL: not known */
	uint64_t end_wall_ns;	     /* of the profile */
	bool all, is_python;
	bool is_exact;			     /* lines were counted: lines_are_exact() */
	unsigned int hits_value, time_value; /* of exact lines, where they stand in samples */
	struct table_column column[LINES_MAX_TABLE_COLUMNS]; /* of the table that is written */
};

/* Returns whether a profile's path matches what the user typed: "w.py", "pkg/w.py",
 * "/app/pkg/w.py". */
bool line_path_matches(const char *path, const char *wanted);
/* Finds whether lines were counted in the profile, and where their values stand. */
void lines_find_exact(struct lines_view *view, const struct profile *profile);

/* Begins the table of lines, for programs one of all files; for people lines_put() begins one a
 * file. */
void lines_begin(struct lines_view *view, struct table *table);
/* Writes a file, the path of which is a string of the profile.  table NULL: into a page of HTML.
 * Returns 0, -ENOMEM, or pyprof's exit code. */
int lines_put(struct lines_view *view, uint32_t path_string, struct table *table);
void lines_begin_html(const struct lines_view *view);
void lines_end_html(void);

#endif
