/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: diff/statistics.c */
#include <cmocka.h>
#include <math.h>

#include "diff/statistics.h"

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

/* By hand: of the C(6, 3) = 20 choices out of the ranks 1, 3, 3, 3, 5, 6, whose mean is 10.5, a's 7 is reached
 * by 3 and its mirror image 14 by 3. */
static void mann_whitney__ties_are_counted_out(void **state)
{
	const double a[] = {1, 2, 2}, b[] = {2, 3, 4}, same[] = {7, 7, 7};

	(void)state;
	assert_near(u_test(a, 3, b, 3), 6.0 / 20, 1e-12);
	assert_near(u_test(b, 3, a, 3), 6.0 / 20, 1e-12);
	assert_near(u_test(same, 3, same, 3), 1, 0);
}

/* All choices of a's out of the values, tried one by one. */
static double by_trying(const double *value, uint32_t a_count, uint32_t count)
{
	double rank[16], mean = a_count * (count + 1) / 2.0, own = 0;
	uint32_t all = 0, far = 0;

	for (uint32_t i = 0; i < count; i++) {
		rank[i] = 0.5;
		for (uint32_t k = 0; k < count; k++)
			rank[i] += value[k] < value[i] ? 1 : value[k] > value[i] ? 0 : 0.5;
		own += i < a_count ? rank[i] : 0;
	}
	for (uint32_t chosen = 0; chosen < 1U << count; chosen++) {
		double sum = 0;

		if ((uint32_t)__builtin_popcount(chosen) != a_count)
			continue;
		for (uint32_t i = 0; i < count; i++)
			sum += chosen >> i & 1 ? rank[i] : 0;
		all++;
		far += fabs(sum - mean) >= fabs(own - mean);
	}
	return (double)far / all;
}

static void mann_whitney__is_what_trying_all_choices_gives(void **state)
{
	const double mostly_zero[] = {0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 5, 6, 7};
	const double pairs[] = {1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7};
	const double apart[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 13};

	(void)state;
	assert_near(u_test(mostly_zero, 7, mostly_zero + 7, 7), by_trying(mostly_zero, 7, 14), 1e-12);
	assert_near(u_test(pairs, 5, pairs + 5, 9), by_trying(pairs, 5, 14), 1e-12);
	assert_near(u_test(apart, 6, apart + 6, 8), by_trying(apart, 6, 14), 1e-12);
}

/* By hand: 21 a side, of which each has one 0 and the others stand apart: U = 1 / 2, ties 2^3 - 2 = 6. */
static void mann_whitney__many_ties_are_corrected(void **state)
{
	double a[21], b[21], variance = 441 / 12.0 * (43 - 6 / (42 * 41.0));

	(void)state;
	for (int i = 0; i < 21; i++) {
		a[i] = i;
		b[i] = i ? 100 + i : 20;
	}
	assert_near(u_test(a, 21, b, 21), erfc((220.5 - 0.5 - 0.5) / sqrt(variance) / M_SQRT2),
		    1e-12);
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
	struct stat_test test[] = {{0.04, 1}, {0.01, 1}, {0.07, 1}, {0.02, 1}};
	struct stat_test large[] = {{0.6, 1}, {0.7, 1}};

	(void)state;
	assert_int_equal(stat_holm(test, 4), 0);
	assert_near(test[1].p, 0.04, 1e-12);
	assert_near(test[3].p, 0.06, 1e-12);
	assert_near(test[0].p, 0.08, 1e-12);
	assert_near(test[2].p, 0.08, 1e-12);
	assert_int_equal(stat_holm(large, 2), 0);
	assert_near(large[0].p, 1, 0);
	assert_near(large[1].p, 1, 0);
	assert_int_equal(stat_holm(large, 0), 0);
}

/* p / weight is 0.01, 0.02, 0.3; of the weights 10, 9.5 and 1.5 are left: 0.005 * 10 / 0.5, 0.16 * 9.5 / 8,
 * 0.45 * 1.5 / 1.5. */
static void holm__more_weight_needs_less(void **state)
{
	struct stat_test test[] = {{0.16, 8}, {0.005, 0.5}, {0.45, 1.5}};

	(void)state;
	assert_int_equal(stat_holm(test, 3), 0);
	assert_near(test[1].p, 0.1, 1e-12);
	assert_near(test[0].p, 0.19, 1e-12);
	assert_near(test[2].p, 0.45, 1e-12);
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
		cmocka_unit_test(mann_whitney__ties_are_counted_out),
		cmocka_unit_test(mann_whitney__is_what_trying_all_choices_gives),
		cmocka_unit_test(mann_whitney__many_ties_are_corrected),
		cmocka_unit_test(mann_whitney__approximation_is_near_the_exact_one),
		cmocka_unit_test(student__is_that_of_the_tables),
		cmocka_unit_test(holm__corrects_by_what_is_left),
		cmocka_unit_test(holm__more_weight_needs_less),
		cmocka_unit_test(cov__is_deviation_by_mean),
		cmocka_unit_test(bootstrap__error_is_that_of_the_mean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
