/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/utf8.h"

#include <cmocka.h>
#include <string.h>

#define R "\xef\xbf\xbd"

static void assert_cleaned(const char *bytes, size_t size, const char *expected)
{
	char clean[64];
	size_t clean_size = utf8_clean(bytes, size, clean);

	assert_int_equal(clean_size, strlen(expected));
	assert_memory_equal(clean, expected, clean_size);
	assert_int_equal(utf8_is_clean(bytes, size),
			 size == clean_size && !memcmp(bytes, expected, size));
}
#define ASSERT_CLEANED(literal, expected) assert_cleaned(literal, sizeof(literal) - 1, expected)

static void utf8_clean__valid_text_stays(void **state)
{
	(void)state;
	ASSERT_CLEANED("", "");
	ASSERT_CLEANED("plain ~", "plain ~");
	ASSERT_CLEANED("gr\xc3\xb6\xc3\x9f"
		       "e \xe2\x82\xac \xf0\x9f\x90\x8d",
		       "gr\xc3\xb6\xc3\x9f"
		       "e \xe2\x82\xac \xf0\x9f\x90\x8d");
	/* The bounds of table 3-7. */
	ASSERT_CLEANED("\xc2\xa0\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80",
		       "\xc2\xa0\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80");
	ASSERT_CLEANED("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf");
}

/* What Python's bytes.decode("utf-8", "replace") gives for the same bytes. */
static void utf8_clean__broken_sequences_become_one_mark_a_maximal_part(void **state)
{
	(void)state;
	ASSERT_CLEANED("a\xff"
		       "b",
		       "a" R "b");
	ASSERT_CLEANED("\x80\xbf", R R);
	ASSERT_CLEANED("\xc0\xaf", R R);
	ASSERT_CLEANED("\xe2\x82", R);
	ASSERT_CLEANED("\xe2\x82x", R "x");
	ASSERT_CLEANED("\xf0\x9f\x90", R);
	ASSERT_CLEANED("\xed\xa0\x80", R R R);
	ASSERT_CLEANED("\xe0\x80\xaf", R R R);
	ASSERT_CLEANED("\xf4\x90\x80\x80", R R R R);
	ASSERT_CLEANED("\xf5\x80", R R);
	ASSERT_CLEANED("\xf0\x80\xf1\x80\x80\xc3\xb6", R R R "\xc3\xb6");
}

static void utf8_clean__control_codes_become_escapes(void **state)
{
	(void)state;
	ASSERT_CLEANED("a\nb\tc\r", "a\\nb\\tc\\r");
	ASSERT_CLEANED("\x1b[31m", "\\x1b[31m");
	ASSERT_CLEANED("a\0b", "a\\x00"
			       "b");
	ASSERT_CLEANED("\x0b\x0c\x1f \x7f", "\\x0b\\x0c\\x1f \\x7f");
	ASSERT_CLEANED("\xc2\x80\xc2\x9b"
		       "31m\xc2\x9f",
		       "\\u0080\\u009b31m\\u009f");
}

static void utf8_clean__turned_directions_become_escapes(void **state)
{
	(void)state;
	ASSERT_CLEANED("\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f", "\\u061c\\u200e\\u200f");
	ASSERT_CLEANED("\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad\xe2\x80\xae",
		       "\\u202a\\u202b\\u202c\\u202d\\u202e");
	ASSERT_CLEANED("\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9\xe2\x81\xaf",
		       "\\u2066\\u2067\\u2068\\u2069\\u206f");
	ASSERT_CLEANED("\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029");
	ASSERT_CLEANED("\xef\xbb\xbf", "\\ufeff");
	/* Their neighbours, and letters that are written from the right, stay. */
	ASSERT_CLEANED("\xd8\x9b\xd8\x9d\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xaf",
		       "\xd8\x9b\xd8\x9d\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xaf");
	ASSERT_CLEANED("\xe2\x81\xa5\xe2\x81\xb0\xd7\x90", "\xe2\x81\xa5\xe2\x81\xb0\xd7\x90");
}

static void utf8_clean__growth_is_bounded_and_the_second_time_changes_nothing(void **state)
{
	char clean[16 * UTF8_CLEAN_MAX_GROWTH], again[sizeof(clean) * UTF8_CLEAN_MAX_GROWTH];

	(void)state;
	for (unsigned int first = 0; first < 256; first++)
		for (unsigned int second = 0; second < 256; second++) {
			const char bytes[] = {(char)first, (char)second, (char)0x80, (char)0xae};
			size_t size = utf8_clean(bytes, sizeof(bytes), clean);

			assert_in_range(size, 1, sizeof(bytes) * UTF8_CLEAN_MAX_GROWTH);
			assert_true(utf8_is_clean(clean, size));
			assert_int_equal(utf8_clean(clean, size, again), size);
			assert_memory_equal(again, clean, size);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utf8_clean__valid_text_stays),
		cmocka_unit_test(utf8_clean__broken_sequences_become_one_mark_a_maximal_part),
		cmocka_unit_test(utf8_clean__control_codes_become_escapes),
		cmocka_unit_test(utf8_clean__turned_directions_become_escapes),
		cmocka_unit_test(utf8_clean__growth_is_bounded_and_the_second_time_changes_nothing),
	};

	return cmocka_run_group_tests_name("base/utf8", tests, NULL, NULL);
}
