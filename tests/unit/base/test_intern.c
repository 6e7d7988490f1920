/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/intern.h"

#include <cmocka.h>
#include <stdio.h>

static void intern_bytes__equal_strings_share_an_id(void **state)
{
	OWNED(intern) struct intern *intern = NULL;
	uint32_t first, second, empty;

	(void)state;
	assert_int_equal(intern_new(&intern), 0);
	assert_int_equal(intern_string(intern, "json", &first), 0);
	assert_int_equal(intern_bytes(intern, "jsonx", 4, &second), 0);
	assert_int_equal(intern_string(intern, "", &empty), 0);
	assert_int_equal(first, second);
	assert_int_equal(empty, 0);
	assert_string_equal(intern_get(intern, first, NULL), "json");
}

static void intern_bytes__survives_growth_and_embedded_nul(void **state)
{
	OWNED(intern) struct intern *intern = NULL;
	uint32_t ids[5000], again, with_nul;
	char text[32];
	size_t size;

	(void)state;
	assert_int_equal(intern_new(&intern), 0);
	for (int i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "name%d", i);
		assert_int_equal(intern_string(intern, text, &ids[i]), 0);
	}
	for (int i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "name%d", i);
		assert_int_equal(intern_string(intern, text, &again), 0);
		assert_int_equal(again, ids[i]);
		assert_string_equal(intern_get(intern, ids[i], NULL), text);
	}
	assert_int_equal(intern_bytes(intern, "a\0b", 3, &with_nul), 0);
	intern_get(intern, with_nul, &size);
	assert_int_equal(size, 3);
	assert_int_equal(intern_count(intern), 5002);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intern_bytes__equal_strings_share_an_id),
		cmocka_unit_test(intern_bytes__survives_growth_and_embedded_nul),
	};

	return cmocka_run_group_tests_name("base/intern", tests, NULL, NULL);
}
