/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/comments.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static void window_mark__what_is_written_comes_back(void **state)
{
	const struct window_mark written = {.offset_ms = UINT64_MAX,
					    .start_ms = 1795273360123,
					    .duration_ms = 10000,
					    .start_wall_ns = UINT64_MAX,
					    .duration_ns = 10000123456,
					    .period = INT64_MAX};
	char text[WINDOW_MARK_CHARS];
	struct window_mark mark;

	(void)state;
	window_mark_format(&written, text);
	assert_true(window_mark_parse(text, &mark));
	assert_memory_equal(&mark, &written, sizeof(mark));
}

static void window_mark_parse__other_comments_are_none(void **state)
{
	static const char *const others[] = {
		"",
		"window=10",
		"window=10 "
		"start_ms=1 duration_ms=2 start_ns=3 duration_ns=4",
		"window=-10 "
		"start_ms=1 duration_ms=2 start_ns=3 duration_ns=4 period=5",
		"window=10 "
		"start_ms=1 duration_ms=2 start_ns=3 duration_ns=4 period=",
		"window=10 "
		"start_ms=1 duration_ms=2 start_ns=3 duration_ns=4 period=-5",
		"window=10 "
		"start_ms=1 duration_ms=2 start_ns=3 duration_ns=4 period=9223372036854775808",
		"window=10 "
		"start_ms=1 duration_ms=2 start_ns=3 duration_ns=4 period=5 more=6",
		"window=10 "
		"duration_ms=2 start_ms=1 start_ns=3 duration_ns=4 period=5",
		"window=18446744073709551616 "
		"start_ms=1 duration_ms=2 start_ns=3 duration_ns=4 period=5",
		"elapsed_ns=1",
	};
	struct window_mark mark;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(window_mark_parse(others[i], &mark));
}

static void window_comment__what_is_written_comes_back(void **state)
{
	static const char *const comments[] = {"a=1 b=2", "exact=calls", "# words=1"};
	static const char *const others[] = {
		"a=1", "window=1", "window=x a=1", "windows=1 a=1",
		"window=10 start_ms=1 duration_ms=2 start_ns=3 duration_ns=4 period=5"};
	uint64_t offset_ms;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(comments); i++) {
		OWNED_MEM char *text = window_comment_format(290000, comments[i]);

		assert_memory_equal(text, "window=290000 ", strlen("window=290000 "));
		assert_string_equal(window_comment_parse(text, &offset_ms), comments[i]);
		assert_int_equal(offset_ms, 290000);
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_null(window_comment_parse(others[i], &offset_ms));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window_mark__what_is_written_comes_back),
		cmocka_unit_test(window_mark_parse__other_comments_are_none),
		cmocka_unit_test(window_comment__what_is_written_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
