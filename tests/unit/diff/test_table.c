/* SPDX-License-Identifier: BSD-2-Clause */
#include "../render/render_fixture.h"

#include <math.h>

#include "diff/significance.h"

#define assert_near(a, b) assert_true(fabs((a) - (b)) <= 1e-9)

static void end_window(struct fixture *f, struct diff_data *data, enum diff_side_id side)
{
	/* Of just this size, so that a sanitizer sees who reads behind it. */
	struct profile_delta *delta = malloc(f->delta_count * sizeof(*delta));
	struct profile_window window = {
		.duration_ns = 1000000000, .delta = delta, .delta_count = f->delta_count};

	assert_true(delta || !f->delta_count);
	if (f->delta_count)
		memcpy(delta, f->delta, f->delta_count * sizeof(*delta));
	for (size_t i = 0; i < f->delta_count; i++)
		window.total += f->delta[i].value;
	assert_int_equal(diff_data_add_window(data, side, f->profile, &window), 0);
	free(delta);
	f->delta_count = 0;
}

static struct diff_row *row_of(const struct diff_data *data, enum diff_by by, const char *name)
{
	for (uint32_t i = 0; i < data->table[by].count; i++)
		if (!strcmp(intern_get(data->profile->strings, data->table[by].row[i].code.name,
				       NULL),
			    name))
			return &data->table[by].row[i];
	fail_msg("no row %s", name);
	return NULL;
}

/* One sample in a function that starts at a line of its own. */
static void add_at(struct fixture *f, const char *name, uint32_t start_line, uint32_t line)
{
	struct frame frame = {.kind = FRAME_PYTHON,
			      .name = id(f, name),
			      .file = id(f, "/a.py"),
			      .start_line = start_line,
			      .line = line};
	const struct profile_label none = {0};
	int64_t value[] = {1, PERIOD};
	uint32_t location, stack, set, row;

	assert_int_equal(profile_add_location(f->profile, &frame, &location), 0);
	assert_int_equal(profile_add_stack(f->profile, &location, 1, &stack), 0);
	assert_int_equal(profile_add_label_set(f->profile, &none, 0, &set), 0);
	assert_int_equal(profile_add_row(f->profile, stack, set, value, &row), 0);
	f->delta[f->delta_count++] =
		(struct profile_delta){.row = row, .value = PERIOD, .count = 1};
}

static void diff_table__code_that_moved_is_one_row(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	CLEANUP(diff_data_release) struct diff_data data = {0};
	const struct diff_row *line;

	(void)state;
	fixture_init(&f);
	add_at(&f, "f", 10, 12);
	end_window(&f, &data, DIFF_A);
	add_at(&f, "f", 110, 112);
	end_window(&f, &data, DIFF_B);
	assert_int_equal(data.table[DIFF_BY_FUNCTION].count, 1);
	assert_int_equal(data.table[DIFF_BY_LINE].count, 1);
	assert_int_equal(data.table[DIFF_BY_STACK].count, 1);
	assert_int_equal(data.side[DIFF_A].duration_ns, 1000000000);
	assert_int_equal(data.side[DIFF_B].duration_ns, 1000000000);
	line = row_of(&data, DIFF_BY_LINE, "f");
	assert_int_equal(diff_row_line(line, DIFF_BY_LINE), 112);
	assert_int_equal(line->side[DIFF_A].sum[DIFF_SELF].value, PERIOD);
	assert_int_equal(line->side[DIFF_B].sum[DIFF_SELF].value, PERIOD);
}

static void diff_table__recursion_counts_once_in_total(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	CLEANUP(diff_data_release) struct diff_data data = {0};
	const struct diff_row *row;

	(void)state;
	fixture_init(&f);
	add(&f, "main;fib;fib;fib", 3, 0);
	add(&f, "main", 1, 0);
	end_window(&f, &data, DIFF_A);
	row = row_of(&data, DIFF_BY_FUNCTION, "fib");
	assert_int_equal(row->side[DIFF_A].sum[DIFF_TOTAL].value, 3 * PERIOD);
	assert_int_equal(row->side[DIFF_A].sum[DIFF_SELF].value, 3 * PERIOD);
	row = row_of(&data, DIFF_BY_FUNCTION, "main");
	assert_int_equal(row->side[DIFF_A].sum[DIFF_TOTAL].value, 4 * PERIOD);
	assert_int_equal(row->side[DIFF_A].sum[DIFF_SELF].value, PERIOD);
	assert_int_equal(data.table[DIFF_BY_STACK].count, 2);
	/* Its frames, leaf first, are rows of functions. */
	row = &data.table[DIFF_BY_STACK].row[0];
	assert_int_equal(row->frame_count, 4);
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t frame = data.stack_frame[row->first_frame + i];

		assert_ptr_equal(&data.table[DIFF_BY_FUNCTION].row[frame],
				 row_of(&data, DIFF_BY_FUNCTION, i < 3 ? "fib" : "main"));
	}
}

