/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints a diff as text. */
#ifndef READER_DIFF_VIEW_H
#define READER_DIFF_VIEW_H

#include "diff/comparable.h"
#include "diff/table.h"
#include "query/input.h"

struct diff_view {
	const struct input *input;
	struct diff_data *data;
	const struct diff_facts *facts; /* of both sides */
	unsigned long rows;		/* of a table; 0: all */
	enum diff_column sort;
	bool color;
};

/* Prints what was compared, and the change of the total.  Returns 0 or -ENOMEM. */
int diff_view_head(const struct diff_view *view);
/* Prints one table, significant rows first.  Returns 0 or -ENOMEM. */
int diff_view_table(const struct diff_view *view, enum diff_by by, uint32_t tests);
/* Writes the name of a row to `out`, in one line: "scan  w.py:12"; for a stack its functions, root
 * first. */
void diff_view_name(const struct diff_view *view, enum diff_by by, const struct diff_row *row,
		    FILE *out);

#endif
