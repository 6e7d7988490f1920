/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: reader/statistics.c */
#include <cmocka.h>
#include <math.h>

#include "reader/statistics.h"

#define assert_near(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

static double u_test(const double *a, uint32_t a_count, const double *b, uint32_t b_count)
{
	OWNED(mann_whitney) struct mann_whitney *test = NULL;

	assert_int_equal(mann_whitney_new(a_count, b_count, &test), 0);
	return mann_whitney_p(test, a, b);
}

/* All orders of 3 and 3 values are 20: the outermost two have p 2/20, the next two 4/20. */
static void mann_whitney__few_values_are_counted_out(void **state)
{
	const double low[] = {1, 2, 3}, high[] = {4, 5, 6}, mixed[] = {1, 2, 4}, rest[] = {3, 5, 6};

	(void)state;
	assert_near(u_test(low, 3, high, 3), 0.1, 1e-12);
	assert_near(u_test(high, 3, low, 3), 0.1, 1e-12);
	assert_near(u_test(mixed, 3, rest, 3), 0.2, 1e-12);
}

/* 2 / C(16, 8) = 2 / 12870. */
static void mann_whitney__eight_apart_have_the_smallest_p(void **state)
{
	double a[8], b[8];

	(void)state;
	for (int i = 0; i < 8; i++) {
		a[i] = i;
		b[i] = 8 + i;
	}
	assert_near(u_test(a, 8, b, 8), 2.0 / 12870, 1e-15);
}

/* By hand: ranks of a 1, 3, 3 (2 is there three times), U = 1; ties 3^3 - 3 = 24; variance
 * 9 / 12 (7 - 24 / 30) = 4.65; z = (|1 - 4.5| - 0.5) / sqrt(4.65). */
static void mann_whitney__ties_are_corrected(void **state)
{
	const double a[] = {1, 2, 2}, b[] = {2, 3, 4}, same[] = {7, 7, 7};

	(void)state;
	assert_near(u_test(a, 3, b, 3), erfc(3 / sqrt(4.65) / M_SQRT2), 1e-12);
	assert_near(u_test(same, 3, same, 3), 1, 0);
}

/* Both ways of one size agree where both are good. */
static void mann_whitney__approximation_is_near_the_exact_one(void **state)
{
	double a[21], b[21], exact, approximate;

	(void)state;
	for (int i = 0; i < 21; i++) {
		a[i] = i;
		b[i] = i + 5.5;
	}
	exact = u_test(a, 20, b, 20);
	approximate = u_test(a, 21, b, 21);
	assert_true(exact > 0.005 && exact < 0.05);
	assert_near(exact, approximate, 0.006);
}

/* Of tables of Student's t: 0.975 at 2.776 (4), 2.228 (10), 1.984 (100); normal: 1.960. */
static void student__is_that_of_the_tables(void **state)
{
	(void)state;
	assert_near(stat_student_p(2.776, 4), 0.05, 1e-4);
	assert_near(stat_student_p(-2.228, 10), 0.05, 1e-4);
	assert_near(stat_student_p(1.984, 100), 0.05, 1e-4);
	assert_near(stat_student_p(12.706, 1), 0.05, 1e-4);
	assert_near(stat_student_p(1.959964, 1e9), 0.05, 1e-6);
	assert_near(stat_normal_p(1.959964), 0.05, 1e-6);
	assert_near(stat_student_p(0, 5), 1, 1e-12);
	assert_near(stat_student_p(INFINITY, 5), 0, 0);
}

/* p 0.01 of 4, 0.02 of 3, 0.04 of 2: 0.04, 0.06, 0.08; the last one is not below the one before. */
static void holm__corrects_by_what_is_left(void **state)
{
	double p[] = {0.04, -1, 0.01, 0.07, 0.02}, large[] = {0.6, 0.7};

	(void)state;
	assert_int_equal(stat_holm(p, 5), 0);
	assert_near(p[2], 0.04, 1e-12);
	assert_near(p[4], 0.06, 1e-12);
	assert_near(p[0], 0.08, 1e-12);
	assert_near(p[3], 0.08, 1e-12);
	assert_near(p[1], -1, 0);
	assert_int_equal(stat_holm(large, 2), 0);
	assert_near(large[0], 1, 0);
	assert_near(large[1], 1, 0);
}

static void cov__is_deviation_by_mean(void **state)
{
	const double value[] = {1, 2, 3}, weight[] = {10, 10, 10};
	const struct stat_side three = {value, weight, 3}, one = {value, weight, 1};

	(void)state;
	assert_near(stat_cov(&three), 0.5, 1e-12);
	assert_true(stat_cov(&one) < 0);
	assert_near(stat_share(&three), 0.2, 1e-12);
}

/* The error of a mean of n values is their deviation (by n) / sqrt(n). */
static void bootstrap__error_is_that_of_the_mean(void **state)
{
	double a[64], b[64], weight[64];
	const struct stat_side side_a = {a, weight, 64}, side_b = {b, weight, 64};
	struct stat_interval interval, again;

	(void)state;
	for (int i = 0; i < 64; i++) {
		a[i] = i % 2 ? 2 : 4; /* deviation 1 */
		b[i] = 5;
		weight[i] = 10;
	}
	assert_int_equal(stat_bootstrap(&side_a, &side_b, 1, &interval), 0);
	assert_near(interval.error[0], 0.1 / 8, 0.001);
	assert_near(interval.error[1], 0, 1e-12);
	assert_near(interval.low, 0.2 - 1.96 * 0.1 / 8, 0.003);
	assert_near(interval.high, 0.2 + 1.96 * 0.1 / 8, 0.003);
	assert_int_equal(stat_bootstrap(&side_a, &side_b, 1, &again), 0);
	assert_memory_equal(&interval, &again, sizeof(again));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mann_whitney__few_values_are_counted_out),
		cmocka_unit_test(mann_whitney__eight_apart_have_the_smallest_p),
		cmocka_unit_test(mann_whitney__ties_are_corrected),
		cmocka_unit_test(mann_whitney__approximation_is_near_the_exact_one),
		cmocka_unit_test(student__is_that_of_the_tables),
		cmocka_unit_test(holm__corrects_by_what_is_left),
		cmocka_unit_test(cov__is_deviation_by_mean),
		cmocka_unit_test(bootstrap__error_is_that_of_the_mean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
