/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/regex_copies.h"

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static void regex__that_people_write_is_small(void **state)
{
	static const char *const regex[] = {"",
					    ".*",
					    "([^/]*)/(.*)",
					    "[a-z]+(-[a-z]+)*",
					    "([a-z0-9]{1,63}\\.){1,9}py",
					    "a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+",
					    "^(train|eval)_[0-9]{4}$",
					    "a{1000}",
					    "a{0,999}",
					    "[]+++++++++++++++]x",
					    "[[:alpha:]+++++++++++++]",
					    "[^]{999}{999}]",
					    "\\+\\+\\+\\(\\(",
					    "(((((((((a)))))))))",
					    "((((a*)*)*)*)*",
					    "a{",
					    "a{x}",
					    ")))",
					    "((("};
	char many[5001];

	(void)state;
	for (size_t i = 0; i < sizeof(regex) / sizeof(regex[0]); i++)
		if (regex_copies_too_much(regex[i]))
			fail_msg("%s", regex[i]);
	/* Long ones that repeat nothing are their users' own. */
	memset(many, 'x', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	assert_false(regex_copies_too_much(many));
}

static void regex__whose_repeats_are_nested_is_too_large(void **state)
{
	static const char *const regex[] = {
		"a{1100}",
		"((a{1,99}){99})",
		"a++++++++++++",
		"(((((((((((a+)+)+)+)+)+)+)+)+)+)+)",
		"(.\x92+++++++++++++++++++++++++++++++++++++++++++++\x92)",
		"a{2}{2}{2}{9}{9}{9}",
		"([a]+{9}+{9}+{9})",
		"a{99999999999999999999}",
		"a{9,}{9,}{9,}{9,}",
		"((a|b){32}){32}{2}"};
	char deep[200];

	(void)state;
	for (size_t i = 0; i < sizeof(regex) / sizeof(regex[0]); i++)
		if (!regex_copies_too_much(regex[i]))
			fail_msg("%s", regex[i]);
	memset(deep, '(', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	assert_true(regex_copies_too_much(deep));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regex__that_people_write_is_small),
		cmocka_unit_test(regex__whose_repeats_are_nested_is_too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
