/* SPDX-License-Identifier: BSD-2-Clause */
/* What a caller may hear while profiles are read, and how it ends the wait for them.  Why something
 * could not be read is a line of text that the caller shows. */
#ifndef QUERY_WATCHER_H
#define QUERY_WATCHER_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define WHY_BYTES 8192U /* a path of 4 KiB and a sentence; longer ones are cut */

struct watcher_progress {
	bool live;	       /* windows are waited for: the numbers are seconds, else files */
	bool fetches;	       /* of another machine */
	uint64_t done, wanted; /* done: 0 until the first window has come */
};

struct watcher {
	/* Called after each file, and a few times a second while windows are waited for.  NULL is
	 * allowed. */
	void (*progress)(void *context, const struct watcher_progress *progress);
	/* Called with a line, as say_why()'s, about what is missing from a result that is there
	 * nevertheless.  NULL is allowed. */
	void (*note)(void *context, const char *line);
	void *context;
	/* Ends the wait for windows when it is readable; -1: nothing does.  Borrowed. */
	int stop_fd;
	/* Borrowed: receives what live_client_open() writes; lines that end in newlines. */
	FILE *words;
};

/* Writes the line, without a program's name before it or a newline behind it.  It may hold names
 * that others chose: clean it for where it is shown.  Returns -EINVAL. */
__attribute__((format(printf, 2, 3))) static inline int say_why(char text[WHY_BYTES],
								const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, WHY_BYTES, format, args);
	va_end(args);
	return -EINVAL;
}

#endif
