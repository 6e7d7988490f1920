/* SPDX-License-Identifier: BSD-2-Clause */
#include "identity/identity.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>

#define USER 1000U
#define ANOTHER 1001U

static void value_table__each_value_is_there_once(void **state)
{
	OWNED(value_table) struct value_table *table = NULL;
	struct label_value_entry *first, *second, *none;

	(void)state;
	assert_int_equal(value_table_new(&table), 0);
	assert_int_equal(value_table_take(table, USER, "web", &first), 0);
	assert_int_equal(value_table_take(table, ANOTHER, "web", &second), 0);
	assert_ptr_equal(first, second);
	assert_string_equal(value_text(first), "web");
	assert_int_equal(user_quota_held(value_table_quota(table), USER), 1);
	assert_int_equal(user_quota_held(value_table_quota(table), ANOTHER), 0);
	assert_ptr_equal(value_table_share(first), first);
	value_table_give(table, first);
	value_table_give(table, first);
	assert_int_equal(user_quota_held(value_table_quota(table), USER), 1);
	value_table_give(table, second);
	assert_int_equal(user_quota_held(value_table_quota(table), USER), 0);
	assert_int_equal(value_table_take(table, USER, "", &none), 0);
	assert_null(none);
	assert_null(value_table_share(NULL));
	assert_string_equal(value_text(NULL), "");
	value_table_give(table, NULL);
}

static void value_table__user_with_endless_values_leaves_others_theirs(void **state)
{
	OWNED(value_table) struct value_table *table = NULL;
	struct label_value_entry *value;
	unsigned int taken = 0;
	char text[16];
	int err = 0;

	(void)state;
	assert_int_equal(value_table_new(&table), 0);
	for (unsigned int i = 0; i < VALUE_TABLE_MAX && !err; i++, taken += !err) {
		snprintf(text, sizeof(text), "v%u", i);
		err = value_table_take(table, USER, text, &value);
	}
	assert_int_equal(err, -EDQUOT);
	assert_int_equal(taken, VALUE_TABLE_MAX / 2);
	/* What is there already costs nothing. */
	assert_int_equal(value_table_take(table, USER, "v0", &value), 0);
	assert_int_equal(value_table_take(table, ANOTHER, "other", &value), 0);
	assert_int_equal(value_table_quota(table)->refused, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(value_table__each_value_is_there_once),
		cmocka_unit_test(value_table__user_with_endless_values_leaves_others_theirs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
