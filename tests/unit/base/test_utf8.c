/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: base/utf8.c */
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
	ASSERT_CLEANED("gr\xc3\xb6\xc3\x9f" "e \xe2\x82\xac \xf0\x9f\x90\x8d",
		       "gr\xc3\xb6\xc3\x9f" "e \xe2\x82\xac \xf0\x9f\x90\x8d");
	/* The bounds of table 3-7. */
	ASSERT_CLEANED("\xc2\xa0\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80",
		       "\xc2\xa0\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80");
	ASSERT_CLEANED("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf");
}

/* What Python's bytes.decode("utf-8", "replace") gives for the same bytes. */
static void utf8_clean__broken_sequences_become_one_mark_a_maximal_part(void **state)
{
	(void)state;
	ASSERT_CLEANED("a\xff" "b", "a" R "b");
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

static void utf8_clean__control_codes_do_not_reach_a_terminal(void **state)
{
	(void)state;
	ASSERT_CLEANED("a\nb\tc\r", "a b c ");
	ASSERT_CLEANED("\x1b[31m", R "[31m");
	ASSERT_CLEANED("a\0b", "a" R "b");
	ASSERT_CLEANED("\x7f", R);
	ASSERT_CLEANED("\xc2\x9b" "31m", R "31m");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utf8_clean__valid_text_stays),
		cmocka_unit_test(utf8_clean__broken_sequences_become_one_mark_a_maximal_part),
		cmocka_unit_test(utf8_clean__control_codes_do_not_reach_a_terminal),
	};

	return cmocka_run_group_tests_name("profile/utf8", tests, NULL, NULL);
}
