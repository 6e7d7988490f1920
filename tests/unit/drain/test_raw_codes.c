/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/raw_codes.h"

#include <cmocka.h>
#include <string.h>

static struct raw_codes codes;
static struct raw_code_link links[10];

static int setup(void **state)
{
	(void)state;
	memset(links, 0, sizeof(links));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	raw_codes_release(&codes);
	assert_null(codes.by_user);
	assert_null(codes.waiting);
	assert_null(codes.later);
	return (int)codes.count;
}

static void add(uint32_t index, uint32_t user)
{
	links[index] = (struct raw_code_link){.index = index, .user = user};
	assert_int_equal(raw_codes_add(&codes, &links[index]), 0);
}

static void assert_has(const struct raw_user *user, uint32_t uid, const char *indexes)
{
	char found[16] = "";
	size_t count = 0;

	assert_non_null(user);
	assert_int_equal(user->user, uid);
	for (const struct raw_code_link *at = user->first; at; at = at->next)
		found[count++] = (char)('0' + at->index);
	assert_string_equal(found, indexes);
}

static uint32_t whose_turn(void)
{
	const struct raw_user *user = raw_codes_take_turn(&codes);

	return user ? user->user : 0;
}

static void add__keeps_the_order_of_each_user(void **state)
{
	(void)state;
	assert_null(raw_codes_take_turn(&codes));
	add(3, 500);
	add(1, 501);
	add(2, 500);
	assert_int_equal(codes.count, 3);
	assert_has(raw_codes_take_turn(&codes), 500, "32");
	assert_has(raw_codes_take_turn(&codes), 501, "1");
	assert_has(raw_codes_take_turn(&codes), 500, "32");
	/* Code objects may be added after that. */
	add(4, 501);
	assert_has(raw_codes_take_turn(&codes), 501, "14");
}

static void remove__from_anywhere(void **state)
{
	(void)state;
	for (uint32_t i = 1; i < 6; i++)
		add(i, 500);
	raw_codes_remove(&codes, &links[3]);
	raw_codes_remove(&codes, &links[3]); /* it is not there */
	raw_codes_remove(&codes, &links[1]);
	raw_codes_remove(&codes, &links[5]);
	raw_codes_remove(&codes, &links[9]); /* nor was this one ever */
	assert_int_equal(codes.count, 2);
	assert_has(raw_codes_take_turn(&codes), 500, "24");
	add(3, 500);
	assert_has(raw_codes_take_turn(&codes), 500, "243");
}

static void remove__user_goes_with_the_last(void **state)
{
	(void)state;
	add(1, 500);
	add(2, 501);
	add(3, 502);
	raw_codes_remove(&codes, &links[2]);
	assert_int_equal(whose_turn(), 500);
	assert_int_equal(whose_turn(), 502);
	assert_int_equal(whose_turn(), 500);
	raw_codes_remove(&codes, &links[1]);
	raw_codes_remove(&codes, &links[3]);
	assert_int_equal(codes.count, 0);
	assert_null(raw_codes_take_turn(&codes));
	add(1, 500);
	assert_has(raw_codes_take_turn(&codes), 500, "1");
}

static void put_off__user_has_no_turn_until_recalled(void **state)
{
	struct raw_user *user;

	(void)state;
	add(1, 500);
	add(2, 501);
	add(3, 502);
	user = raw_codes_take_turn(&codes);
	raw_codes_put_off(&codes, user);
	user = raw_codes_take_turn(&codes);
	raw_codes_put_off(&codes, user);
	add(4, 500);
	assert_int_equal(codes.count, 4);
	assert_int_equal(whose_turn(), 502);
	assert_int_equal(whose_turn(), 502);
	/* It may be dropped meanwhile. */
	raw_codes_remove(&codes, &links[2]);
	raw_codes_recall(&codes);
	assert_int_equal(whose_turn(), 502);
	assert_has(raw_codes_take_turn(&codes), 500, "14");
	assert_int_equal(whose_turn(), 502);
	raw_codes_recall(&codes); /* with nobody put off */
	assert_int_equal(whose_turn(), 500);
	/* Nobody waits but who was put off. */
	raw_codes_put_off(&codes, raw_codes_take_turn(&codes));
	raw_codes_put_off(&codes, raw_codes_take_turn(&codes));
	assert_null(raw_codes_take_turn(&codes));
	raw_codes_recall(&codes);
	assert_int_equal(whose_turn(), 502);
	assert_int_equal(whose_turn(), 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(add__keeps_the_order_of_each_user, setup, teardown),
		cmocka_unit_test_setup_teardown(remove__from_anywhere, setup, teardown),
		cmocka_unit_test_setup_teardown(remove__user_goes_with_the_last, setup, teardown),
		cmocka_unit_test_setup_teardown(put_off__user_has_no_turn_until_recalled, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("drain/raw_codes", tests, NULL, NULL);
}
