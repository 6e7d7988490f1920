/* SPDX-License-Identifier: BSD-2-Clause */
#include "../render/render_fixture.h"

#include <math.h>

#include "diff/significance.h"

#define assert_near(a, b) assert_true(fabs((a) - (b)) <= 1e-9)
#define WINDOWS 10U

/* 10 of 20 windows can be chosen in 184,756 ways: two orders of them are as extreme as a complete
 * separation. */
#define P_APART (2.0 / 184756)

/* Two sides of windows, of one profile. */
struct windows {
	struct fixture f;
	struct diff_data data;
	int64_t unit, row_unit; /* value of a sample; 0: as others */
	bool has_no_counts;
};

static struct windows windows_new(void)
{
	struct windows w = {.unit = PERIOD};

	fixture_init(&w.f);
	return w;
}

static void windows_release(struct windows *w)
{
	diff_data_release(&w->data);
	fixture_release(&w->f);
}

/* A window of `total` samples, of which `row` are in the function "row". */
static void add_window(struct windows *w, enum diff_side_id side, int64_t row, int64_t total)
{
	struct profile_window window = {.duration_ns = 1000000000, .delta = w->f.delta};

	if (row)
		add(&w->f, "main;row", row, 0);
	if (row < total)
		add(&w->f, "main;rest", total - row, 0);
	window.delta_count = w->f.delta_count;
	for (size_t i = 0; i < w->f.delta_count; i++) {
		w->f.delta[i].value =
			w->f.delta[i].count * (i || !row || !w->row_unit ? w->unit : w->row_unit);
		window.total += w->f.delta[i].value;
		w->f.delta[i].count = w->has_no_counts ? 0 : w->f.delta[i].count;
	}
	assert_int_equal(diff_data_add_window(&w->data, side, w->f.profile, &window), 0);
	w->f.delta_count = 0;
}

/* The p of "row", which is corrected for two tests: that of "rest" is the same. */
static double p_of_row(struct diff_data *data)
{
	uint32_t tests = 0;

	assert_int_equal(significance_of_table(data, DIFF_BY_FUNCTION, &tests), 0);
	assert_int_equal(tests, 2);
	for (uint32_t i = 0; i < data->table[DIFF_BY_FUNCTION].count; i++) {
		const struct diff_row *row = &data->table[DIFF_BY_FUNCTION].row[i];

		if (!strcmp(intern_get(data->profile->strings, row->code.name, NULL), "row"))
			return row->change[DIFF_SELF].p;
	}
	fail();
	return 0;
}

