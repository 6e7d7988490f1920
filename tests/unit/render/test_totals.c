/* SPDX-License-Identifier: BSD-2-Clause */
#include "render_fixture.h"

#include <math.h>

#include "render/totals.h"

static void end_window(struct fixture *f, struct totals *totals)
{
	struct profile_window window = {.duration_ns = 1000000000,
					.delta = f->delta,
					.delta_count = f->delta_count,
					.counts_effective = f->counts_effective};

	for (size_t i = 0; i < f->delta_count; i++)
		window.total += f->delta[i].value;
	assert_int_equal(totals_add_window(totals, f->profile, &window), 0);
	f->delta_count = 0;
}

static const struct totals_row *row_of(const struct totals *totals, const char *name)
{
	for (uint32_t i = 0; i < totals->count; i++)
		if (!strcmp(code_text(&totals->code, totals->code.code[totals->row[i].code].name),
			    name))
			return &totals->row[i];
	fail_msg("no row %s", name);
	return NULL;
}

static void begin(struct fixture *f, struct totals *totals, enum code_by by)
{
	const struct totals_options options = {.code_by = by};

	fixture_init(f);
	totals_init(totals, &options);
}

static void totals__recursion_counts_once_in_total(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	CLEANUP(totals_release) struct totals totals;

	(void)state;
	begin(&f, &totals, CODE_BY_FUNCTION);
	add(&f, "main;fib;fib;fib", 3, 0);
	add(&f, "main", 1, 0);
	end_window(&f, &totals);
	assert_int_equal(row_of(&totals, "fib")->total.value, 30);
	assert_int_equal(row_of(&totals, "fib")->self.value, 30);
	assert_int_equal(row_of(&totals, "main")->total.value, 40);
	assert_int_equal(row_of(&totals, "main")->self.value, 10);
	assert_int_equal(row_of(&totals, "main")->total.samples, 4);
}

static void totals__share_of_both_signs_is_of_the_base(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	CLEANUP(totals_release) struct totals totals;

	(void)state;
	begin(&f, &totals, CODE_BY_FUNCTION);
	add(&f, "main;b", 6, 0);
	add(&f, "main;a", -5, 0);
	end_window(&f, &totals);
	f.profile->signs = (struct profile_signs){.all = 110, .base = 50, .has_negative = true};
	assert_true(totals_share(&totals, &row_of(&totals, "a")->self) == -1);
	assert_true(totals_share(&totals, &row_of(&totals, "main")->total) == 0.2);
	assert_true(totals_share_error(&totals, &row_of(&totals, "a")->self) < 0);
	assert_int_equal(totals_wanted_ns(&totals, &row_of(&totals, "a")->self, 0.01), 0);
}

static void end_level(struct fixture *f, struct totals *totals, uint64_t start_ns)
{
	struct profile_window window = {.start_wall_ns = start_ns,
					.duration_ns = 1000000000,
					.delta = f->delta,
					.delta_count = f->delta_count,
					.is_level = true};

	for (size_t i = 0; i < f->delta_count; i++)
		window.total += f->delta[i].value;
	assert_int_equal(totals_add_window(totals, f->profile, &window), 0);
	f->delta_count = 0;
}

static void totals__of_maxima_are_those_of_the_largest_window(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	CLEANUP(totals_release) struct totals totals;
	static const unsigned int counts[] = {3, 5, 4};

	(void)state;
	begin(&f, &totals, CODE_BY_FUNCTION);
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		struct profile_window window = {.duration_ns = 1000000000, .is_most = true};

		add(&f, "main;a", counts[i], 0);
		window.delta = f.delta;
		window.delta_count = f.delta_count;
		window.total = f.delta[0].value;
		assert_int_equal(totals_add_window(&totals, f.profile, &window), 0);
		f.delta_count = 0;
	}
	assert_int_equal(row_of(&totals, "a")->self.value, 50);
	assert_int_equal(totals.all.value, 50);
}

static void totals__of_levels_are_those_of_the_last_window(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	CLEANUP(totals_release) struct totals totals;

	(void)state;
	begin(&f, &totals, CODE_BY_FUNCTION);
	add(&f, "main;a", 3, 0);
	add(&f, "main;b", 1, 0);
	end_level(&f, &totals, 100);
	add(&f, "main;a", 5, 0);
	end_level(&f, &totals, 300);
	add(&f, "main;a", 7, 0);
	end_level(&f, &totals, 200);
	end_level(&f, &totals, 400); /* a window without any row is none */
	assert_int_equal(row_of(&totals, "a")->self.value, 50);
	assert_int_equal(row_of(&totals, "main")->total.value, 50);
	assert_int_equal(row_of(&totals, "b")->self.value, 0);
	assert_int_equal(totals.all.value, 50);
	assert_int_equal(totals.windows, 1);
	add(&f, "main;b", 2, 0);
	end_level(&f, &totals, 300);
	assert_int_equal(totals.all.value, 70);
	assert_int_equal(row_of(&totals, "b")->total.value, 20);
}

