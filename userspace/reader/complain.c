/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/complain.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/utf8.h"
#include "reader/verb.h"

#define MESSAGE_BYTES 8192U /* a path of 4 KiB and a sentence; longer ones are cut */

int complain(const char *format, ...)
{
	char text[MESSAGE_BYTES] = "", clean[MESSAGE_BYTES * UTF8_CLEAN_MAX_GROWTH];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "pyprof: %.*s\n", (int)utf8_clean(text, strlen(text), clean), clean);
	return READER_BAD_INPUT;
}

int complain_of(const char *name, int err)
{
	if (err == -ENOMEM)
		return complain("%s: needs more memory than pyprof takes, %llu MiB, or than there "
				"is: choose less with --since, --pid or --focus",
				name, MEMORY_MAX_BYTES >> 20);
	return complain("%s: %s", name, strerror(-err));
}

void memory_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_DATA, &limit) || limit.rlim_cur <= MEMORY_MAX_BYTES)
		return;
	/* The hard limit stays, for a pyprofd that is started for --live. */
	limit.rlim_cur = MEMORY_MAX_BYTES;
	(void)setrlimit(RLIMIT_DATA, &limit);
}
