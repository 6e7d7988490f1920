/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof calls, of exact calls: the table as cProfile prints it. */
#ifndef READER_CALLS_TABLE_H
#define READER_CALLS_TABLE_H

#include <stdbool.h>

#include "render/call_graph.h"

enum calls_sort { CALLS_SORT_SELF, CALLS_SORT_TOTAL, CALLS_SORT_CALLS, CALLS_SORT_NAME };

struct calls_table_options {
	enum calls_sort sort;
	unsigned long rows; /* 0: all */
	const char *unit;   /* of the graph's values */
	bool color;
};

/* Returns false when there is no such column: self, total, calls, name. */
bool calls_table_parse_sort(const char *text, enum calls_sort *ret_sort);
/* Prints a row a function.  The graph counts exact calls.  Returns 0 or -ENOMEM. */
int calls_table_print(const struct call_graph *graph, const struct calls_table_options *options);

#endif