static void significance_way__depends_on_windows_in_which_something_ran(void **state)
{
	static const struct {
		uint32_t used_a, used_b;
		int64_t samples_a, samples_b;
		enum significance_way way;
	} cases[] = {
		{DIFF_MIN_WINDOWS, DIFF_MIN_WINDOWS, 1, 1, SIGNIFICANCE_BY_RANKS},
		{DIFF_MIN_WINDOWS - 1, DIFF_MIN_WINDOWS, 1, 1, SIGNIFICANCE_BY_BOOTSTRAP},
		{DIFF_MIN_WINDOWS, DIFF_MIN_WINDOWS - 1, 1, 1, SIGNIFICANCE_BY_BOOTSTRAP},
		{2, 2, 1, 1, SIGNIFICANCE_BY_BOOTSTRAP},
		{1, 2, 1, 1, SIGNIFICANCE_BY_SAMPLES},
		{2, 1, 1, 1, SIGNIFICANCE_BY_SAMPLES},
		{DIFF_MIN_WINDOWS, 1, 1, 1, SIGNIFICANCE_BY_SAMPLES},
		{1, 1, 1, 1, SIGNIFICANCE_BY_SAMPLES},
		{1, 1, 0, 1, SIGNIFICANCE_BY_NONE},
		{1, 1, 1, 0, SIGNIFICANCE_BY_NONE},
		{0, 0, 0, 0, SIGNIFICANCE_BY_NONE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct diff_data data = {0};

		/* Windows without a sample stand between the others. */
		for (uint32_t k = 0; k < cases[i].used_a; k++)
			data.side[DIFF_A].weight[2 * k + 1] = 5;
		for (uint32_t k = 0; k < cases[i].used_b; k++)
			data.side[DIFF_B].weight[2 * k] = 5;
		data.side[DIFF_A].slot_count = data.side[DIFF_B].slot_count =
			2 * DIFF_MIN_WINDOWS + 1;
		data.side[DIFF_A].all.samples = cases[i].samples_a;
		data.side[DIFF_B].all.samples = cases[i].samples_b;
		if (significance_way(&data) != cases[i].way)
			fail_msg("case %zu: %u", i, significance_way(&data));
	}
}

/* One in ten windows may be without the row.  Then the time above what the mean share predicts is
 * ranked: a window in which next to nothing ran is in the middle.  In more windows its share of
 * nothing would be the lowest.  What is said of a row holds of all else, too: one in ten windows
 * may be without other samples. */
static void significance__windows_in_which_little_ran_say_little(void **state)
{
	(void)state;
	for (unsigned int without = 0; without <= 3; without++)
		for (unsigned int is_rest = 0; is_rest < 2; is_rest++) {
			CLEANUP(windows_release) struct windows w = windows_new();
			double p;

			for (unsigned int i = 0; i < WINDOWS; i++) {
				unsigned int row = 91 + i, total = 1000;

				add_window(&w, DIFF_A, is_rest ? total - row : row, total);
				row = i >= WINDOWS - without ? 0 : 150 + i;
				total = i >= WINDOWS - without ? 10 : 1000;
				add_window(&w, DIFF_B, is_rest ? total - row : row, total);
			}
			p = p_of_row(&w.data);
			if (without <= 2)
				assert_near(p, 2 * P_APART);
			else
				assert_true(p > 0.1);
		}
}

/* The same share in a tenth of the windows; ten times as much ran on side B. */
static void significance__row_that_few_windows_have_is_judged_by_its_shares(void **state)
{
	CLEANUP(windows_release) struct windows w = windows_new();

	(void)state;
	for (unsigned int i = 0; i < WINDOWS; i++) {
		add_window(&w, DIFF_A, i == 4 ? 50 : 0, 500);
		add_window(&w, DIFF_B, i == 7 ? 500 : 0, 5000);
	}
	assert_near(p_of_row(&w.data), 1);
}

/* A row of fewer samples than 20 on both sides together is not tested. */
static void significance__few_samples_are_not_tested(void **state)
{
	(void)state;
	for (int64_t samples = DIFF_MIN_SAMPLES - 1; samples <= DIFF_MIN_SAMPLES + 1; samples++) {
		CLEANUP(windows_release) struct windows w = windows_new();
		const struct diff_table *table = &w.data.table[DIFF_BY_FUNCTION];
		uint32_t tests;

		for (unsigned int i = 0; i < WINDOWS; i++) {
			add_window(&w, DIFF_A, i ? 1 : samples - 19, 100);
			add_window(&w, DIFF_B, 1, 100);
		}
		assert_int_equal(DIFF_MIN_SAMPLES, 20);
		assert_int_equal(significance_of_table(&w.data, DIFF_BY_FUNCTION, &tests), 0);
		for (uint32_t i = 0; i < table->count; i++) {
			const char *name =
				intern_get(w.data.profile->strings, table->row[i].code.name, NULL);

			if (!strcmp(name, "row"))
				assert_int_equal(table->row[i].change[DIFF_SELF].p >= 0,
						 samples >= 20);
		}
	}
}

/* As many windows as ranks need, and one less. */
static void significance__ranks_need_eight_windows_a_side(void **state)
{
	(void)state;
	for (unsigned int count = DIFF_MIN_WINDOWS - 1; count <= DIFF_MIN_WINDOWS; count++) {
		CLEANUP(windows_release) struct windows w = windows_new();
		double p;

		for (unsigned int i = 0; i < count; i++)
			add_window(&w, DIFF_A, 100 + i, 1000);
		for (unsigned int i = 0; i < DIFF_MIN_WINDOWS; i++)
			add_window(&w, DIFF_B, 500 + i, 1000);
		p = p_of_row(&w.data);
		/* 8 of 16 in 12,870 ways; a t-test of windows that hardly differ says far less than
		 * that. */
		if (count == DIFF_MIN_WINDOWS)
			assert_near(p, 2 * 2.0 / 12870);
		else
			assert_true(p < 1e-6);
	}
}

/* A window of 2,000 samples; names and samples end with a NULL. */
struct part {
	const char *path;
	int64_t samples;
};

static void add_parts(struct windows *w, enum diff_side_id side, const struct part *part)
{
	struct profile_window window = {.duration_ns = 1000000000};
	int64_t left = 2000;

	for (; part->path; part++) {
		if (part->samples)
			add(&w->f, part->path, part->samples, 0);
		left -= part->samples;
	}
	add(&w->f, "main;rest", left, 0);
	window.delta = w->f.delta;
	window.delta_count = w->f.delta_count;
	window.total = 2000 * PERIOD;
	assert_int_equal(diff_data_add_window(&w->data, side, w->f.profile, &window), 0);
	w->f.delta_count = 0;
}

/* Self and total of a leaf are one test.  Rows whose values differ in a later window, in one side,
 * in the window that has none, or in the side that has all are tests of their own, though equally
 * extreme. */
static void significance__rows_with_other_values_are_other_tests(void **state)
{
	CLEANUP(windows_release) struct windows w = windows_new();
	uint32_t tests;

	(void)state;
	for (unsigned int i = 0; i < WINDOWS; i++) {
		const struct part a[] = {{"main;first", 100 + i},
					 {"main;other_side", 100 + i},
					 {"main;later", 100 + i},
					 {"main;no_third", i == 3 ? 0 : 50},
					 {"main;no_fourth", i == 4 ? 0 : 50},
					 {"main;before", 30},
					 {NULL, 0}};

		add_parts(&w, DIFF_A, a);
	}
	for (unsigned int i = 0; i < WINDOWS; i++) {
		const struct part b[] = {{"main;first", 200 + i},
					 {"main;other_side", 300 + i},
					 {"main;later", i == 5 ? 250 : 200 + i},
					 {"main;no_third", 80},
					 {"main;no_fourth", 80},
					 {"main;after", 30},
					 {NULL, 0}};

		add_parts(&w, DIFF_B, b);
	}
	assert_int_equal(significance_of_table(&w.data, DIFF_BY_FUNCTION, &tests), 0);
	assert_int_equal(tests, 8);
}

/* Rows with the same values in the same windows are one test. */
static void significance__rows_with_the_same_values_are_one_test(void **state)
{
	CLEANUP(windows_release) struct windows w = windows_new();
	uint32_t tests;

	(void)state;
	for (unsigned int i = 0; i < 2 * WINDOWS; i++) {
		const struct part part[] = {
			{"main;twin", 100 + i}, {"main;other_twin", 100 + i}, {NULL, 0}};

		add_parts(&w, i < WINDOWS ? DIFF_A : DIFF_B, part);
	}
	assert_int_equal(significance_of_table(&w.data, DIFF_BY_FUNCTION, &tests), 0);
	assert_int_equal(tests, 2);
}

/* Twins between others, all of which are equally extreme: what is equal is found wherever it
 * stands. */
static void significance__equal_rows_are_one_test_wherever_they_stand(void **state)
{
	CLEANUP(windows_release) struct windows w = windows_new();
	uint32_t tests;

	(void)state;
	for (unsigned int i = 0; i < 2 * WINDOWS; i++) {
		struct part part[13] = {{NULL, 0}};
		char name[12][16];

		/* Kinds 0 to 3 in turns, three of each. */
		for (unsigned int k = 0; k < 12; k++) {
			snprintf(name[k], sizeof(name[k]), "main;row%u", k);
			part[k] = (struct part){name[k], (i < WINDOWS ? 20 : 60) + k % 4 * 10 +
								 (i + k % 4 * 3) % 10};
		}
		add_parts(&w, i < WINDOWS ? DIFF_A : DIFF_B, part);
	}
	assert_int_equal(significance_of_table(&w.data, DIFF_BY_FUNCTION, &tests), 0);
	/* and the rest of main */
	assert_int_equal(tests, 4 + 1);
}

/* A table that fills its memory to the last row. */
static void significance__each_row_of_a_full_table_is_tested(void **state)
{
	CLEANUP(windows_release) struct windows w = windows_new();
	const struct diff_table *table = &w.data.table[DIFF_BY_FUNCTION];
	uint32_t tests, functions = 0;

	(void)state;
	for (unsigned int i = 0; i < 2 * WINDOWS; i++) {
		struct profile_window window = {.duration_ns = 1000000000, .delta = w.f.delta};
		char name[32];

		/* The first window has as many as it takes. */
		for (uint32_t k = 0; i ? k < functions : k < 8 || table->count < table->capacity;
		     k++) {
			snprintf(name, sizeof(name), "f%03u", k);
			add(&w.f, name, 10 + k % 3 + (i >= WINDOWS), 0);
			if (!i) {
				window.total += w.f.delta[0].value;
				window.delta_count = 1;
				assert_int_equal(diff_data_add_window(&w.data, DIFF_A, w.f.profile,
								      &window),
						 0);
				window.total = 0;
				w.f.delta_count = 0;
				functions = k + 1;
			}
		}
		if (!i)
			continue;
		window.delta_count = w.f.delta_count;
		for (size_t k = 0; k < w.f.delta_count; k++)
			window.total += w.f.delta[k].value;
		assert_int_equal(diff_data_add_window(&w.data, i < WINDOWS ? DIFF_A : DIFF_B,
						      w.f.profile, &window),
				 0);
		w.f.delta_count = 0;
	}
	assert_int_equal(table->count, table->capacity);
	assert_int_equal(significance_of_table(&w.data, DIFF_BY_FUNCTION, &tests), 0);
	for (uint32_t i = 0; i < table->count; i++)
		assert_true(table->row[i].change[DIFF_SELF].p >= 0);
}

/* As many windows as there are slots. */
static void significance__all_slots_may_be_used(void **state)
{
	CLEANUP(windows_release) struct windows w = windows_new();
	struct diff_change change;

	(void)state;
	for (unsigned int i = 0; i < DIFF_MAX_SLOTS; i++) {
		add_window(&w, DIFF_A, 100, 1000);
		add_window(&w, DIFF_B, 100, 1000);
	}
	assert_int_equal(w.data.side[DIFF_A].slot_count, DIFF_MAX_SLOTS);
	assert_int_equal(significance_way(&w.data), SIGNIFICANCE_BY_RANKS);
	assert_near(p_of_row(&w.data), 1);
	assert_int_equal(significance_of_all(&w.data, 1e6, &change), 0);
	assert_near(change.share[DIFF_A], 10);
	assert_near(change.share[DIFF_B], 10);
	assert_near(change.p, 1);
}

/* Half of the windows have the row, a tenth of what ran in them.  In those of B ten times as much
 * ran. */
static void significance__shares_are_ranked_where_many_windows_lack_the_row(void **state)
{
	CLEANUP(windows_release) struct windows w = windows_new();

	(void)state;
	for (unsigned int i = 0; i < WINDOWS; i++) {
		add_window(&w, DIFF_A, i % 2 ? 50 : 0, 500);
		add_window(&w, DIFF_B, i % 2 ? 500 : 0, 5000);
	}
	assert_near(p_of_row(&w.data), 1);
}

/* Welch's t of 0.1 and 0.3 against six windows near 0.7 is about 5: with hardly more than the one
 * degree of freedom of the two windows that is p = 0.1, with five 0.004. */
static void significance__freedom_is_that_of_the_side_that_varies(void **state)
{
	(void)state;
	for (unsigned int few = DIFF_A; few < DIFF_SIDES; few++) {
		CLEANUP(windows_release) struct windows w = windows_new();
		double p;

		for (unsigned int s = DIFF_A; s < DIFF_SIDES; s++)
			for (unsigned int i = 0; i < (s == few ? 2 : 6); i++)
				add_window(&w, s, s == few ? 10000 + 20000 * i : 69000 + 400 * i,
					   100000);
		p = p_of_row(&w.data) / 2;
		if (p < 0.08 || p > 0.2)
			fail_msg("side %u: p = %g", few, p);
	}
}

/* Profiles of values without numbers of samples: nobody knows how many there were. */
static void significance__sums_without_samples_are_tested(void **state)
{
	static const struct {
		int64_t samples_a, samples_b;
		bool is_tested;
	} cases[] = {{0, 0, true}, {1, 0, false}, {0, 1, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CLEANUP(windows_release) struct windows w = windows_new();
		const struct diff_table *table = &w.data.table[DIFF_BY_FUNCTION];
		uint32_t tests;

		for (unsigned int k = 0; k < DIFF_MIN_WINDOWS; k++) {
			add_window(&w, DIFF_A, 1, 2);
			add_window(&w, DIFF_B, 1, 2);
		}
		w.data.side[DIFF_A].all.samples = cases[i].samples_a;
		w.data.side[DIFF_B].all.samples = cases[i].samples_b;
		for (uint32_t r = 0; r < table->count; r++)
			for (unsigned int side = 0; side < DIFF_SIDES; side++)
				for (unsigned int c = 0; c < DIFF_COLUMNS; c++)
					table->row[r].side[side].sum[c].samples = 0;
		assert_int_equal(significance_of_table(&w.data, DIFF_BY_FUNCTION, &tests), 0);
		assert_int_equal(tests > 0, cases[i].is_tested);
	}
}

/* By hand: 100 of 1,000 and 400 of 2,000 samples are 500 of 3,000 together, so that counting alone
 * gives 5 / 36 / 1,000 and 5 / 36 / 2,000 of variance.  One window a side may be a burst: four
 * times as much. Two that are alike are taken as they are.  The unit says nothing. */
static void significance__few_windows_vary_as_counting_does(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		CLEANUP(windows_release) struct windows w = windows_new();
		unsigned int count = 1 + i / 2;
		double variance = (count == 1 ? 4 : 1) * 5 / 36.0 * (1 / 1000.0 + 1 / 2000.0);

		w.unit = i % 2 ? 1 : PERIOD;
		for (unsigned int k = 0; k < count; k++)
			add_window(&w, DIFF_A, 100 / count, 1000 / count);
		for (unsigned int k = 0; k < count; k++)
			add_window(&w, DIFF_B, 400 / count, 2000 / count);
		assert_near(p_of_row(&w.data), 2 * erfc(0.1 / sqrt(variance) / M_SQRT2));
	}
}

/* By hand: 1 of 1 and 200 of 400 samples are 201 of 401 together. */
static void significance__single_sample_of_a_side_varies_most(void **state)
{
	CLEANUP(windows_release) struct windows w = windows_new();
	double variance = 4 * 201.0 * 200 / 401 / 401 * (1 + 1 / 400.0);

	(void)state;
	w.unit = 1;
	add_window(&w, DIFF_A, 1, 1);
	add_window(&w, DIFF_B, 200, 400);
	assert_near(p_of_row(&w.data), fmin(2 * erfc(0.5 / sqrt(variance) / M_SQRT2), 1));
}

/* Values without numbers of samples, and windows that are alike: nothing says how much they
 * vary. */
static void significance__alike_windows_without_counts_prove_nothing(void **state)
{
	CLEANUP(windows_release) struct windows w = windows_new();

	(void)state;
	w.has_no_counts = true;
	for (unsigned int i = 0; i < 4; i++)
		add_window(&w, i % 2 ? DIFF_A : DIFF_B, i % 2 ? 100 : 400, 1000);
	assert_near(p_of_row(&w.data), 1);
}

/* As many windows of the least value as ranks need. */
static void significance__window_of_one_unit_is_one(void **state)
{
	CLEANUP(windows_release) struct windows w = windows_new();
	double p;

	(void)state;
	w.unit = 1;
	for (unsigned int i = 0; i < WINDOWS; i++) {
		add_window(&w, DIFF_A, i % 2, 1);
		add_window(&w, DIFF_B, 150 + i, 1000);
	}
	p = p_of_row(&w.data);
	assert_int_equal(significance_way(&w.data), SIGNIFICANCE_BY_RANKS);
	assert_true(p > 0.1 && p <= 1);
}

/* A stack's total would be that of its leaf. */
static void significance__stacks_are_tested_by_self_alone(void **state)
{
	CLEANUP(windows_release) struct windows w = windows_new();
	const struct diff_table *table = &w.data.table[DIFF_BY_STACK];
	uint32_t tests;

	(void)state;
	for (unsigned int i = 0; i < WINDOWS; i++) {
		add_window(&w, DIFF_A, 100 + i, 1000);
		add_window(&w, DIFF_B, 500 + i, 1000);
	}
	assert_int_equal(significance_of_table(&w.data, DIFF_BY_STACK, &tests), 0);
	assert_int_equal(tests, 2);
	assert_int_equal(table->count, 2);
	for (uint32_t i = 0; i < table->count; i++) {
		assert_near(table->row[i].change[DIFF_SELF].p, 2 * P_APART);
		assert_true(table->row[i].change[DIFF_TOTAL].p < 0);
	}
}

/* By hand: 800 of 1,000 units on side A, 9,000 of 10,000 on side B, where a sample of the row is
 * worth ten.  A's events are so small beside those of both sides that nothing is left of its
 * variance: (1 - 2s) s m + s^2 M = -5.7 for s = 9800 / 11000, m = 90800 / 9800, M = 1. */
static void significance__variance_is_never_below_0(void **state)
{
	CLEANUP(windows_release) struct windows w = windows_new();
	double s = 9800.0 / 11000, m = 90800.0 / 9800, all = 91000.0 / 10000;
	double variance = 4 * ((1 - 2 * s) * s * m + s * s * all) / 10000;

	(void)state;
	w.unit = 1;
	add_window(&w, DIFF_A, 800, 1000);
	w.row_unit = 10;
	add_window(&w, DIFF_B, 900, 1900);
	assert_near(p_of_row(&w.data), 2 * erfc(0.1 / sqrt(variance) / M_SQRT2));
}

/* One sample in three of the windows is one, however little ran. */
static void significance__window_with_one_unit_has_the_row(void **state)
{
	CLEANUP(windows_release) struct windows w = windows_new();

	(void)state;
	w.unit = 1;
	for (unsigned int i = 0; i < WINDOWS; i++) {
		add_window(&w, DIFF_A, 91 + i, 1000);
		add_window(&w, DIFF_B, i < 3 ? 1 : 150 + i, i < 3 ? 10 : 1000);
	}
	assert_near(p_of_row(&w.data), 2 * P_APART);
}

/* Two of nineteen are more than a tenth. */
static void significance__tenth_of_the_windows_is_rounded_down(void **state)
{
	CLEANUP(windows_release) struct windows w = windows_new();

	(void)state;
	for (unsigned int i = 0; i < WINDOWS; i++) {
		if (i)
			add_window(&w, DIFF_A, 91 + i, 1000);
		add_window(&w, DIFF_B, i < 2 ? 0 : 150 + i, i < 2 ? 10 : 1000);
	}
	assert_true(p_of_row(&w.data) > 0.005);
}

/* Nothing ran in the first windows. */
static void significance__windows_without_weight_have_no_score(void **state)
{
	CLEANUP(windows_release) struct windows w = windows_new();

	(void)state;
	for (unsigned int i = 0; i < WINDOWS + 3; i++) {
		add_window(&w, DIFF_A, i < 3 ? 0 : 100 + i, i < 3 ? 0 : 1000);
		add_window(&w, DIFF_B, i < 3 ? 0 : 500 + i, i < 3 ? 0 : 1000);
	}
	assert_near(p_of_row(&w.data), 2 * P_APART);
}

/* Rows with the same values whose samples are worth more vary more. */
static void significance__rows_with_other_counts_are_other_tests(void **state)
{
	static const int64_t count[] = {100, 10, 100, 10, 50, 100, 10};
	CLEANUP(windows_release) struct windows w = windows_new();
	uint32_t tests;

	(void)state;
	for (unsigned int s = DIFF_A; s < DIFF_SIDES; s++) {
		struct profile_window window = {.duration_ns = 1000000000, .delta = w.f.delta};

		for (unsigned int i = 0; i < ARRAY_SIZE(count); i++) {
			char name[16];

			snprintf(name, sizeof(name), "row%u", i);
			add(&w.f, name, 1, 0);
			w.f.delta[i].value = s ? 300 : 200;
			w.f.delta[i].count = count[i];
			window.total += w.f.delta[i].value;
		}
		add(&w.f, "rest", 1000, 0);
		window.delta_count = w.f.delta_count;
		window.total += 1000 * PERIOD;
		assert_int_equal(diff_data_add_window(&w.data, s, w.f.profile, &window), 0);
		w.f.delta_count = 0;
	}
	assert_int_equal(significance_of_table(&w.data, DIFF_BY_FUNCTION, &tests), 0);
	/* 100, 50, 10 and the rest */
	assert_int_equal(tests, 4);
}

/* The shares of two windows differ by more than counting explains: 0 and 0.2, 0.2 and 0.6. */
static void significance__two_windows_that_differ_prove_little(void **state)
{
	CLEANUP(windows_release) struct windows w = windows_new();

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		add_window(&w, DIFF_A, i * 2000, 10000);
	for (unsigned int i = 0; i < 2; i++)
		add_window(&w, DIFF_B, 2000 + i * 4000, 10000);
	assert_true(p_of_row(&w.data) > 0.1);
}

/* So much that p is 0: both rows are tests all the same. */
static void significance__what_cannot_be_chance_is_a_test(void **state)
{
	CLEANUP(windows_release) struct windows w = windows_new();

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		add_window(&w, DIFF_A, 10000, 100000);
		add_window(&w, DIFF_B, 90000, 100000);
	}
	assert_true(p_of_row(&w.data) == 0);
}

