/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: profile/memory_line.c */
#include "profile/memory_line.h"

#include <cmocka.h>
#include <string.h>

static void memory_line__what_is_written_comes_back(void **state)
{
	struct memory_line written = {.pid = UINT64_MAX,
				      .at_ms = UINT64_MAX,
				      .anonymous_bytes = UINT64_MAX,
				      .file_bytes = UINT64_MAX,
				      .shared_bytes = UINT64_MAX,
				      .peak_bytes = UINT64_MAX};
	char text[MEMORY_LINE_CHARS];
	struct memory_line line;

	(void)state;
	memory_line_set_comm(&written, "0123456789abcdef");
	memory_line_format(&written, text);
	assert_true(memory_line_parse(text, &line));
	assert_memory_equal(&line, &written, sizeof(line));
}

static void memory_line__reads_as_it_is_documented(void **state)
{
	struct memory_line line = {
		.pid = 12, .at_ms = 7, .anonymous_bytes = 4096, .peak_bytes = 8192};
	char text[MEMORY_LINE_CHARS];

	(void)state;
	memory_line_set_comm(&line, "python3");
	memory_line_format(&line, text);
	assert_string_equal(text, "memory pid=12 comm=python3 at=7 anon=4096 file=0 shmem=0 "
				  "peak=8192");
	line = (struct memory_line){.others = 3, .at_ms = 7, .file_bytes = 5, .unread = 2};
	memory_line_format(&line, text);
	assert_string_equal(text, "memory others=3 at=7 anon=0 file=5 shmem=0 unread=2");
	assert_true(memory_line_parse(text, &line));
	assert_int_equal(line.pid, 0);
	assert_int_equal(line.unread, 2);
}

/* Whoever runs a program chooses its name. */
static void set_comm__leaves_one_word(void **state)
{
	struct memory_line line = {.pid = 1}, back;
	char text[MEMORY_LINE_CHARS];

	(void)state;
	memory_line_set_comm(&line, "a b\n\x1b\x7f at=1");
	assert_string_equal(line.comm, "a_b____at=1");
	memory_line_format(&line, text);
	assert_true(memory_line_parse(text, &back));
	assert_string_equal(back.comm, "a_b____at=1");
	assert_int_equal(back.at_ms, 0);
}

static void parse__other_comments_are_none(void **state)
{
	static const char *const others[] = {
		"",
		"memory",
		"memory ",
		"ledger pid=1 comm=a threads=1",
		"memory pid=0 comm= at=1 anon=1 file=1 shmem=1 peak=1",
		"memory pid=1 at=1 anon=1 file=1 shmem=1 peak=1",
		"memory pid=1 comm=a at=1 anon=1 file=1 shmem=1",
		"memory pid=1 comm=a at=1 anon=1 file=1 shmem=1 unread=1",
		"memory pid=1 comm=a at=1 anon=1 file=1 shmem=1 peak=1 ",
		"memory pid=1 comm=a at=1 anon=-1 file=1 shmem=1 peak=1",
		"memory pid=1 comm=a at=1 anon=18446744073709551616 file=1 shmem=1 peak=1",
		"memory others=1 at=1 anon=1 file=1 shmem=1 peak=1",
		"memory pid=1 comm=0123456789012345678901234567890123456789012345678901234567890123"
		" at=1 anon=1 file=1 shmem=1 peak=1",
	};
	struct memory_line line = {.pid = 77};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(memory_line_parse(others[i], &line));
	assert_int_equal(line.pid, 77);
}

static void add__sums_up_and_does_not_overflow(void **state)
{
	const struct memory_line one = {
		.pid = 1, .at_ms = 5, .anonymous_bytes = 10, .file_bytes = 20};
	const struct memory_line many = {
		.others = 4, .at_ms = 3, .anonymous_bytes = UINT64_MAX, .shared_bytes = 1};
	struct memory_line sum = {0};

	(void)state;
	memory_line_add(&sum, &one);
	assert_int_equal(sum.others, 1);
	assert_int_equal(memory_line_bytes(&sum), 30);
	memory_line_add(&sum, &many);
	assert_int_equal(sum.others, 5);
	assert_int_equal(sum.at_ms, 5);
	assert_true(sum.anonymous_bytes == UINT64_MAX);
	assert_true(memory_line_bytes(&sum) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_line__what_is_written_comes_back),
		cmocka_unit_test(memory_line__reads_as_it_is_documented),
		cmocka_unit_test(set_comm__leaves_one_word),
		cmocka_unit_test(parse__other_comments_are_none),
		cmocka_unit_test(add__sums_up_and_does_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
