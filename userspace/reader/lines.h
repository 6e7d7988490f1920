/* SPDX-License-Identifier: BSD-2-Clause */
/* The view of `pyprof lines`, for other verbs. */
#ifndef READER_LINES_H
#define READER_LINES_H

struct select_options;

/* Reads what the options select (borrowed) and prints the source of target, "FILE[:FUNC]", which is
 * cut at the colon, without waits.  Returns the exit code. */
int lines_show(const struct select_options *shared, char *target);

#endif
