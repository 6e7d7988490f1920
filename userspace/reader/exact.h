/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof calls --exact: runs a pyprofd that counts the calls of chosen processes for some
 * seconds. */
#ifndef READER_EXACT_H
#define READER_EXACT_H

#include <stdbool.h>

#include "query/select.h"

#define EXACT_PATH_BYTES 4096U

/* A profile that was made, in a directory of its own below TMPDIR. */
struct exact {
	char path[EXACT_PATH_BYTES]; /* "": there is none */
};

/* Records the processes of select->pid for select->live_seconds, and shows the seconds on a
 * terminal. Ctrl-C ends it early, with what was counted until then.  slowdown: for --max-slowdown,
 * NULL: its default.  Returns READER_OK, or READER_BAD_INPUT after one line on stderr. */
int exact_record(const struct select *select, const char *slowdown, bool no_progress,
		 struct exact *ret_exact);
/* Deletes the profile; a zeroed one is fine. */
void exact_release(struct exact *exact);

#endif
