/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: probes/exact_pace.c */
#include "probes/exact_pace.h"

#include <cmocka.h>

#define SECOND_NS 1000000000ULL
#define NEAR(value, wanted)                                                                        \
	assert_in_range((uint64_t)((value) * 1000), (wanted) ? (wanted) - 1 : 0, (wanted) + 1)

static void share__of_one_process_is_of_the_time_that_it_could_have_had(void **state)
{
	const struct exact_pace alone = {.cpu_ns = SECOND_NS};
	const struct exact_pace late = {.cpu_ns = SECOND_NS / 2, .delay_ns = SECOND_NS / 2};

	(void)state;
	NEAR(exact_pace_share(&alone, 1, SECOND_NS, SECOND_NS / 4), 250);
	NEAR(exact_pace_share(&late, 1, SECOND_NS, SECOND_NS / 4), 500);
}

static void share__of_several_is_that_of_the_slowest(void **state)
{
	const struct exact_pace equal[4] = {
		{SECOND_NS, 0}, {SECOND_NS, 0}, {SECOND_NS, 0}, {SECOND_NS, 0}};
	const struct exact_pace one_busy[2] = {{SECOND_NS, 0}, {0, 0}};

	(void)state;
	NEAR(exact_pace_share(equal, 4, SECOND_NS, 2 * SECOND_NS), 500);
	NEAR(exact_pace_share(one_busy, 2, SECOND_NS, SECOND_NS / 2), 500);
}

/* Hits of processes that have ended meanwhile are the others'. */
static void share__without_any_cpu_time_is_that_of_all_hits(void **state)
{
	const struct exact_pace asleep = {.delay_ns = 5 * SECOND_NS};

	(void)state;
	NEAR(exact_pace_share(&asleep, 1, SECOND_NS, SECOND_NS / 20), 500);
	NEAR(exact_pace_share(&asleep, 1, 0, SECOND_NS), 0);
	NEAR(exact_pace_share(NULL, 0, SECOND_NS, SECOND_NS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(share__of_one_process_is_of_the_time_that_it_could_have_had),
		cmocka_unit_test(share__of_several_is_that_of_the_slowest),
		cmocka_unit_test(share__without_any_cpu_time_is_that_of_all_hits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
