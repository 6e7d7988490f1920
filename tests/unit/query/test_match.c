/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/select.h"

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/intern.h"

static struct intern *strings;
static struct profile_label label[4];

static int setup(void **state)
{
	static const char *const text[][2] = {{"app", "train.py"}, {"rank", "12"}, {"unit", ""}};

	(void)state;
	if (intern_new(&strings))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(text); i++) {
		label[i] = (struct profile_label){.key = text[i][0]};
		if (intern_string(strings, text[i][1], &label[i].string))
			return -1;
	}
	label[3] = (struct profile_label){.key = "pid", .number = 70, .is_number = 1};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	intern_free(strings);
	return 0;
}

static bool matches(const char *one, const char *other)
{
	CLEANUP(select_release) struct select select = {0};
	struct match match = {.select = &select};
	char why[SELECT_WHY_BYTES];

	assert_int_equal(select_add_label(&select, one, why), 0);
	if (other)
		assert_int_equal(select_add_label(&select, other, why), 0);
	assert_true(match_asks_labels(&select));
	return match_labels(&match, strings, label, ARRAY_SIZE(label));
}

static void labels__must_all_match(void **state)
{
	(void)state;
	assert_true(matches("app=train", NULL));
	assert_true(matches("app=^train[.]py$", "rank=^1"));
	assert_false(matches("app=^train$", "rank=^1"));
	assert_false(matches("app=train", "rank=^2"));
	assert_true(matches("pid=^70$", NULL));
	assert_false(matches("pid=^7$", NULL));
}

static void labels__that_are_missing_are_empty(void **state)
{
	(void)state;
	assert_true(matches("pod=^$", NULL));
	assert_false(matches("pod=.", NULL));
	assert_true(matches("unit=^$", "pod="));
	assert_false(matches("app=^$", NULL));
}

static void labels__of_no_option_are_not_asked_for(void **state)
{
	const struct select select = {0};
	struct match match = {.select = &select};

	(void)state;
	assert_false(match_asks_labels(&select));
	assert_true(match_labels(&match, strings, label, ARRAY_SIZE(label)));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(labels__must_all_match),
		TEST(labels__that_are_missing_are_empty),
		TEST(labels__of_no_option_are_not_asked_for),
	};

	return cmocka_run_group_tests_name("query/match", tests, NULL, NULL);
}
