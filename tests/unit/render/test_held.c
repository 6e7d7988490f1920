/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/held.h"

#include <cmocka.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define WINDOW_NS (10 * NS_PER_SEC)
#define ROWS 4U
#define BEGIN 179581900U /* the number of the first window */

/* Adds a window: what each row holds at its end; a row with 0 is not in it. */
static void add(struct held *held, uint64_t number, const int64_t bytes[ROWS])
{
	struct profile_delta delta[ROWS];
	struct profile_window window = {.start_wall_ns = (BEGIN + number) * WINDOW_NS,
					.duration_ns = WINDOW_NS,
					.delta = delta,
					.is_level = true};

	for (uint32_t i = 0; i < ROWS; i++) {
		if (!bytes[i])
			continue;
		delta[window.delta_count++] = (struct profile_delta){.row = i, .value = bytes[i]};
		window.total += bytes[i];
	}
	assert_int_equal(held_add_window(held, &window), 0);
}

/* Row 0 grows, row 1 stays, row 2 is there in every second window, row 3 in the 5th alone. */
static void add_numbered(struct held *held, uint64_t number)
{
	add(held, number,
	    (const int64_t[]){(int64_t)number + 1, 50, number & 1 ? 0 : 20, number == 5 ? 999 : 0});
}

static void check_forty(const struct held *held)
{
	uint32_t points = 0;

	assert_int_equal(held->windows, 40);
	assert_int_equal(held_at_end(held, 0), 40);
	assert_int_equal(held_at_end(held, 1), 50);
	assert_int_equal(held_at_end(held, 2), 0);
	assert_int_equal(held_at_end(held, 3), 0);
	assert_int_equal(held_at_peak(held, 0), 6);
	assert_int_equal(held_at_peak(held, 3), 999);
	/* 300 s before the end it held 10; the oldest part begins 37.5 s before that at most. */
	assert_in_range(held_for_long(held, 0), 6, 10);
	assert_int_equal(held_for_long(held, 1), 50);
	assert_int_equal(held_for_long(held, 2), 0);
	assert_int_equal(held_long_ns(held), 300 * NS_PER_SEC);
	for (uint32_t i = 0; i < held->points; i++) {
		if (!held_has_point(held, i))
			continue;
		points++;
		/* The last window of each part, and no other one. */
		assert_int_equal(held_at_point(held, 0, i),
				 held->point[i].end_ns / WINDOW_NS - BEGIN);
	}
	assert_in_range(points, HELD_POINTS / 2, HELD_POINTS);
}

static void held__figures_are_of_the_end_the_peak_and_the_time_between(void **state)
{
	CLEANUP(held_release) struct held held = {.older_ns = 300 * NS_PER_SEC};

	(void)state;
	for (uint64_t i = 0; i < 40; i++)
		add_numbered(&held, i);
	check_forty(&held);
}

static void held__order_of_windows_does_not_matter(void **state)
{
	(void)state;
	for (uint64_t step = 3; step < 40; step += 4) { /* 40 and it have no common divisor */
		CLEANUP(held_release) struct held held = {.older_ns = 300 * NS_PER_SEC};

		if (step % 5 == 0)
			continue;
		for (uint64_t i = 0; i < 40; i++)
			add_numbered(&held, i * step % 40);
		check_forty(&held);
	}
}

static void held__window_without_a_row_ends_what_is_held_for_long(void **state)
{
	CLEANUP(held_release) struct held held = {.older_ns = 100 * NS_PER_SEC};

	(void)state;
	for (uint64_t i = 0; i < 12; i++)
		add(&held, i, (const int64_t[]){i == 6 ? 0 : 8, 1, 0, 0});
	assert_int_equal(held_for_long(&held, 0), 0);
	assert_int_equal(held_for_long(&held, 1), 1);
	for (uint64_t i = 12; i < 24; i++)
		add(&held, i, (const int64_t[]){8, 1, 0, 0});
	assert_int_equal(held_for_long(&held, 0), 8);
}

static void held__shorter_range_is_all_the_time_there_is(void **state)
{
	CLEANUP(held_release) struct held held = {.older_ns = 300 * NS_PER_SEC};

	(void)state;
	add(&held, 0, (const int64_t[]){3, 0, 0, 0});
	assert_int_equal(held_long_ns(&held), 0);
	add(&held, 2, (const int64_t[]){9, 0, 0, 0});
	assert_int_equal(held_long_ns(&held), 20 * NS_PER_SEC);
	assert_int_equal(held_for_long(&held, 0), 3);
}

/* Threads of one process, once their labels are dropped. */
static void held__several_values_of_a_row_are_one_level(void **state)
{
	const struct profile_delta delta[] = {{.value = 3}, {.value = 4}};
	const struct profile_window window = {.start_wall_ns = NS_PER_SEC,
					      .duration_ns = NS_PER_SEC,
					      .delta = delta,
					      .delta_count = 2,
					      .total = 7,
					      .is_level = true};
	CLEANUP(held_release) struct held held = {.older_ns = NS_PER_SEC};

	(void)state;
	assert_int_equal(held_add_window(&held, &window), 0);
	assert_int_equal(held_at_end(&held, 0), 7);
	assert_int_equal(held_at_peak(&held, 0), 7);
	assert_int_equal(held_for_long(&held, 0), 7);
}

static void held__empty_windows_and_those_without_a_time_are_none(void **state)
{
	const struct profile_delta delta = {.value = 3};
	struct profile_window window = {.delta = &delta, .delta_count = 1, .total = 3};
	CLEANUP(held_release) struct held held = {.older_ns = NS_PER_SEC};

	(void)state;
	assert_int_equal(held_add_window(&held, &window), 0);
	assert_int_equal(held.windows, 0);
	assert_int_equal(held.left_out, 1);
	window = (struct profile_window){.start_wall_ns = 5, .duration_ns = 5};
	assert_int_equal(held_add_window(&held, &window), 0);
	assert_int_equal(held.windows, 0);
	assert_int_equal(held_at_end(&held, 0), 0);
	assert_int_equal(held_for_long(&held, 0), 0);
}

static void held__rows_beyond_the_bound_are_counted(void **state)
{
	const struct profile_delta delta = {.row = HELD_ROWS_MAX, .value = 3};
	const struct profile_window window = {.start_wall_ns = 5,
					      .duration_ns = 5,
					      .delta = &delta,
					      .delta_count = 1,
					      .total = 3};
	CLEANUP(held_release) struct held held = {.older_ns = NS_PER_SEC};

	(void)state;
	assert_int_equal(held_add_window(&held, &window), 0);
	assert_int_equal(held.left_out, 1);
	assert_int_equal(held_at_end(&held, HELD_ROWS_MAX), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(held__figures_are_of_the_end_the_peak_and_the_time_between),
		cmocka_unit_test(held__order_of_windows_does_not_matter),
		cmocka_unit_test(held__window_without_a_row_ends_what_is_held_for_long),
		cmocka_unit_test(held__shorter_range_is_all_the_time_there_is),
		cmocka_unit_test(held__several_values_of_a_row_are_one_level),
		cmocka_unit_test(held__empty_windows_and_those_without_a_time_are_none),
		cmocka_unit_test(held__rows_beyond_the_bound_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
