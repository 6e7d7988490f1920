/* SPDX-License-Identifier: BSD-2-Clause */
#include "identity/cgroup_names.h"

#include <cmocka.h>
#include <string.h>

#include "base/utf8.h"

static void expect(const char *bytes, size_t size, const char *expected)
{
	char value[LABEL_VALUE_BYTES];

	label_value(bytes, size, value);
	assert_string_equal(value, expected);
}

static void label_value__ends_at_a_nul_and_without_spaces(void **state)
{
	(void)state;
	expect("web", 3, "web");
	expect("web\0x", 5, "web");
	expect("  web one ", 10, "web one");
	expect("   ", 3, "");
	expect("", 0, "");
}

static void label_value__is_cut_at_a_character(void **state)
{
	char bytes[300], value[LABEL_VALUE_BYTES];

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	label_value(bytes, sizeof(bytes), value);
	assert_int_equal(strlen(value), LABEL_VALUE_MAX_BYTES);
	memcpy(bytes + 126, "\xe2\x82\xac", 3); /* a euro sign across the bound */
	label_value(bytes, sizeof(bytes), value);
	assert_int_equal(strlen(value), 126);
	memcpy(bytes + 125, "\xe2\x82\xac", 3); /* up to it */
	label_value(bytes, sizeof(bytes), value);
	assert_int_equal(strlen(value), 128);
	assert_true(utf8_is_clean(value, strlen(value)));
}

static void label_value__control_codes_are_escaped(void **state)
{
	char bytes[200];

	(void)state;
	expect("a\tb\033c", 5, "a\\tb\\x1bc");
	memset(bytes, '\033', sizeof(bytes));
	char value[LABEL_VALUE_BYTES];

	label_value(bytes, sizeof(bytes), value);
	assert_int_equal(strlen(value), LABEL_VALUE_MAX_BYTES);
	assert_true(utf8_is_clean(value, strlen(value)));
}

static void label_value_number__takes_digits_alone(void **state)
{
	char value[LABEL_VALUE_BYTES];

	(void)state;
	assert_true(label_value_number("0", 1, value));
	assert_string_equal(value, "0");
	assert_true(label_value_number("4294967295", 10, value));
	assert_string_equal(value, "4294967295");
	assert_false(label_value_number("42949672950", 11, value));
	assert_string_equal(value, "");
	assert_false(label_value_number("-1", 2, value));
	assert_false(label_value_number("1 ", 2, value));
	assert_false(label_value_number("", 0, value));
	assert_false(label_value_number("secret", 6, value));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(label_value__ends_at_a_nul_and_without_spaces),
		cmocka_unit_test(label_value__is_cut_at_a_character),
		cmocka_unit_test(label_value__control_codes_are_escaped),
		cmocka_unit_test(label_value_number__takes_digits_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
