/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <string.h>

#include "store/store_query.h"

#define A32 "aaaaaaaaaabbbbbbbbbbccccccccccdd"

static void store_kind_is_valid__one_to_32_of_its_characters(void **state)
{
	static const char *const valid[] = {"a", "z", "0", "9", "_", "gil_wait", A32};
	static const char *const invalid[] = {"",  "A", "a-b", "a.b", "a b",
					      "`", "{", "/",   ":",   A32 "e"};

	(void)state;
	for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++)
		assert_true(store_kind_is_valid(valid[i]));
	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
		if (store_kind_is_valid(invalid[i]))
			fail_msg("'%s'", invalid[i]);
}

/* By `date -u -d @253402300799`: the last second that has a day of ten characters. */
static void store_day_name__is_of_utc_and_has_a_last_day(void **state)
{
	static const struct {
		uint64_t start_ms;
		const char *day, *hour;
	} cases[] = {
		{0, "1970-01-01", "00"},
		{3599999, "1970-01-01", "00"},
		{3600000, "1970-01-01", "01"},
		{86399999, "1970-01-01", "23"},
		{86400000, "1970-01-02", "00"},
		{1769900390000, "2026-01-31", "22"},
		{253402300799999, "9999-12-31", "23"},
		{253402300800000, "9999-12-31", "23"},
		{UINT64_MAX, "9999-12-31", "23"},
	};
	char day[STORE_DAY_CHARS], hour[STORE_HOUR_CHARS];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		store_day_name(cases[i].start_ms, day);
		store_hour_name(cases[i].start_ms, hour);
		assert_string_equal(day, cases[i].day);
		assert_string_equal(hour, cases[i].hour);
		assert_true(store_day_parse(day));
		assert_true(store_hour_parse(hour));
	}
}

static void store_parse__directories_of_other_names_are_not_the_stores(void **state)
{
	static const char *const days[] = {"",		 "2026-01-3",  "2026-01-311", "2026/01-31",
					   "2026-01/31", "202a-01-31", "2026-a1-31",  "2026-01-3a",
					   "/026-01-31", ":026-01-31", "2026-01-3:",  "2026-01-/1",
					   "2026-1a-31", "20260131"};
	static const char *const hours[] = {"",	  "7",	"007", "24", "30",
					    "2a", "a2", "2/",  "1:", "-1"};
	char hour[3] = "00";

	(void)state;
	for (size_t i = 0; i < sizeof(days) / sizeof(days[0]); i++)
		if (store_day_parse(days[i]))
			fail_msg("'%s'", days[i]);
	for (size_t i = 0; i < sizeof(hours) / sizeof(hours[0]); i++)
		if (store_hour_parse(hours[i]))
			fail_msg("'%s'", hours[i]);
	for (int i = 0; i < 24; i++) {
		hour[0] = (char)('0' + i / 10);
		hour[1] = (char)('0' + i % 10);
		assert_true(store_hour_parse(hour));
	}
}

static void store_file_parse__is_the_name_that_was_formatted(void **state)
{
	const struct store_file longest = {.start_ms = UINT64_MAX,
					   .duration_ms = UINT64_MAX,
					   .kind = A32,
					   .is_temporary = true};
	struct store_file file;
	char name[STORE_FILE_CHARS];

	(void)state;
	store_file_name(&longest, name);
	assert_string_equal(name, ".18446744073709551615-18446744073709551615-" A32 ".pb.gz.tmp");
	assert_true(store_file_parse(name, &file));
	assert_true(file.start_ms == UINT64_MAX && file.duration_ms == UINT64_MAX);
	assert_string_equal(file.kind, A32);
	assert_true(file.is_temporary);
	assert_true(store_file_parse("0-9-a.pb.gz", &file));
	assert_int_equal(file.start_ms, 0);
	assert_int_equal(file.duration_ms, 9);
	assert_string_equal(file.kind, "a");
	assert_false(file.is_temporary);
	assert_false(file.is_merged);
}

static void store_file_parse__merged_files_say_so(void **state)
{
	const struct store_file longest = {.start_ms = UINT64_MAX,
					   .duration_ms = UINT64_MAX,
					   .kind = A32,
					   .is_temporary = true,
					   .is_merged = true,
					   .is_merging = true};
	struct store_file file;
	char name[STORE_FILE_CHARS];

	(void)state;
	assert_true(store_file_parse("7-9-cpu.merged.pb.gz", &file));
	assert_string_equal(file.kind, "cpu");
	assert_true(file.is_merged && !file.is_merging && !file.is_temporary);
	assert_true(store_file_parse("7-9-cpu.merging.pb.gz", &file));
	assert_true(file.is_merged && file.is_merging);
	store_file_name(&longest, name);
	assert_true(store_file_parse(name, &file));
	assert_true(file.is_merging && file.is_temporary);
	assert_string_equal(file.kind, A32);
}

static void store_file_parse__other_names_are_not_the_stores(void **state)
{
	static const char *const names[] = {
		"",
		".",
		"..",
		"1-1-cpu.pb",
		"1-1-cpu.pb.gz.tmp",
		".1-1-cpu.pb.gz",
		"01-1-cpu.pb.gz",
		"1-01-cpu.pb.gz",
		"1-1-CPU.pb.gz",
		"1-1-.pb.gz",
		"1--1-cpu.pb.gz",
		"-1-1-cpu.pb.gz",
		"+1-1-cpu.pb.gz",
		"1-1cpu.pb.gz",
		"1.1-cpu.pb.gz",
		" 1-1-cpu.pb.gz",
		"1-1-" A32 "e.pb.gz",
		"18446744073709551616-1-cpu.pb.gz",
		"1-1-cpu",
		"1-1-cpu.pb.gz~",
		"1-1-cpu.pb.xz",
		"1-1-cpu.merge.pb.gz",
		"1-1-cpu.merged.merging.pb.gz",
		"1-1-.merged.pb.gz",
		"/-1-cpu.pb.gz",
		":-1-cpu.pb.gz",
	};
	struct store_file file = {.start_ms = 77};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (store_file_parse(names[i], &file))
			fail_msg("'%s'", names[i]);
		assert_int_equal(file.start_ms, 77);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(store_kind_is_valid__one_to_32_of_its_characters),
		cmocka_unit_test(store_day_name__is_of_utc_and_has_a_last_day),
		cmocka_unit_test(store_parse__directories_of_other_names_are_not_the_stores),
		cmocka_unit_test(store_file_parse__is_the_name_that_was_formatted),
		cmocka_unit_test(store_file_parse__merged_files_say_so),
		cmocka_unit_test(store_file_parse__other_names_are_not_the_stores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