/* 87 and 174 samples of PERIOD units, each 1 ms, in 8 windows of 1 s. */
static void fill_all(struct windows *w, unsigned int a_count, unsigned int b_count)
{
	for (unsigned int i = 0; i < a_count; i++)
		add_window(w, DIFF_A, 1, 10 + i % 3);
	for (unsigned int i = 0; i < b_count; i++)
		add_window(w, DIFF_B, 1, 20 + 2 * (i % 3));
}

static void significance_of_all__is_time_on_the_cpu_by_time_on_the_clock(void **state)
{
	CLEANUP(windows_release) struct windows w = windows_new();
	struct diff_change change;

	(void)state;
	fill_all(&w, 8, 8);
	assert_int_equal(significance_of_all(&w.data, 1e6, &change), 0);
	assert_near(change.share[DIFF_A], 87 * 0.01 / 8);
	assert_near(change.share[DIFF_B], 174 * 0.01 / 8);
	/* By Python: statistics.stdev([10, 11, 12, 10, 11, 12, 10, 11]) / (87 / 8); those of B are
	 * twice as large. */
	assert_true(fabs(change.cov[DIFF_A] - 0.0767377) < 1e-6);
	assert_true(fabs(change.cov[DIFF_B] - 0.0767377) < 1e-6);
	assert_near(change.p, 2.0 / 12870);
	/* 0.10875 +- 1.96 sqrt(0.00276^2 + 0.00552^2), of the 8 windows' standard errors. */
	assert_true(change.low > 0.094 && change.low < 0.099);
	assert_true(change.high > 0.118 && change.high < 0.124);
	/* A window without a duration is none: seven are too few for ranks. */
	w.data.side[DIFF_A].duration[3] = 0;
	assert_int_equal(significance_of_all(&w.data, 1e6, &change), 0);
	assert_near(change.share[DIFF_A], 77 * 0.01 / 7);
	assert_true(change.p < 0);
	assert_true(change.low < change.high);
}