/* A line before the function's start is nonsense; without a start, lines are what they are. */
static void diff_table__lines_without_a_start_are_absolute(void **state)
{
	static const struct {
		const char *name;
		uint32_t start_line, line, shown;
	} cases[] = {{"none", 0, 5, 5},
		     {"before", 20, 12, 12},
		     {"first", 20, 20, 20},
		     {"after", 20, 21, 21}};
	CLEANUP(fixture_release) struct fixture f = {0};
	CLEANUP(diff_data_release) struct diff_data data = {0};

	(void)state;
	fixture_init(&f);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		add_at(&f, cases[i].name, cases[i].start_line, cases[i].line);
	end_window(&f, &data, DIFF_A);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct diff_row *row = row_of(&data, DIFF_BY_LINE, cases[i].name);

		assert_int_equal(diff_row_line(row, DIFF_BY_LINE), cases[i].shown);
		assert_int_equal(row->code.has_start, i >= 2);
	}
}

static void diff_table__many_windows_are_put_together(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	CLEANUP(diff_data_release) struct diff_data data = {0};
	const struct diff_side *side = &data.side[DIFF_A];
	const struct diff_series *series;
	int64_t sum = 0;
	double weight = 0;

	(void)state;
	fixture_init(&f);
	for (int i = 0; i < 600; i++) {
		add(&f, "main;work", 1 + i % 3, 0);
		end_window(&f, &data, DIFF_A);
	}
	series = &row_of(&data, DIFF_BY_FUNCTION, "work")->side[DIFF_A];
	assert_int_equal(side->windows, 600);
	assert_int_equal(side->stride, 4);
	assert_int_equal(side->slot_count, 150);
	assert_int_equal(series->count, 150);
	for (uint32_t i = 0; i < series->count; i++) {
		assert_int_equal(series->cell[i].slot, i);
		sum += series->cell[i].value[DIFF_SELF];
		weight += side->weight[i];
	}
	assert_int_equal(sum, 1200 * PERIOD);
	assert_near(weight, 1200 * PERIOD);
	assert_int_equal(series->sum[DIFF_SELF].samples, 1200);
	for (uint32_t i = 0; i < side->slot_count; i++)
		assert_near(side->duration[i], 4e9);
	series = &row_of(&data, DIFF_BY_FUNCTION, "main")->side[DIFF_A];
	assert_int_equal(series->count, 150);
	assert_int_equal(series->cell[149].slot, 149);
	/* Lines and stacks, too. */
	for (unsigned int by = 0; by < DIFF_TABLES; by++)
		for (uint32_t i = 0; i < data.table[by].count; i++) {
			series = &data.table[by].row[i].side[DIFF_A];
			assert_int_equal(series->count, 150);
			assert_int_equal(series->cell[149].slot, 149);
		}
}

static void diff_data_release__leaves_an_empty_one(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	CLEANUP(diff_data_release) struct diff_data data = {0};

	(void)state;
	fixture_init(&f);
	for (int i = 0; i < 2; i++) {
		add(&f, "main;work", 3, 0);
		end_window(&f, &data, DIFF_A);
		assert_int_equal(data.side[DIFF_A].windows, 1);
		assert_int_equal(data.table[DIFF_BY_FUNCTION].count, 2);
		diff_data_release(&data);
	}
}

/* What the page shows: the time of each row of the profile, however many there are. */
static void diff_table__rows_of_the_profile_have_their_time(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	CLEANUP(diff_data_release) struct diff_data data = {0};
	char stack[32];

	(void)state;
	fixture_init(&f);
	for (int window = 0; window < 4; window++) {
		for (int i = 0; i < 250 * (window + 1) && f.delta_count < 500; i++) {
			snprintf(stack, sizeof(stack), "main;f%04d", 400 * window + i);
			add(&f, stack, 1 + i % 7, 0);
		}
		end_window(&f, &data, DIFF_A);
	}
	add(&f, "main;f0003", 5, 0); /* once more */
	end_window(&f, &data, DIFF_A);
	add(&f, "main;last", 9, 0);
	end_window(&f, &data, DIFF_B);
	for (size_t i = 0; i < f.profile->row_count; i++) {
		const struct profile_row *row = &f.profile->row[i];
		const struct stack *own = &f.profile->stacks.stack[row->stack];
		const uint32_t location = own->location[0];
		const char *name =
			intern_get(f.strings, f.profile->stacks.location[location].name, NULL);
		int64_t expected_a = 0;

		if (name[0] == 'f')
			for (int window = 0; window < 4; window++) {
				int at = atoi(name + 1) - 400 * window;
				int count = window ? 500 : 250;

				if (at >= 0 && at < count)
					expected_a += (1 + at % 7) * PERIOD;
			}
		if (!strcmp(name, "f0003"))
			expected_a += 5 * PERIOD;
		assert_true(i < data.side[DIFF_A].value_count || !expected_a);
		if (i < data.side[DIFF_A].value_count)
			assert_int_equal(data.side[DIFF_A].value[i], expected_a);
		assert_true(i < data.side[DIFF_B].value_count);
		assert_int_equal(data.side[DIFF_B].value[i], strcmp(name, "last") ? 0 : 9 * PERIOD);
	}
}

