/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel side's maps and the two that drain them are stand-ins. */
#include "agent/tables.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attach/kernel_side.h"
#include "base/clock.h"
#include "drain/thread_slots.h"

static struct pp_config config;
static struct pp_fill fills[PP_FILL_COUNT];
static struct pp_count rest[2 * PP_REST_ROWS];
static char drained[128];
static int drain_err; /* of the descriptor drain_err_of */
static int drain_err_of;
static unsigned int released;

volatile struct pp_config *kernel_side_config(const struct kernel_side *side)
{
	(void)side;
	return &config;
}

int kernel_side_table(const struct kernel_side *side, enum pp_table table, uint32_t number)
{
	(void)side;
	return 100 + (int)pp_fill_index(table, number);
}

struct pp_fill *kernel_side_fill(const struct kernel_side *side, enum pp_table table,
				 uint32_t number)
{
	(void)side;
	assert_in_range(table, 0, PP_TABLE_COUNT - 1);
	return &fills[pp_fill_index(table, number)];
}

struct kernel_side_parts kernel_side_parts(const struct kernel_side *side)
{
	(void)side;
	return (struct kernel_side_parts){.rest = rest};
}

static int drain(const char *what, int number, size_t *count)
{
	const size_t used = strlen(drained);

	snprintf(drained + used, sizeof(drained) - used, "%s%d ", what, number);
	++*count;
	return number == drain_err_of ? drain_err : 0;
}

int counts_drain(int map_fd, struct counts *counts)
{
	return drain("counts", map_fd, &counts->count);
}

int counts_drain_rest(struct pp_count *rows, uint32_t number, struct counts *counts)
{
	assert_ptr_equal(rows, rest);
	return drain("rest", (int)number, &counts->count);
}

int wakes_drain(int map_fd, struct wakes *wakes, struct counts *counts)
{
	assert_non_null(counts);
	return drain("wakes", map_fd, &wakes->count);
}

void thread_slots_open(volatile struct pp_config *of, uint32_t window, uint64_t started_ns)
{
	assert_ptr_equal(of, &config);
	assert_int_equal(window, 6);
	of->window_start_ns[0] = of->window_start_ns[1] = started_ns;
}

void counts_release(struct counts *counts)
{
	released += 1;
	*counts = (struct counts){};
}

void wakes_release(struct wakes *wakes)
{
	released += 10;
	*wakes = (struct wakes){};
}

static unsigned int settled;

int nanosleep(const struct timespec *time, struct timespec *ret_rest)
{
	assert_string_equal(drained, ""); /* before anything is read */
	settled++;
	return clock_nanosleep(CLOCK_MONOTONIC, 0, time, ret_rest);
}

static int setup(void **state)
{
	(void)state;
	memset(&config, 0, sizeof(config));
	memset(fills, 0, sizeof(fills));
	drained[0] = '\0';
	drain_err = 0;
	released = settled = 0;
	drain_err_of = -1;
	return 0;
}

static void start__has_nothing_before_it(void **state)
{
	const struct tables tables = {.window = 6};

	(void)state;
	tables_start(&tables, 77);
	assert_int_equal(config.window_start_ns[0], 77);
	assert_int_equal(config.window_start_ns[1], 77);
}

/* Windows 4 and 5 with the tables 8 and 9: each pair of config is by the window's last bit. */
static void window__begins_with_the_next_tables(void **state)
{
	struct tables tables = {.window = 4};

	(void)state;
	config.window = 4;
	config.table[0] = 8;
	config.table[1] = 3;
	config.window_start_ns[0] = 1000;
	assert_int_equal(tables_begin_window(&tables, 2000), 8);
	assert_int_equal(tables.window, 5);
	assert_int_equal(config.window, 5);
	assert_int_equal(config.table[0], 8); /* walks that began before still find theirs */
	assert_int_equal(config.table[1], 9);
	assert_int_equal(config.window_start_ns[0], 1000);
	assert_int_equal(config.window_start_ns[1], 2000);
	assert_int_equal(tables_begin_window(&tables, 3000), 9);
	assert_int_equal(config.table[0], 10);
	assert_int_equal(config.window_start_ns[0], 3000);
	tables_end_slots(&tables, 5);
	assert_int_equal(config.slots_read, 5);
}

/* PP_SETTLE_NS: how long a walk may go on. */
static void settle__waits_for_walks_to_end(void **state)
{
	uint64_t began_ns = mono_ns();

	(void)state;
	tables_settle();
	assert_true(mono_ns() - began_ns >= PP_SETTLE_NS);
}

