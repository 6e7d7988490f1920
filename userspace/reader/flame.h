/* SPDX-License-Identifier: BSD-2-Clause */
/* The page of `pyprof flame`, for other verbs. */
#ifndef READER_FLAME_H
#define READER_FLAME_H

struct select_options;

/* Reads what the options select (borrowed) and writes the page to standard output.  Returns the
 * exit code. */
int flame_show(const struct select_options *shared);

#endif
