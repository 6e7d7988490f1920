/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/text_table.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include <pyprofd/limits.h>

static int add(struct text_table *table, uint64_t id, uint32_t user, const char *text)
{
	return text_table_add(table, id, user, text, strlen(text));
}

static void text_table_find__gives_what_was_added_first(void **state)
{
	OWNED(text_table) struct text_table *table = NULL;

	(void)state;
	assert_int_equal(text_table_new(&table), 0);
	assert_null(text_table_find(table, 5));
	assert_int_equal(add(table, 5, 0, "json.decoder"), 0);
	assert_int_equal(add(table, 6, 0, "json"), 0);
	assert_int_equal(add(table, 5, 0, "other"), 0);
	assert_string_equal(text_table_find(table, 5), "json.decoder");
	assert_string_equal(text_table_find(table, 6), "json");
	assert_int_equal(text_table_refused(table), 0);
}

static void text_table_add__control_characters_and_excess_do_not_pass(void **state)
{
	OWNED(text_table) struct text_table *table = NULL;
	char text[PP_MAX_TEXT_BYTES + 10];

	(void)state;
	assert_int_equal(text_table_new(&table), 0);
	assert_int_equal(add(table, 5, 0, "a\nb\033[2J"), 0);
	assert_null(strchr(text_table_find(table, 5), '\n'));
	assert_null(strchr(text_table_find(table, 5), '\033'));
	memset(text, 'x', sizeof(text));
	assert_int_equal(text_table_add(table, 6, 0, text, sizeof(text)), 0);
	assert_int_equal(strlen(text_table_find(table, 6)), PP_MAX_TEXT_BYTES);
}

static void text_table_end_epoch__keeps_what_was_added_in_the_last_two(void **state)
{
	OWNED(text_table) struct text_table *table = NULL;

	(void)state;
	assert_int_equal(text_table_new(&table), 0);
	add(table, 5, 0, "once");
	add(table, 6, 0, "again");
	text_table_end_epoch(table);
	add(table, 6, 0, "again");
	assert_non_null(text_table_find(table, 5));
	text_table_end_epoch(table);
	assert_null(text_table_find(table, 5));
	assert_string_equal(text_table_find(table, 6), "again");
}

static void text_table_add__user_has_a_share_and_root_the_whole(void **state)
{
	OWNED(text_table) struct text_table *table = NULL;
	uint64_t id = 1;

	(void)state;
	assert_int_equal(text_table_new(&table), 0);
	for (uint32_t i = 0; i < TEXT_TABLE_USER_MAX; i++)
		assert_int_equal(add(table, id++, 1000, "x"), 0);
	assert_int_equal(add(table, id, 1000, "x"), -EDQUOT);
	assert_int_equal(add(table, 1, 1000, "x"), 0); /* it is known */
	assert_int_equal(add(table, id++, 1001, "x"), 0);
	assert_int_equal(text_table_refused(table), 1);
	while (id <= TEXT_TABLE_MAX)
		assert_int_equal(add(table, id++, 0, "x"), 0);
	assert_int_equal(add(table, id, 0, "x"), -EDQUOT);
	assert_int_equal(text_table_refused(table), 2);
}

static void text_table_add__bytes_have_shares_too(void **state)
{
	OWNED(text_table) struct text_table *table = NULL;
	static char longest[PP_MAX_TEXT_BYTES + 1];
	uint64_t id = 1;

	(void)state;
	memset(longest, 'x', PP_MAX_TEXT_BYTES);
	assert_int_equal(text_table_new(&table), 0);
	while (id <= TEXT_TABLE_USER_MAX_BYTES / PP_MAX_TEXT_BYTES)
		assert_int_equal(add(table, id++, 1000, longest), 0);
	assert_int_equal(add(table, id, 1000, "x"), -EDQUOT);
	while (id <= TEXT_TABLE_MAX_BYTES / PP_MAX_TEXT_BYTES)
		assert_int_equal(add(table, id++, 0, longest), 0);
	assert_int_equal(add(table, id, 0, "x"), -EDQUOT);
	for (int i = 0; i < 2; i++)
		text_table_end_epoch(table);
	assert_int_equal(add(table, id, 1000, longest), 0);
}

/* What is forgotten no longer counts for its user. */
static void text_table_end_epoch__gives_the_share_back(void **state)
{
	OWNED(text_table) struct text_table *table = NULL;
	uint64_t id = 1;

	(void)state;
	assert_int_equal(text_table_new(&table), 0);
	while (id <= TEXT_TABLE_USER_MAX)
		assert_int_equal(add(table, id++, 1000, "x"), 0);
	text_table_end_epoch(table);
	assert_int_equal(add(table, id, 1000, "x"), -EDQUOT);
	text_table_end_epoch(table);
	assert_int_equal(add(table, id, 1000, "x"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_table_find__gives_what_was_added_first),
		cmocka_unit_test(text_table_add__control_characters_and_excess_do_not_pass),
		cmocka_unit_test(text_table_end_epoch__keeps_what_was_added_in_the_last_two),
		cmocka_unit_test(text_table_add__user_has_a_share_and_root_the_whole),
		cmocka_unit_test(text_table_add__bytes_have_shares_too),
		cmocka_unit_test(text_table_end_epoch__gives_the_share_back),
	};

	return cmocka_run_group_tests_name("drain/text_table", tests, NULL, NULL);
}
