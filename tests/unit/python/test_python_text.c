/* SPDX-License-Identifier: BSD-2-Clause */
/* Names as UTF-8: RFC 3629, section 3, has the bytes of each range's ends. */
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/python_objects.h"

#define REPLACED "\xef\xbf\xbd"

static void expect_text(const void *bytes, size_t size, unsigned int kind, bool is_bytes,
			const char *expected)
{
	uint8_t *copy =
		malloc(size + !size); /* of just this size: sanitizers see a byte too many */
	char *text = NULL;

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	assert_int_equal(python_text_decode(copy, size, kind, is_bytes, &text), 0);
	assert_string_equal(text, expected);
	free(text);
	free(copy);
}

static void text__of_one_byte_characters_is_latin_1(void **state)
{
	(void)state;
	expect_text("a\x7f\x80\xbf\xc0\xff", 6, 1, false, "a\x7f\xc2\x80\xc2\xbf\xc3\x80\xc3\xbf");
	expect_text("a\0b", 3, 1, false, "a" REPLACED "b");
	expect_text("", 0, 1, false, "");
	expect_text("", 0, 7, false, "");
	/* bytes that end inside a character */
	expect_text("abc\xc3", 4, 1, true, "abc" REPLACED);
}

static void text__of_wide_characters_has_each_ranges_ends(void **state)
{
	static const struct {
		uint32_t character;
		const char *utf8;
	} expected[] = {
		{0x1, "\x01"},
		{0x7f, "\x7f"},
		{0x80, "\xc2\x80"},
		{0x7ff, "\xdf\xbf"},
		{0x800, "\xe0\xa0\x80"},
		{0xd7ff, "\xed\x9f\xbf"},
		{0xe000, "\xee\x80\x80"},
		{0xffff, "\xef\xbf\xbf"},
		{0x10000, "\xf0\x90\x80\x80"},
		{0x2345f, "\xf0\xa3\x91\x9f"},
		{0x10ffff, "\xf4\x8f\xbf\xbf"},
		{0, REPLACED},
		{0xd800, REPLACED},
		{0xdfff, REPLACED},
		{0x110000, REPLACED},
		{0xffffffff, REPLACED},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		uint16_t unit = (uint16_t)expected[i].character;

		expect_text(&expected[i].character, 4, 4, false, expected[i].utf8);
		if (expected[i].character == unit)
			expect_text(&unit, 2, 2, false, expected[i].utf8);
	}
	/* an end that is no whole character is left out */
	expect_text("a\0b", 3, 2, false, "a");
	expect_text("a\0\0\0b\0\0", 7, 4, false, "a");
}

/* Python 2: what is UTF-8 stays as it is, and each byte that is not becomes a replacement. */
static void text__of_bytes_is_checked_utf8(void **state)
{
	static const char *const sane[] = {
		"\x7f",		"\xc2\x80",	    "\xdf\xbf",
		"\xe0\xa0\x80", "\xed\x9f\xbf",	    "\xee\x80\x80",
		"\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf",
	};
	static const struct {
		const char *bytes;
		const char *expected;
	} damaged[] = {
		{"\x80z", REPLACED "z"},
		{"\xbfz", REPLACED "z"},
		{"\xc1\xbfz", REPLACED REPLACED "z"},		   /* 0x7f in two bytes */
		{"\xe0\x9f\xbfz", REPLACED REPLACED REPLACED "z"}, /* 0x7ff in three */
		{"\xf0\x8f\xbf\xbfz", REPLACED REPLACED REPLACED REPLACED "z"},
		{"\xed\xa0\x80z", REPLACED REPLACED REPLACED "z"},		/* 0xd800 */
		{"\xed\xbf\xbfz", REPLACED REPLACED REPLACED "z"},		/* 0xdfff */
		{"\xf4\x90\x80\x80z", REPLACED REPLACED REPLACED REPLACED "z"}, /* 0x110000 */
		{"\xf8\x88\x80\x80\x80z", REPLACED REPLACED REPLACED REPLACED REPLACED "z"},
		{"\xffz", REPLACED "z"},
		{"\xc3z", REPLACED "z"}, /* no second byte */
		{"\xe4\xb8z", REPLACED REPLACED "z"},
		{"\xc3", REPLACED}, /* the end in a character */
		{"\xe4\xb8", REPLACED REPLACED},
		{"\xf0\x90\x80", REPLACED REPLACED REPLACED},
		{"\xc3\xc3\xa4", REPLACED "\xc3\xa4"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sane); i++)
		expect_text(sane[i], strlen(sane[i]), 1, true, sane[i]);
	for (size_t i = 0; i < ARRAY_SIZE(damaged); i++)
		expect_text(damaged[i].bytes, strlen(damaged[i].bytes), 1, true,
			    damaged[i].expected);
	expect_text("a\0b", 3, 1, true, "a" REPLACED "b");
}

static void text__of_no_such_kind_is_refused(void **state)
{
	static const unsigned int kinds[] = {0, 3, 5, 8};
	char *text = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		assert_int_equal(python_text_decode((const uint8_t *)"abcdefgh", 8, kinds[i], false,
						    &text),
				 -EBADMSG);
	assert_null(text);
}

static void text_cut__ends_behind_a_whole_character(void **state)
{
	static const char text[] = "a\xc3\xa4\xe4\xb8\xad\xf0\x90\x80\x80z"; /* 1 2 3 4 1 bytes */
	static const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11, 11};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		assert_int_equal(python_text_cut(text, i), expected[i]);
	assert_int_equal(python_text_cut("", 0), 0);
	assert_int_equal(python_text_cut("\x80\x80\x80", 2), 0); /* no character at all */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text__of_one_byte_characters_is_latin_1),
		cmocka_unit_test(text__of_wide_characters_has_each_ranges_ends),
		cmocka_unit_test(text__of_bytes_is_checked_utf8),
		cmocka_unit_test(text__of_no_such_kind_is_refused),
		cmocka_unit_test(text_cut__ends_behind_a_whole_character),
	};

	return cmocka_run_group_tests_name("python/python_text", tests, NULL, NULL);
}
