/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: profile/queue_line.c */
#include "profile/queue_line.h"

#include <cmocka.h>
#include <string.h>

#define MS 1000000ULL

static void line__has_seconds_of_each_state(void **state)
{
	const struct queue_line one = {.pid = 12,
				       .comm = "python3",
				       .queued_ns = 8300 * MS,
				       .drained_ns = 1234567890,
				       .unknown_ns = 600};
	const struct queue_line rest = {.others = 44, .comm = "", .queued_ns = 1 * MS};
	char text[QUEUE_LINE_CHARS];

	(void)state;
	queue_line_format(&one, text);
	assert_string_equal(
		text,
		"gpu_queue pid=12 comm=python3 queued=8.300000 drained=1.234568 unknown=0.000001");
	queue_line_format(&rest, text);
	assert_string_equal(text, "gpu_queue others=44 queued=0.001000 drained=0.000000 "
				  "unknown=0.000000");
}

/* A process chooses its name. */
static void name__cannot_end_the_word_or_the_line(void **state)
{
	struct queue_line line = {.pid = 1, .comm = "a drained=9\n\033[2J"};
	char text[QUEUE_LINE_CHARS], longest[300];

	(void)state;
	queue_line_format(&line, text);
	assert_non_null(strstr(text, " comm=a_drained=9__[2J queued="));
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	line.comm = longest;
	line.pid = UINT32_MAX;
	line.queued_ns = line.drained_ns = line.unknown_ns = UINT64_MAX;
	queue_line_format(&line, text);
	assert_non_null(strstr(text, " unknown=18446744073.7"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line__has_seconds_of_each_state),
		cmocka_unit_test(name__cannot_end_the_word_or_the_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
