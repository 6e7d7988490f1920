/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows a diff as tables. */
#ifndef READER_DIFF_VIEW_H
#define READER_DIFF_VIEW_H

#include "diff/table.h"
#include "query/input.h"
#include "render/table.h"

struct diff_view {
	const struct input *input;
	struct diff_data *data;
	const struct diff_facts *facts; /* of both sides */
	unsigned long rows;		/* of a table; 0: all */
	enum diff_column sort;
};

#define DIFF_VIEW_COLUMNS 20U

extern const char *const diff_by_names[DIFF_TABLES];

/* Writes what was compared, and the change of the total.  Returns 0 or -ENOMEM. */
int diff_view_head(const struct diff_view *view, struct table *table);
/* Writes tables, significant rows first; by: bits of enum diff_by.  People get one each, programs
 * one of all, with the column `by`.  tests: of each.  Returns 0 or -ENOMEM. */
int diff_view_tables(const struct diff_view *view, unsigned int by,
		     const uint32_t tests[DIFF_TABLES], struct table *table);
/* Writes the name of a row to `out`, in one line: "scan  w.py:12"; for a stack its functions, root
 * first. */
void diff_view_name(const struct diff_view *view, enum diff_by by, const struct diff_row *row,
		    FILE *out);

#endif
