/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/strip.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"

#define T0 1795273360000ULL
#define S 1000ULL

static int64_t sum(const struct strip *strip)
{
	int64_t all = 0;

	for (uint32_t i = 0; i < strip->count; i++)
		all += strip->point[i].value;
	return all;
}

static uint64_t recorded(const struct strip *strip)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < strip->count; i++)
		all += strip->point[i].recorded_ms;
	return all;
}

static void windows__are_where_they_were(void **state)
{
	CLEANUP(strip_release) struct strip strip = {0};

	(void)state;
	assert_int_equal(strip_init(&strip, T0, T0 + 40 * S, 4), 0);
	strip_add(&strip, T0, 10 * S, 7);
	strip_add(&strip, T0 + 10 * S, 10 * S, 0);
	strip_add(&strip, T0 + 30 * S, 10 * S, 9);
	assert_int_equal(strip.point[0].value, 7);
	/* Nothing ran, but somebody recorded; then nobody did. */
	assert_int_equal(strip.point[1].value, 0);
	assert_int_equal(strip.point[1].recorded_ms, 10 * S);
	assert_int_equal(strip.point[2].recorded_ms, 0);
	assert_int_equal(strip.point[3].value, 9);
	assert_int_equal(strip.windows, 3);
	assert_int_equal(strip.window_ms, 10 * S);
}

static void sum__is_that_of_the_windows_whatever_the_intervals(void **state)
{
	static const uint32_t points[] = {1, 2, 3, 7, 13, 600, 999, REQUEST_POINTS_MAX};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(points); i++) {
		CLEANUP(strip_release) struct strip strip = {0};
		int64_t all = 0;
		uint64_t ms = 0;

		assert_int_equal(strip_init(&strip, T0, T0 + 3607 * S, points[i]), 0);
		for (unsigned int w = 0; w < 360; w++) {
			const int64_t value = 1000000007LL * (w + 1) % 19999999981LL;
			const uint64_t length_ms = 9993 + w % 17;

			strip_add(&strip, T0 + w * 10 * S, length_ms, value);
			all += value;
			ms += length_ms;
		}
		assert_int_equal(sum(&strip), all);
		assert_int_equal(recorded(&strip), ms);
	}
}

static void window__across_the_edge_of_the_range_gives_its_part(void **state)
{
	CLEANUP(strip_release) struct strip strip = {0};

	(void)state;
	assert_int_equal(strip_init(&strip, T0, T0 + 10 * S, 10), 0);
	strip_add(&strip, T0 - 5 * S, 10 * S, 1000);
	strip_add(&strip, T0 + 8 * S, 4 * S, 1000);
	strip_add(&strip, T0 - 10 * S, 10 * S, 1000); /* ends where the range begins */
	strip_add(&strip, T0 + 10 * S, 10 * S, 1000); /* begins where it ends */
	assert_int_equal(sum(&strip), 500 + 500);
	assert_int_equal(recorded(&strip), 7 * S);
	assert_int_equal(strip.windows, 2);
}

static void pending__is_neither_a_gap_nor_zero(void **state)
{
	CLEANUP(strip_release) struct strip strip = {0};

	(void)state;
	assert_int_equal(strip_init(&strip, T0, T0 + 30 * S, 3), 0);
	strip_add_pending(&strip, T0 + 10 * S, 10 * S);
	assert_int_equal(strip.point[1].pending_ms, 10 * S);
	assert_int_equal(strip.point[1].recorded_ms, 0);
	assert_int_equal(strip.pending, 1);
	assert_int_equal(strip.windows, 1);
}

static void write_strip(const struct strip *strip, FILE *out)
{
	struct json_writer json = json_writer_to(out);

	json_open(&json, '{');
	strip_put(strip, "cpu", "nanoseconds", &json);
	json_close(&json, '}');
	assert_int_equal(json_finish(&json), 0);
}