/* `grown` has `share` of 100 samples a window, which differs a little between windows. */
static void add_windows(struct fixture *f, struct diff_data *data, enum diff_side_id side,
			int64_t share, int windows)
{
	for (int i = 0; i < windows; i++) {
		add(f, "main;grown", share + i % 3, 0);
		add(f, "main;same", 20 + i % 2, 0);
		add(f, "main;rest", 80 - share - i % 3 - i % 2, 0);
		end_window(f, data, side);
	}
}

static void significance__growth_is_found(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	CLEANUP(diff_data_release) struct diff_data data = {0};
	struct diff_row *grown;
	uint32_t tests = 0;

	(void)state;
	fixture_init(&f);
	add_windows(&f, &data, DIFF_A, 10, 12);
	add_windows(&f, &data, DIFF_B, 15, 12);
	assert_int_equal(significance_way(&data), SIGNIFICANCE_BY_RANKS);
	assert_int_equal(significance_of_table(&data, DIFF_BY_FUNCTION, &tests), 0);
	/* Of leaves self is total; main's total is all and cannot change. */
	assert_int_equal(tests, 3);
	assert_true(row_of(&data, DIFF_BY_FUNCTION, "main")->change[DIFF_TOTAL].p < 0);
	grown = row_of(&data, DIFF_BY_FUNCTION, "grown");
	assert_near(grown->change[DIFF_SELF].share[DIFF_A], 0.11);
	assert_near(grown->change[DIFF_SELF].share[DIFF_B], 0.16);
	/* Of 10, 11 and 12 in a hundred, and of 15, 16 and 17: sqrt(8 / 11) / 11 and / 16. */
	assert_near(grown->change[DIFF_SELF].cov[DIFF_A], sqrt(8.0 / 11) / 11);
	assert_near(grown->change[DIFF_SELF].cov[DIFF_B], sqrt(8.0 / 11) / 16);
	assert_true(grown->change[DIFF_SELF].p < 0.001);
	assert_near(grown->change[DIFF_TOTAL].p, grown->change[DIFF_SELF].p);
	assert_near(row_of(&data, DIFF_BY_FUNCTION, "same")->change[DIFF_SELF].p, 1);
	assert_true(row_of(&data, DIFF_BY_FUNCTION, "main")->change[DIFF_SELF].p < 0);
	assert_int_equal(significance_interval(&data, grown, DIFF_SELF), 0);
	assert_true(grown->change[DIFF_SELF].low > 0.04 && grown->change[DIFF_SELF].low < 0.05);
	assert_true(grown->change[DIFF_SELF].high > 0.05 && grown->change[DIFF_SELF].high < 0.06);
}

static void significance__few_windows_and_one_have_a_p(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	CLEANUP(diff_data_release) struct diff_data few = {0}, one = {0};
	struct diff_row *grown;
	uint32_t tests;

	(void)state;
	fixture_init(&f);
	add_windows(&f, &few, DIFF_A, 10, 4);
	add_windows(&f, &few, DIFF_B, 40, 4);
	assert_int_equal(significance_way(&few), SIGNIFICANCE_BY_BOOTSTRAP);
	assert_int_equal(significance_of_table(&few, DIFF_BY_FUNCTION, &tests), 0);
	assert_true(row_of(&few, DIFF_BY_FUNCTION, "grown")->change[DIFF_SELF].p < 0.001);
	add_windows(&f, &one, DIFF_A, 10, 1);
	add_windows(&f, &one, DIFF_B, 60, 1);
	assert_int_equal(significance_way(&one), SIGNIFICANCE_BY_SAMPLES);
	assert_int_equal(significance_of_table(&one, DIFF_BY_FUNCTION, &tests), 0);
	grown = row_of(&one, DIFF_BY_FUNCTION, "grown");
	/* z = 0.5 / sqrt(4 (2 / 100) 0.35 0.65) = 3.7; three tests. */
	assert_true(grown->change[DIFF_SELF].p < 0.01 && grown->change[DIFF_SELF].p > 0.0001);
	assert_int_equal(significance_interval(&one, grown, DIFF_SELF), 0);
	assert_true(grown->change[DIFF_SELF].low > grown->change[DIFF_SELF].high);
}

