/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/format.h"

#include <cmocka.h>

static void human_value__has_three_figures_and_a_fitting_unit(void **state)
{
	static const struct {
		uint64_t value;
		const char *unit, *text;
	} cases[] = {
		{0, "nanoseconds", "0 ns"},
		{999, "nanoseconds", "999 ns"},
		{1000, "nanoseconds", "1.00 µs"},
		{999499, "nanoseconds", "999 µs"},
		{999500, "nanoseconds", "1.00 ms"},
		{12345678, "nanoseconds", "12.3 ms"},
		{9994999999, "nanoseconds", "9.99 s"},
		{9995000000, "nanoseconds", "10.0 s"},
		{119000000000, "nanoseconds", "119 s"},
		{120000000000, "nanoseconds", "2 min 0 s"},
		{3599600000000, "nanoseconds", "1 h 0 min"},
		{93784000000000, "nanoseconds", "26 h 3 min"},
		{1500, "microseconds", "1.50 ms"},
		{90, "seconds", "90.0 s"},
		{250, "seconds", "4 min 10 s"},
		{1536, "bytes", "1.50 KiB"},
		{UINT64_MAX, "bytes", "16777216 TiB"},
		{1234567, "count", "1234567"},
		{7, "", "7"},
		{7, "pages", "7 pages"},
	};
	char text[HUMAN_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		human_value(cases[i].value, cases[i].unit, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void human_value__long_unit_is_cut(void **state)
{
	char text[HUMAN_BYTES];

	(void)state;
	human_value(UINT64_MAX, "a unit that is far too long to be shown beside a number", text);
	assert_string_equal(text, "18446744073709551615 a unit that is far t");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(human_value__has_three_figures_and_a_fitting_unit),
		cmocka_unit_test(human_value__long_unit_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
