/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: base/kinds.c reader/select.c reader/source.c store/store_names.c base/io.c */
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "reader/select.h"
#include "reader/source.h"

#define NOW_MS 1795273360165ULL /* 2026-11-21T15:02:40.165Z */

static uint64_t time_of(const char *text)
{
	uint64_t ms = 0;

	assert_int_equal(select_time(text, NOW_MS, &ms), 0);
	return ms;
}

static void select_time__spans_are_before_now(void **state)
{
	(void)state;
	assert_int_equal(time_of("1h"), NOW_MS - 3600000);
	assert_int_equal(time_of("30m"), NOW_MS - 1800000);
	assert_int_equal(time_of("500ms"), NOW_MS - 500);
	assert_int_equal(time_of("2d"), NOW_MS - 172800000);
	/* Longer than there was time. */
	assert_int_equal(time_of("999999999d"), 0);
}

static void select_time__dates_are_local_unless_utc(void **state)
{
	(void)state;
	setenv("TZ", "UTC-2", 1);
	tzset();
	assert_int_equal(time_of("2026-11-21T15:00Z"), 1795273200000);
	assert_int_equal(time_of("2026-11-21T17:00"), 1795273200000);
	assert_int_equal(time_of("2026-11-21 17:00:01"), 1795273201000);
	assert_int_equal(time_of("17:00"), 1795273200000);
	assert_int_equal(time_of("@1795273200"), 1795273200000);
}

static void select_time__nonsense_is_einval(void **state)
{
	static const char *const bad[] = {"", "h", "1x", "yesterday", "-1h", "@", "12:99x", "1h30"};
	uint64_t ms;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(select_time(bad[i], NOW_MS, &ms), -EINVAL);
}

static struct source source_of(const char *text)
{
	char path[] = "/tmp/test_source.XXXXXX";
	OWNED_FD int fd = mkstemp(path);
	struct source source;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(source_read(path, &source), 0);
	unlink(path);
	return source;
}

static void source__block_ends_where_the_indent_does(void **state)
{
	CLEANUP(source_release) struct source source = source_of("@wrap\n"
								 "def f(a,\n"
								 "      b):\n"
								 "    x = 1\n"
								 "\n"
								 "    return x\n"
								 "\n"
								 "def g():\n"
								 "    pass\n");

	(void)state;
	assert_int_equal(source.count, 9);
	assert_int_equal(source_block_end(&source, 1), 6);
	assert_int_equal(source_block_end(&source, 8), 9);
	assert_true(source_defines(&source, 1, "C.f"));
	assert_true(source_defines(&source, 8, "g"));
	assert_false(source_defines(&source, 4, "f"));
	assert_string_equal(source_line(&source, 4), "    x = 1");
	assert_null(source_line(&source, 10));
}

static void source__missing_file_says_so(void **state)
{
	CLEANUP(source_release) struct source source = {0};

	(void)state;
	assert_int_equal(source_read("/nonexistent/w.py", &source), 0);
	assert_string_equal(source.error, "is not here");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(select_time__spans_are_before_now),
		cmocka_unit_test(select_time__dates_are_local_unless_utc),
		cmocka_unit_test(select_time__nonsense_is_einval),
		cmocka_unit_test(source__block_ends_where_the_indent_does),
		cmocka_unit_test(source__missing_file_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
