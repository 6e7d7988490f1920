/* SPDX-License-Identifier: BSD-2-Clause */
/* A diff as text. */
#ifndef READER_DIFF_VIEW_H
#define READER_DIFF_VIEW_H

#include "diff/comparable.h"
#include "diff/table.h"
#include "reader/input.h"

struct diff_view {
	const struct input *input;
	struct diff_data *data;
	const struct diff_facts *facts; /* of both sides */
	unsigned long rows;		/* of a table; 0: all */
	enum diff_column sort;
	bool color;
};

/* What was compared, and the whole.  0 or -ENOMEM. */
int diff_view_head(const struct diff_view *view);
/* One table, what is significant first.  0 or -ENOMEM. */
int diff_view_table(const struct diff_view *view, enum diff_by by, uint32_t tests);
/* "scan  w.py:12"; of a stack its functions, the root first.  One line of `out`. */
void diff_view_name(const struct diff_view *view, enum diff_by by, const struct diff_row *row,
		    FILE *out);

#endif
