/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of `pyprof report`, for other verbs. */
#ifndef READER_REPORT_H
#define READER_REPORT_H

struct select_options;

/* Reads what the options select (borrowed) and writes its functions as CSV.  path: NULL for
 * standard output.  Returns the exit code. */
int report_write_csv(const struct select_options *shared, const char *path);

#endif
