/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/loop.h"

#include <cmocka.h>

#define LONG TURN_QUESTIONS_LONG_NS

static void allow__while_the_child_has_computed_less_than_long(void **state)
{
	struct turn_questions questions = {.began_ns = 0};

	(void)state;
	turn_questions_begin(&questions, 1000);
	assert_true(turn_questions_allow(&questions, 1000));
	assert_true(turn_questions_allow(&questions, 1000 + LONG - 1));
	assert_false(turn_questions_allow(&questions, 1000 + LONG));
	/* The next turn begins anew. */
	turn_questions_begin(&questions, 1000 + LONG);
	assert_true(turn_questions_allow(&questions, 1000 + LONG));
}

/* However many steps each of them puts off. */
static void allow__is_not_refused_for_more_than_eight_turns(void **state)
{
	struct turn_questions questions = {.began_ns = 0};
	uint64_t used_ns = 0;

	(void)state;
	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int turn = 0; turn < 8; turn++, used_ns += LONG) {
			turn_questions_begin(&questions, used_ns);
			for (unsigned int step = 0; step < 3; step++)
				assert_false(turn_questions_allow(&questions, used_ns + LONG));
		}
		turn_questions_begin(&questions, used_ns);
		for (unsigned int step = 0; step < 3; step++)
			assert_true(turn_questions_allow(&questions, used_ns + LONG));
	}
}

/* A turn that put nothing off ends the row, one in which another step had time does not. */
static void allow__turns_count_in_a_row(void **state)
{
	struct turn_questions questions = {.began_ns = 0};

	(void)state;
	for (unsigned int turn = 0; turn < 20; turn++) {
		const bool is_quiet = turn % 5 == 4;

		turn_questions_begin(&questions, 0);
		assert_int_equal(turn_questions_allow(&questions, is_quiet ? 0 : LONG), is_quiet);
	}
	for (unsigned int turn = 0; turn < 8; turn++) {
		turn_questions_begin(&questions, 0);
		assert_true(turn_questions_allow(&questions, 0));
		assert_false(turn_questions_allow(&questions, LONG));
	}
	turn_questions_begin(&questions, 0);
	assert_true(turn_questions_allow(&questions, LONG));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allow__while_the_child_has_computed_less_than_long),
		cmocka_unit_test(allow__is_not_refused_for_more_than_eight_turns),
		cmocka_unit_test(allow__turns_count_in_a_row),
	};

	return cmocka_run_group_tests_name("agent/turn_questions", tests, NULL, NULL);
}