/* Asking again does not help: it is told, and not pending. */
static void left_out__is_told_by_its_time_in_the_range(void **state)
{
	CLEANUP(strip_release) struct strip strip = {0};
	OWNED_MEM char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_non_null(out);
	assert_int_equal(strip_init(&strip, T0, T0 + 30 * S, 3), 0);
	strip_add_left_out(&strip, T0 - 5 * S, 10 * S);
	strip_add_left_out(&strip, T0 + 10 * S, 10 * S);
	strip_add_left_out(&strip, T0 + 30 * S, 10 * S);
	assert_int_equal(strip.left_out_ms, 15 * S);
	assert_int_equal(strip.pending, 0);
	assert_int_equal(strip.point[1].pending_ms, 10 * S);
	write_strip(&strip, out);
	assert_int_equal(close_memory_file(out, &text), 0);
	assert_non_null(strstr(text, "\"full\":true,\"full_ms\":15000,"));
}

static void numbers__of_hostile_files_stay_within_bounds(void **state)
{
	CLEANUP(strip_release) struct strip strip = {0};

	(void)state;
	assert_int_equal(strip_init(&strip, T0, T0 + 10 * S, 3), 0);
	strip_add(&strip, 0, UINT64_MAX, INT64_MAX);
	strip_add(&strip, T0, 10 * S, INT64_MAX);
	strip_add(&strip, T0, 10 * S, INT64_MAX);
	strip_add(&strip, T0, 10 * S, -5);
	strip_add(&strip, T0 + S, 0, 3);
	strip_add(&strip, UINT64_MAX, UINT64_MAX, 3);
	for (uint32_t i = 0; i < strip.count; i++)
		assert_true(strip.point[i].value >= 0);
}

static void range__is_checked(void **state)
{
	CLEANUP(strip_release) struct strip strip = {0};

	(void)state;
	assert_int_equal(strip_init(&strip, T0, T0, 10), -EINVAL);
	assert_int_equal(strip_init(&strip, T0 + 1, T0, 10), -EINVAL);
	assert_int_equal(strip_init(&strip, T0, T0 + S, 0), -EINVAL);
	assert_int_equal(strip_init(&strip, T0, T0 + S, REQUEST_POINTS_MAX + 1), -EINVAL);
	assert_int_equal(strip_init(&strip, 0, UINT64_MAX, 10), -EINVAL);
	/* No interval is shorter than a millisecond. */
	assert_int_equal(strip_init(&strip, T0, T0 + 5, 600), 0);
	assert_int_equal(strip.count, 5);
}

static void json__has_null_for_gaps(void **state)
{
	static const char wanted[] = "\"value\":[7,0,null]";
	CLEANUP(strip_release) struct strip strip = {0};
	OWNED_MEM char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_non_null(out);
	assert_int_equal(strip_init(&strip, T0, T0 + 30 * S, 3), 0);
	strip_add(&strip, T0, 10 * S, 7);
	strip_add(&strip, T0 + 10 * S, 10 * S, 0);
	strip_add_pending(&strip, T0 + 20 * S, 10 * S);
	write_strip(&strip, out);
	assert_int_equal(close_memory_file(out, &text), 0);
	assert_non_null(strstr(text, wanted));
	assert_non_null(strstr(text, "\"recorded_ms\":[10000,10000,0]"));
	assert_non_null(strstr(text, "\"pending_ms\":[0,0,10000]"));
	assert_non_null(strstr(text, "\"windows\":3,\"pending\":1,\"broken\":0,"
				     "\"unreadable\":0,\"full\":false,\"full_ms\":0,"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows__are_where_they_were),
		cmocka_unit_test(sum__is_that_of_the_windows_whatever_the_intervals),
		cmocka_unit_test(window__across_the_edge_of_the_range_gives_its_part),
		cmocka_unit_test(pending__is_neither_a_gap_nor_zero),
		cmocka_unit_test(left_out__is_told_by_its_time_in_the_range),
		cmocka_unit_test(numbers__of_hostile_files_stay_within_bounds),
		cmocka_unit_test(range__is_checked),
		cmocka_unit_test(json__has_null_for_gaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