/* Windows that differ much: four against four, whose mean is off by chance often. */
static void significance__few_windows_that_differ_are_no_proof(void **state)
{
	static const int64_t share[DIFF_SIDES][4] = {{5, 40, 5, 40}, {45, 80, 45, 80}};
	CLEANUP(fixture_release) struct fixture f = {0};
	CLEANUP(diff_data_release) struct diff_data data = {0};
	uint32_t tests;
	double p;

	(void)state;
	fixture_init(&f);
	for (unsigned int s = 0; s < DIFF_SIDES; s++)
		for (unsigned int i = 0; i < 4; i++) {
			add(&f, "main;grown", share[s][i], 0);
			add(&f, "main;rest", 100 - share[s][i], 0);
			end_window(&f, &data, s);
		}
	assert_int_equal(significance_way(&data), SIGNIFICANCE_BY_BOOTSTRAP);
	assert_int_equal(significance_of_table(&data, DIFF_BY_FUNCTION, &tests), 0);
	/* Student's t of 0.4 / sqrt(2 (0.175^2 / 3)) = 2.80 with 6 degrees of freedom: 0.031, and
	 * two rows are tested. */
	p = row_of(&data, DIFF_BY_FUNCTION, "grown")->change[DIFF_SELF].p;
	assert_true(tests == 2 && fabs(p - 0.062) < 0.01);
}

static void significance__windows_without_a_sample_do_not_count(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	CLEANUP(diff_data_release) struct diff_data data = {0};
	uint32_t tests;

	(void)state;
	fixture_init(&f);
	for (int i = 0; i < 10; i++) {
		add(&f, "main;work", 40, 0);
		add(&f, "main", 10, 0);
		end_window(&f, &data, DIFF_A);
		end_window(&f, &data, DIFF_A);
	}
	for (int i = 0; i < 10; i++) {
		add(&f, "main;work", 40, 0);
		add(&f, "main", 10, 0);
		end_window(&f, &data, DIFF_B);
	}
	assert_int_equal(significance_of_table(&data, DIFF_BY_FUNCTION, &tests), 0);
	assert_near(row_of(&data, DIFF_BY_FUNCTION, "work")->change[DIFF_SELF].p, 1);
	assert_near(row_of(&data, DIFF_BY_FUNCTION, "work")->change[DIFF_SELF].cov[DIFF_A], 0);
}

/* 400 functions of 0.2 % each, and one that grows: in equal parts its 2 / C(16, 8) would become
 * 0.06. */
static void significance__many_small_rows_do_not_hide_a_large_one(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	CLEANUP(diff_data_release) struct diff_data data = {0};
	char stack[32];
	uint32_t tests;

	(void)state;
	fixture_init(&f);
	for (int window = 0; window < 16; window++) {
		for (int i = 0; i < 400; i++) {
			snprintf(stack, sizeof(stack), "main;f%03d", i);
			add(&f, stack, 2 + (window + i) % 2, 0);
		}
		add(&f, "main;grown", window < 8 ? 150 + window : 230 + window, 0);
		end_window(&f, &data, window < 8 ? DIFF_A : DIFF_B);
	}
	assert_int_equal(significance_of_table(&data, DIFF_BY_FUNCTION, &tests), 0);
	assert_true(row_of(&data, DIFF_BY_FUNCTION, "grown")->change[DIFF_SELF].p < 0.05);
	assert_true(row_of(&data, DIFF_BY_FUNCTION, "f007")->change[DIFF_SELF].p > 0.05);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(diff_table__code_that_moved_is_one_row),
		cmocka_unit_test(diff_table__recursion_counts_once_in_total),
		cmocka_unit_test(diff_table__lines_without_a_start_are_absolute),
		cmocka_unit_test(diff_table__many_windows_are_put_together),
		cmocka_unit_test(diff_data_release__leaves_an_empty_one),
		cmocka_unit_test(diff_table__rows_of_the_profile_have_their_time),
		cmocka_unit_test(significance__growth_is_found),
		cmocka_unit_test(significance__few_windows_and_one_have_a_p),
		cmocka_unit_test(significance__few_windows_that_differ_are_no_proof),
		cmocka_unit_test(significance__windows_without_a_sample_do_not_count),
		cmocka_unit_test(significance__many_small_rows_do_not_hide_a_large_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
