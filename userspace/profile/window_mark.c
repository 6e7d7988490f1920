/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/window_mark.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char head[] = "window ";

void window_mark_format(const struct window_mark *mark, char text[WINDOW_MARK_CHARS])
{
	snprintf(text, WINDOW_MARK_CHARS,
		 "%s%" PRIu64 " name=%" PRIu64 "-%" PRIu64 " start_ns=%" PRIu64
		 " duration_ns=%" PRIu64 " period=%" PRId64,
		 head, mark->offset_ms, mark->start_ms, mark->duration_ms, mark->start_wall_ns,
		 mark->duration_ns, mark->period);
}

/* Reads what must stand before a number, and its digits. */
static bool read_number(const char **at, const char *before, uint64_t *ret_number)
{
	const size_t size = strlen(before);
	char *end;

	if (strncmp(*at, before, size) || (*at)[size] < '0' || (*at)[size] > '9')
		return false;
	errno = 0;
	*ret_number = strtoull(*at + size, &end, 10);
	*at = end;
	return !errno;
}

bool window_mark_parse(const char *comment, struct window_mark *ret_mark)
{
	struct window_mark mark = {0};
	uint64_t period;

	if (!read_number(&comment, head, &mark.offset_ms) ||
	    !read_number(&comment, " name=", &mark.start_ms) ||
	    !read_number(&comment, "-", &mark.duration_ms) ||
	    !read_number(&comment, " start_ns=", &mark.start_wall_ns) ||
	    !read_number(&comment, " duration_ns=", &mark.duration_ns) ||
	    !read_number(&comment, " period=", &period) || *comment || period > INT64_MAX)
		return false;
	mark.period = (int64_t)period;
	*ret_mark = mark;
	return true;
}

char *window_comment_format(uint64_t offset_ms, const char *comment)
{
	char *text;

	return asprintf(&text, "%s%" PRIu64 ": %s", head, offset_ms, comment) < 0 ? NULL : text;
}

const char *window_comment_parse(const char *comment, uint64_t *ret_offset_ms)
{
	uint64_t offset_ms;

	if (!read_number(&comment, head, &offset_ms) || strncmp(comment, ": ", 2))
		return NULL;
	*ret_offset_ms = offset_ms;
	return comment + 2;
}
