/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/queue_line.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "profile/line_words.h"

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_SEC;
}

void queue_line_format(const struct queue_line *line, char text[QUEUE_LINE_CHARS])
{
	char comm[64];
	int used;

	line_set_word(comm, sizeof(comm), line->comm);
	if (line->pid)
		used = snprintf(text, QUEUE_LINE_CHARS, QUEUE_LINE_PREFIX "pid=%" PRIu32 " comm=%s",
				line->pid, comm);
	else
		used = snprintf(text, QUEUE_LINE_CHARS, QUEUE_LINE_PREFIX "others=%" PRIu32,
				line->others);
	snprintf(text + used, QUEUE_LINE_CHARS - (size_t)used,
		 " queued=%.6f drained=%.6f unknown=%.6f", seconds(line->queued_ns),
		 seconds(line->drained_ns), seconds(line->unknown_ns));
}