/* Twice as much ran in windows that were twice as long. */
static void significance_of_all__ranks_are_those_of_the_rate(void **state)
{
	CLEANUP(windows_release) struct windows w = windows_new();
	struct diff_change change;

	(void)state;
	fill_all(&w, 8, 8);
	for (unsigned int i = 0; i < 8; i++)
		w.data.side[DIFF_B].duration[i] *= 2;
	assert_int_equal(significance_of_all(&w.data, 1e6, &change), 0);
	assert_near(change.share[DIFF_A], change.share[DIFF_B]);
	assert_near(change.p, 1);
}

static void significance_of_all__single_window_has_no_interval(void **state)
{
	static const struct {
		unsigned int a, b;
		bool has_interval;
	} cases[] = {{1, 1, false}, {1, 2, false}, {2, 1, false}, {2, 2, true}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CLEANUP(windows_release) struct windows w = windows_new();
		struct diff_change change;

		fill_all(&w, cases[i].a, cases[i].b);
		assert_int_equal(significance_of_all(&w.data, 1e6, &change), 0);
		assert_int_equal(change.low <= change.high, cases[i].has_interval);
		assert_true(change.p < 0);
		assert_near(change.share[DIFF_A], cases[i].a == 1 ? 0.1 : 0.105);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(significance_way__depends_on_windows_in_which_something_ran),
		cmocka_unit_test(significance__windows_in_which_little_ran_say_little),
		cmocka_unit_test(significance__row_that_few_windows_have_is_judged_by_its_shares),
		cmocka_unit_test(significance__few_samples_are_not_tested),
		cmocka_unit_test(significance__ranks_need_eight_windows_a_side),
		cmocka_unit_test(significance__rows_with_other_values_are_other_tests),
		cmocka_unit_test(significance__rows_with_the_same_values_are_one_test),
		cmocka_unit_test(significance__equal_rows_are_one_test_wherever_they_stand),
		cmocka_unit_test(significance__each_row_of_a_full_table_is_tested),
		cmocka_unit_test(significance__all_slots_may_be_used),
		cmocka_unit_test(significance__shares_are_ranked_where_many_windows_lack_the_row),
		cmocka_unit_test(significance__freedom_is_that_of_the_side_that_varies),
		cmocka_unit_test(significance__sums_without_samples_are_tested),
		cmocka_unit_test(significance__few_windows_vary_as_counting_does),
		cmocka_unit_test(significance__single_sample_of_a_side_varies_most),
		cmocka_unit_test(significance__alike_windows_without_counts_prove_nothing),
		cmocka_unit_test(significance__window_of_one_unit_is_one),
		cmocka_unit_test(significance__stacks_are_tested_by_self_alone),
		cmocka_unit_test(significance__variance_is_never_below_0),
		cmocka_unit_test(significance__window_with_one_unit_has_the_row),
		cmocka_unit_test(significance__tenth_of_the_windows_is_rounded_down),
		cmocka_unit_test(significance__windows_without_weight_have_no_score),
		cmocka_unit_test(significance__rows_with_other_counts_are_other_tests),
		cmocka_unit_test(significance__two_windows_that_differ_prove_little),
		cmocka_unit_test(significance__what_cannot_be_chance_is_a_test),
		cmocka_unit_test(significance_of_all__is_time_on_the_cpu_by_time_on_the_clock),
		cmocka_unit_test(significance_of_all__ranks_are_those_of_the_rate),
		cmocka_unit_test(significance_of_all__single_window_has_no_interval),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
