/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/comments.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- files of several windows ---- */

static const char window_head[] = "window ";

void window_mark_format(const struct window_mark *mark, char text[WINDOW_MARK_CHARS])
{
	snprintf(text, WINDOW_MARK_CHARS,
		 "%s%" PRIu64 " name=%" PRIu64 "-%" PRIu64 " start_ns=%" PRIu64
		 " duration_ns=%" PRIu64 " period=%" PRId64,
		 window_head, mark->offset_ms, mark->start_ms, mark->duration_ms,
		 mark->start_wall_ns, mark->duration_ns, mark->period);
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

	if (!read_number(&comment, window_head, &mark.offset_ms) ||
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

	return asprintf(&text, "%s%" PRIu64 ": %s", window_head, offset_ms, comment) < 0 ? NULL
											 : text;
}

const char *window_comment_parse(const char *comment, uint64_t *ret_offset_ms)
{
	uint64_t offset_ms;

	if (!read_number(&comment, window_head, &offset_ms) || strncmp(comment, ": ", 2))
		return NULL;
	*ret_offset_ms = offset_ms;
	return comment + 2;
}

/* ---- the program that wrote the profile ---- */

void profile_writer_format(const struct profile_writer *writer, char text[WRITER_TEXT_BYTES])
{
	snprintf(text, WRITER_TEXT_BYTES, "pyprofd %s %s %uHz host=%s", writer->version,
		 writer->kind, writer->hz, writer->host);
}

bool profile_writer_parse(const char *comment, struct profile_writer *ret_writer)
{
	struct profile_writer writer = {};

	if (sscanf(comment, "pyprofd %31s %32s %uHz host=%63s", writer.version, writer.kind,
		   &writer.hz, writer.host) < 1)
		return false;
	*ret_writer = writer;
	return true;
}

/* ---- capture metadata ---- */

static const char facts_head[] = "facts ";

void facts_begin(FILE *out)
{
	fputs("facts", out);
}

void facts_put(FILE *out, const char *prefix, const char *name, uint64_t value)
{
	fprintf(out, " %s%s=%" PRIu64, prefix, name, value);
}

void facts_read(const char *comment,
		void (*on_fact)(void *context, const char *name, size_t size, uint64_t value),
		void *context)
{
	const char *text = comment + strlen(facts_head);

	if (strncmp(comment, facts_head, strlen(facts_head)))
		return;
	while (*text) {
		size_t size = strcspn(text, "= ");
		unsigned long long value;
		char *end;

		if (text[size] != '=')
			return;
		errno = 0;
		value = strtoull(text + size + 1, &end, 10);
		if (end == text + size + 1 || errno)
			return;
		on_fact(context, text, size, value);
		text = end + strspn(end, " ");
	}
}
