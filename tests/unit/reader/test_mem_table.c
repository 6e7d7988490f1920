/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/mem_view.h"

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/kinds.h"

#define WINDOW_NS (10 * NS_PER_SEC)
#define BEGIN_NS (1795819000ULL * NS_PER_SEC)

struct made {
	struct intern *strings;
	struct profile *profile;
	struct held held;
	struct profile_delta delta[8];
	size_t deltas;
	uint64_t windows;
};

static void begin(struct made *made, enum pp_profile number)
{
	const struct kind *kind = kind_get(number);
	struct profile_options options = {.kind = kind->name,
					  .value_count = kind_value_count(number)};

	for (size_t i = 0; i < options.value_count; i++)
		options.value_type[i] =
			(struct profile_value_type){kind->value[i].type, kind->value[i].unit};
	*made = (struct made){.held = {.older_ns = 100 * NS_PER_SEC}};
	assert_int_equal(intern_new(&made->strings), 0);
	assert_int_equal(profile_new(&options, made->strings, &made->profile), 0);
}

static void made_release(struct made *made)
{
	profile_free(made->profile);
	intern_free(made->strings);
	held_release(&made->held);
}

/* Adds to a row: a line of /a.py, called from another one. */
static void add(struct made *made, const char *name, uint32_t caller, const int64_t *value)
{
	struct frame frame[2] = {{.kind = FRAME_PYTHON, .line = 5},
				 {.kind = FRAME_PYTHON, .line = caller}};
	uint32_t location[2], stack, set, row;

	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(intern_string(made->strings, i ? "main" : name, &frame[i].name),
				 0);
		assert_int_equal(intern_string(made->strings, "/a.py", &frame[i].file), 0);
		assert_int_equal(profile_add_location(made->profile, &frame[i], &location[i]), 0);
	}
	assert_int_equal(profile_add_stack(made->profile, location, 2, &stack), 0);
	assert_int_equal(profile_add_label_set(made->profile, NULL, 0, &set), 0);
	assert_int_equal(profile_add_row(made->profile, stack, set, value, &row), 0);
	made->delta[made->deltas++] = (struct profile_delta){.row = row, .value = value[MEM_HELD]};
}

static void end_window(struct made *made)
{
	struct profile_window window = {.start_wall_ns = BEGIN_NS + made->windows++ * WINDOW_NS,
					.duration_ns = WINDOW_NS,
					.delta = made->delta,
					.delta_count = made->deltas,
					.is_level = true};

	for (size_t i = 0; i < made->deltas; i++)
		window.total += made->delta[i].value;
	assert_int_equal(held_add_window(&made->held, &window), 0);
	made->deltas = 0;
}

static const char *name_of(const struct mem_table *table, uint32_t row)
{
	return code_text(&table->code, table->code.code[table->row[row].code].name);
}

static void fill__a_line_is_one_row_whoever_called_it(void **state)
{
	CLEANUP(made_release) struct made made;
	CLEANUP(mem_table_release) struct mem_table table = {0};

	(void)state;
	begin(&made, PP_PROFILE_MEM);
	add(&made, "a", 40, (const int64_t[]){100, 0, 1});
	add(&made, "a", 41, (const int64_t[]){200, 5, 2});
	add(&made, "b", 40, (const int64_t[]){0, 400, 3});
	assert_int_equal(mem_table_fill(&table, made.profile, &made.held), 0);
	mem_table_sort(&table, false);
	assert_false(table.is_alloc);
	assert_int_equal(table.count, 2);
	assert_string_equal(name_of(&table, 0), "b");
	assert_string_equal(name_of(&table, 1), "a");
	assert_int_equal(table.row[1].value[MEM_TOUCHED], 300);
	assert_int_equal(table.row[1].value[MEM_COPIED], 5);
	assert_int_equal(table.row[1].value[MEM_FAULTS], 3);
	assert_int_equal(table.all[MEM_TOUCHED], 300);
	assert_int_equal(table.all[MEM_COPIED], 405);
}

static void fill__other_sample_types_are_refused(void **state)
{
	CLEANUP(made_release) struct made made;
	CLEANUP(mem_table_release) struct mem_table table = {0};

	(void)state;
	begin(&made, PP_PROFILE_CPU);
	assert_int_equal(mem_table_fill(&table, made.profile, &made.held), -EPROTO);
}

/* `leak` grows by 60 bytes a window; `first` holds the most, and does not grow; `noisy` goes up and
 * down, and ends above its start. */
static void make_leak(struct made *made)
{
	begin(made, PP_PROFILE_ALLOC);
	for (int64_t i = 0; i < 12; i++) {
		add(made, "first", 40, (const int64_t[]){0, 0, 5000, 1});
		add(made, "leak", 40, (const int64_t[]){60, 1, 60 * (i + 1), i + 1});
		add(made, "noisy", 40,
		    (const int64_t[]){9, 1, i % 3 == 2 ? 900 : 900 - i % 3 * 50, 1});
		end_window(made);
	}
}

static void sort__leak_comes_first(void **state)
{
	CLEANUP(made_release) struct made made;
	CLEANUP(mem_table_release) struct mem_table table = {0};

	(void)state;
	make_leak(&made);
	assert_int_equal(mem_table_fill(&table, made.profile, &made.held), 0);
	assert_true(table.is_alloc);
	mem_table_sort(&table, true);
	assert_string_equal(name_of(&table, 0), "leak");
	assert_true(mem_row_leaks(&table.row[0]));
	assert_int_equal(table.row[0].grew, 11);
	assert_int_equal(table.row[0].intervals, 11);
	assert_true(fabs(table.row[0].growth - 360) < 1e-6);
	/* 100 s before the end it held 120; the oldest part may be an eighth older. */
	assert_in_range(table.row[0].for_long, 60, 120);
	assert_string_equal(name_of(&table, 1), "first");
	assert_false(mem_row_leaks(&table.row[1]));
	assert_int_equal(table.row[1].for_long, 5000);
	assert_int_equal(table.row[1].at_peak, 5000);
	assert_false(mem_row_leaks(&table.row[2]));
	assert_int_equal(table.row[2].for_long, 850);
}

static void sort__without_leaks_what_holds_most_comes_first(void **state)
{
	CLEANUP(made_release) struct made made;
	CLEANUP(mem_table_release) struct mem_table table = {0};

	(void)state;
	begin(&made, PP_PROFILE_ALLOC);
	add(&made, "a", 40, (const int64_t[]){900, 9, 0, 0});
	add(&made, "b", 40, (const int64_t[]){1, 1, 100, 1});
	add(&made, "c", 40, (const int64_t[]){950, 9, 0, 0});
	end_window(&made);
	assert_int_equal(mem_table_fill(&table, made.profile, &made.held), 0);
	mem_table_sort(&table, false);
	assert_string_equal(name_of(&table, 0), "b");
	assert_string_equal(name_of(&table, 1), "c");
	assert_string_equal(name_of(&table, 2), "a");
	assert_int_equal(table.row[0].intervals, 0);
	assert_false(mem_row_leaks(&table.row[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fill__a_line_is_one_row_whoever_called_it),
		cmocka_unit_test(fill__other_sample_types_are_refused),
		cmocka_unit_test(sort__leak_comes_first),
		cmocka_unit_test(sort__without_leaks_what_holds_most_comes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
