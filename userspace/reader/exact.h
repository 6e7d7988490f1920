/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof calls --exact and lines --exact: runs a pyprofd that counts the calls or lines of chosen
 * processes for some seconds. */
#ifndef READER_EXACT_H
#define READER_EXACT_H

#include "query/select.h"

#define EXACT_PATH_BYTES 4096U

/* A profile that was made, in a directory of its own below TMPDIR. */
struct exact {
	char path[EXACT_PATH_BYTES]; /* "": there is none */
};

/* All is borrowed. */
struct exact_options {
	struct select *select; /* pid and live_seconds */
	const char *lines;     /* for --lines; NULL: calls are counted */
	const char *slowdown;  /* for --max-slowdown; NULL: its default */
};
/* Records, and shows the seconds on a terminal.  Ctrl-C ends it early, with what was counted until
 * then.  From then on `select` is of the profile alone; it goes when *ret_exact is released.
 * Returns READER_OK, or READER_BAD_INPUT after one line on stderr. */
int exact_record(const struct exact_options *options, struct exact *ret_exact);
/* Deletes the profile; a zeroed one is fine. */
void exact_release(struct exact *exact);

#endif