static void drain__empties_each_table_and_starts_its_fill_anew(void **state)
{
	struct tables tables = {.has_wakers = true};
	struct counts counts = {};
	struct wakes wakes = {};

	(void)state;
	for (unsigned int i = 0; i < PP_FILL_COUNT; i++)
		fills[i] = (struct pp_fill){.rows = 5, .half = 4, .is_told = 1};
	assert_int_equal(tables_drain(&tables, 3, &counts, &wakes), 0);
	/* Number 3 is the second of each pair: samples 101, waits 103, wake-ups 105, coarse 107. */
	assert_string_equal(drained, "counts101 counts103 counts107 rest3 wakes105 ");
	assert_int_equal(counts.count, 4);
	assert_int_equal(wakes.count, 1);
	for (unsigned int table = 0; table < PP_TABLE_COUNT; table++) {
		assert_int_equal(fills[pp_fill_index(table, 3)].rows, 0);
		assert_int_equal(fills[pp_fill_index(table, 3)].is_told, 0);
		assert_int_equal(fills[pp_fill_index(table, 3)].half, 4);
		assert_int_equal(fills[pp_fill_index(table, 2)].rows, 5);
		assert_int_equal(fills[pp_fill_index(table, 2)].is_told, 1);
	}
}

static void drain__without_wakers_has_no_such_table(void **state)
{
	struct tables tables = {};
	struct counts counts = {};
	struct wakes wakes = {};

	(void)state;
	assert_int_equal(tables_drain(&tables, 2, &counts, &wakes), 0);
	assert_string_equal(drained, "counts100 counts102 counts106 rest2 ");
}

static void drain__ends_at_what_cannot_be_read(void **state)
{
	static const struct {
		int of;
		const char *drained;
	} row[] = {{100, "counts100 "},
		   {102, "counts100 counts102 "},
		   {2, "counts100 counts102 counts106 rest2 "},
		   {104, "counts100 counts102 counts106 rest2 wakes104 "}};
	struct tables tables = {.has_wakers = true};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct counts counts = {};
		struct wakes wakes = {};

		drained[0] = '\0';
		fills[0].rows = 9;
		drain_err_of = row[i].of;
		drain_err = -EIO;
		assert_int_equal(tables_drain(&tables, 2, &counts, &wakes), -EIO);
		assert_string_equal(drained, row[i].drained);
		assert_int_equal(fills[0].rows, 9); /* rows are left in it */
	}
}

static void relieve__swaps_when_one_is_half_full(void **state)
{
	struct tables tables = {.window = 7, .has_wakers = true};

	(void)state;
	config.table[0] = 30;
	config.table[1] = 20;
	for (unsigned int i = 0; i < PP_FILL_COUNT; i++)
		fills[i].half = 10;
	fills[pp_fill_index(PP_TABLE_WAITS, 21)].rows = 1000; /* closed, and not read yet */
	fills[pp_fill_index(PP_TABLE_COARSE, 20)].rows = 9;
	assert_int_equal(tables_relieve(&tables), 0);
	assert_int_equal(tables.early_swaps, 0);
	assert_int_equal(config.table[1], 20);
	fills[pp_fill_index(PP_TABLE_COARSE, 20)].rows = 10;
	assert_int_equal(tables_relieve(&tables), 0);
	assert_int_equal(tables.early_swaps, 1);
	assert_int_equal(settled, 1);
	assert_int_equal(config.table[1], 21);
	assert_int_equal(config.table[0], 30);
	assert_int_equal(tables.window, 7); /* the same window goes on */
	assert_string_equal(drained, "counts100 counts102 counts106 rest20 wakes104 ");
	assert_int_equal(tables.counts.count, 4);
	assert_int_equal(tables.wakes.count, 1);
}

static void relieve__never_swaps_a_table_without_a_bound(void **state)
{
	struct tables tables = {};

	(void)state;
	fills[pp_fill_index(PP_TABLE_SAMPLES, 0)].rows = UINT32_MAX;
	assert_int_equal(tables_relieve(&tables), 0);
	assert_int_equal(tables.early_swaps, 0);
}

static void relieve__says_when_a_table_cannot_be_read(void **state)
{
	struct tables tables = {};

	(void)state;
	fills[0] = (struct pp_fill){.rows = 1, .half = 1};
	drain_err_of = 100;
	drain_err = -ENOMEM;
	assert_int_equal(tables_relieve(&tables), -ENOMEM);
}

static void take__leaves_nothing_behind(void **state)
{
	struct tables tables = {.counts = {.count = 3, .bounded = 2}, .wakes = {.count = 4}};
	struct counts counts;
	struct wakes wakes;

	(void)state;
	tables_take(&tables, &counts, &wakes);
	assert_int_equal(counts.count, 3);
	assert_int_equal(counts.bounded, 2);
	assert_int_equal(wakes.count, 4);
	assert_int_equal(tables.counts.count, 0);
	assert_int_equal(tables.counts.bounded, 0);
	assert_int_equal(tables.wakes.count, 0);
	tables_release(&tables);
	assert_int_equal(released, 11);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(start__has_nothing_before_it),
		TEST(window__begins_with_the_next_tables),
		TEST(settle__waits_for_walks_to_end),
		TEST(drain__empties_each_table_and_starts_its_fill_anew),
		TEST(drain__without_wakers_has_no_such_table),
		TEST(drain__ends_at_what_cannot_be_read),
		TEST(relieve__swaps_when_one_is_half_full),
		TEST(relieve__never_swaps_a_table_without_a_bound),
		TEST(relieve__says_when_a_table_cannot_be_read),
		TEST(take__leaves_nothing_behind),
	};

	return cmocka_run_group_tests_name("agent/tables", tests, NULL, NULL);
}
