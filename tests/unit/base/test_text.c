/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/text.h"

#include <cmocka.h>

static void file_bytes__end_at_the_functions_colon(void **state)
{
	(void)state;
	assert_int_equal(line_target_file_bytes("w.py:Model.step"), 4);
	assert_int_equal(line_target_file_bytes("/srv/a:b/w.py:f"), 13);
	assert_int_equal(line_target_file_bytes("w.py:"), 4);
	assert_int_equal(line_target_file_bytes(":f"), 0);
}

static void file_bytes__without_a_function_are_all(void **state)
{
	(void)state;
	assert_int_equal(line_target_file_bytes("w.py"), 4);
	assert_int_equal(line_target_file_bytes("/srv/a:b/w.py"), 13);
	assert_int_equal(line_target_file_bytes(""), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_bytes__end_at_the_functions_colon),
		cmocka_unit_test(file_bytes__without_a_function_are_all),
	};

	return cmocka_run_group_tests_name("base/text", tests, NULL, NULL);
}
