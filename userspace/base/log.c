/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"

#define LINE_BYTES 1024U /* longer messages are cut */

static enum log_level max_level = LOG_LEVEL_INFO;
static atomic_bool has_error; /* any thread sets it */

void log_set_level(enum log_level level)
{
	max_level = level;
}

bool log_has_error(void)
{
	return has_error;
}

/* Returns whether stderr is the journal: $JOURNAL_STREAM is DEVICE:INODE of its socket.  Children
 * that write elsewhere inherit the variable too, so the numbers are compared.  systemd.exec(5). */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat stat;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
	       !fstat(STDERR_FILENO, &stat) && stat.st_dev == device && stat.st_ino == inode;
}

static void log_text(enum log_level level, const char *suffix, const char *format, va_list args)
{
	/* sd-daemon(3): syslog levels in front of the line. */
	static const char *const journal_prefix[] = {"<3>", "<4>", "<6>", "<7>"};
	char text[LINE_BYTES] = "", clean[LINE_BYTES * UTF8_CLEAN_MAX_GROWTH];
	size_t size;

	if (level == LOG_LEVEL_ERROR)
		has_error = true;
	vsnprintf(text, sizeof(text), format, args);
	/* A process or a file may be named "\n<3>pyprofd: ..." or "\033[2J". */
	size = utf8_clean(text, strlen(text), clean);
	fprintf(stderr, "%spyprofd: %.*s%s%s\n", is_journal() ? journal_prefix[level] : "",
		(int)size, clean, suffix ? ": " : "", suffix ? suffix : "");
}

void log_line(enum log_level level, const char *format, ...)
{
	va_list args;

	if (level > max_level)
		return;
	va_start(args, format);
	log_text(level, NULL, format, args);
	va_end(args);
}

int log_line_errno(enum log_level level, int err, const char *format, ...)
{
	va_list args;

	if (level > max_level)
		return err;
	va_start(args, format);
	log_text(level, strerror(-err), format, args);
	va_end(args);
	return err;
}