static void totals__one_window_has_the_error_of_its_samples(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	CLEANUP(totals_release) struct totals totals;
	double error;

	(void)state;
	begin(&f, &totals, CODE_BY_FUNCTION);
	add(&f, "main;a", 25, 0);
	add(&f, "main;b", 75, 0);
	end_window(&f, &totals);
	/* Binomial: sqrt(0.25 * 0.75 / 100). */
	error = totals_share_error(&totals, &row_of(&totals, "a")->self);
	assert_true(fabs(error - 0.0433012) < 1e-6);
	assert_true(fabs(totals_share_error(&totals, &row_of(&totals, "b")->self) - error) < 1e-9);
	assert_true(totals_share_error(&totals, &row_of(&totals, "main")->total) < 1e-9);
	/* (4.33 / 1)^2 times as long. */
	assert_int_equal(totals_wanted_ns(&totals, &row_of(&totals, "a")->self, 0.01) / 100000000,
			 187);
}

/* The same samples, if each stood for others: as many as there are say how far off their own spread
 * is. */
static void totals__few_that_stand_for_others_have_a_larger_error(void **state)
{
	static const struct {
		uint32_t a, b;
		double error;
	} of[] = {
		{25, 75, 0.0433012 * 1.0290}, /* t of 42.9 degrees of freedom is 2.0168, not 1.96 */
		{2, 2, 0.25 * 1.4163},	      /* of 4: 2.7764 */
		{1, 1, 0.5},		      /* of a single event: sqrt(p (1 - p)) */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		CLEANUP(fixture_release) struct fixture f = {0};
		CLEANUP(totals_release) struct totals totals;
		double error;

		begin(&f, &totals, CODE_BY_FUNCTION);
		f.counts_effective = true;
		add(&f, "main;a", of[i].a, 0);
		add(&f, "main;b", of[i].b, 0);
		end_window(&f, &totals);
		error = totals_share_error(&totals, &row_of(&totals, "a")->self);
		assert_true(fabs(error / of[i].error - 1) < 0.001);
	}
}

static void totals__many_windows_have_the_error_of_their_spread(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	CLEANUP(totals_release) struct totals totals;

	(void)state;
	begin(&f, &totals, CODE_BY_FUNCTION);
	for (int i = 0; i < 10; i++) {
		add(&f, "main;a", i % 2 ? 40 : 60, 0);
		add(&f, "main;b", i % 2 ? 60 : 40, 0);
		end_window(&f, &totals);
	}
	/* Ten shares of 0.4 and 0.6: their deviation is 0.1054, by sqrt(10) 0.0333. */
	assert_true(fabs(totals_share_error(&totals, &row_of(&totals, "a")->self) - 0.0333333) <
		    1e-6);
	assert_int_equal(totals.windows, 10);
	assert_int_equal(totals.duration_ns, 10000000000);
}

static void totals__lines_of_one_function_are_apart(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	CLEANUP(totals_release) struct totals totals;

	(void)state;
	begin(&f, &totals, CODE_BY_LINE);
	add(&f, "main:3;a:7", 2, 0);
	add(&f, "main:3;a:8", 3, 0);
	end_window(&f, &totals);
	assert_int_equal(totals.count, 3);
}

static void totals__by_group_sums_processes(void **state)
{
	const struct totals_options options = {.by = TOTALS_BY_GROUP,
					       .group_by = {.keys = GROUP_BY_PROCESS}};
	CLEANUP(fixture_release) struct fixture f = {0};
	CLEANUP(totals_release) struct totals totals;

	(void)state;
	fixture_init(&f);
	totals_init(&totals, &options);
	add(&f, "main;a", 2, 7);
	add(&f, "main;b", 3, 7);
	add(&f, "main;b", 4, 8);
	end_window(&f, &totals);
	assert_int_equal(totals.count, 2);
	assert_int_equal(totals.row[0].self.value, 50);
	assert_string_equal(code_text(&totals.code, totals.groups.group[totals.row[0].group].label),
			    "pid 7");
}

/* A number is a label like any other; none stands for those that samples have not. */
static void totals__by_labels_of_any_key(void **state)
{
	const struct totals_options options = {
		.by = TOTALS_BY_GROUP,
		.group_by = {.keys = GROUP_BY_LABELS, .label_count = 2, .label = {"pid", "app"}}};
	CLEANUP(fixture_release) struct fixture f = {0};
	CLEANUP(totals_release) struct totals totals;
	const char *key[GROUPS_MAX_KEYS];

	(void)state;
	fixture_init(&f);
	totals_init(&totals, &options);
	add(&f, "main;a", 2, 7);
	add(&f, "main;b", 3, 7);
	add(&f, "main;b", 4, 8);
	end_window(&f, &totals);
	assert_int_equal(totals.count, 2);
	assert_string_equal(code_text(&totals.code, totals.groups.group[totals.row[1].group].label),
			    "pid 8 / app none");
	groups_label_keys(&options.group_by, key);
	assert_string_equal(key[0], "pid");
	assert_string_equal(key[1], "app");
	assert_null(key[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(totals__recursion_counts_once_in_total),
		cmocka_unit_test(totals__share_of_both_signs_is_of_the_base),
		cmocka_unit_test(totals__of_levels_are_those_of_the_last_window),
		cmocka_unit_test(totals__of_maxima_are_those_of_the_largest_window),
		cmocka_unit_test(totals__one_window_has_the_error_of_its_samples),
		cmocka_unit_test(totals__few_that_stand_for_others_have_a_larger_error),
		cmocka_unit_test(totals__many_windows_have_the_error_of_their_spread),
		cmocka_unit_test(totals__lines_of_one_function_are_apart),
		cmocka_unit_test(totals__by_group_sums_processes),
		cmocka_unit_test(totals__by_labels_of_any_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
