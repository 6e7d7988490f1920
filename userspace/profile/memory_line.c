/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/memory_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "profile/line_words.h"

void memory_line_set_comm(struct memory_line *line, const char *comm)
{
	line_set_word(line->comm, sizeof(line->comm), comm);
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t memory_line_bytes(const struct memory_line *line)
{
	return add(add(line->anonymous_bytes, line->file_bytes), line->shared_bytes);
}

void memory_line_add(struct memory_line *sum, const struct memory_line *line)
{
	sum->others = add(sum->others, line->pid ? 1 : line->others);
	sum->anonymous_bytes = add(sum->anonymous_bytes, line->anonymous_bytes);
	sum->file_bytes = add(sum->file_bytes, line->file_bytes);
	sum->shared_bytes = add(sum->shared_bytes, line->shared_bytes);
	if (line->at_ms > sum->at_ms)
		sum->at_ms = line->at_ms;
}

void memory_line_format(const struct memory_line *line, char text[MEMORY_LINE_CHARS])
{
	size_t used;

	if (line->pid)
		snprintf(text, MEMORY_LINE_CHARS, MEMORY_LINE_PREFIX "pid=%" PRIu64 " comm=%s",
			 line->pid, line->comm);
	else
		snprintf(text, MEMORY_LINE_CHARS, MEMORY_LINE_PREFIX "others=%" PRIu64,
			 line->others);
	used = strlen(text);
	snprintf(text + used, MEMORY_LINE_CHARS - used,
		 " at=%" PRIu64 " anon=%" PRIu64 " file=%" PRIu64 " shmem=%" PRIu64 " %s=%" PRIu64,
		 line->at_ms, line->anonymous_bytes, line->file_bytes, line->shared_bytes,
		 line->pid ? "peak" : "unread", line->pid ? line->peak_bytes : line->unread);
}

/* ---- reading ---- */

/* Reads "pid=12 comm=python3" or "others=44". */
static bool read_who(const char **at, struct memory_line *line)
{
	if (line_read_number(at, "others=", &line->others))
		return true;
	return line_read_number(at, "pid=", &line->pid) && line->pid &&
	       line_read_word(at, " comm=", line->comm, sizeof(line->comm));
}

bool memory_line_parse(const char *comment, struct memory_line *ret_line)
{
	struct memory_line line = {0};

	if (strncmp(comment, MEMORY_LINE_PREFIX, strlen(MEMORY_LINE_PREFIX)) != 0)
		return false;
	comment += strlen(MEMORY_LINE_PREFIX);
	if (!read_who(&comment, &line) || !line_read_number(&comment, " at=", &line.at_ms) ||
	    !line_read_number(&comment, " anon=", &line.anonymous_bytes) ||
	    !line_read_number(&comment, " file=", &line.file_bytes) ||
	    !line_read_number(&comment, " shmem=", &line.shared_bytes) ||
	    !line_read_number(&comment, line.pid ? " peak=" : " unread=",
			 line.pid ? &line.peak_bytes : &line.unread) ||
	    *comment)
		return false;
	*ret_line = line;
	return true;
}
