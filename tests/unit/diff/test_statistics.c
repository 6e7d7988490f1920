/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

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

/* By hand: of the C(6, 3) = 20 choices out of the ranks 1, 3, 3, 3, 5, 6, whose mean is 10.5, a's 7
 * is reached by 3 and its mirror image 14 by 3. */
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
	assert_near(u_test(mostly_zero, 7, mostly_zero + 7, 7), by_trying(mostly_zero, 7, 14),
		    1e-12);
	assert_near(u_test(pairs, 5, pairs + 5, 9), by_trying(pairs, 5, 14), 1e-12);
	assert_near(u_test(apart, 6, apart + 6, 8), by_trying(apart, 6, 14), 1e-12);
}

/* What comes first has three ties, of which the last is larger than both of what comes then. */
static void mann_whitney__ties_of_the_values_before_are_forgotten(void **state)
{
	const double before[] = {1, 2, 3, 3, 3, 3}, value[] = {1, 1, 2, 1, 2, 2};
	OWNED(mann_whitney) struct mann_whitney *test = NULL;

	(void)state;
	assert_int_equal(mann_whitney_new(3, 3, &test), 0);
	assert_near(mann_whitney_p(test, before, before + 3), by_trying(before, 3, 6), 1e-12);
	assert_near(mann_whitney_p(test, value, value + 3), by_trying(value, 3, 6), 1e-12);
}

/* Values out of 2, 3, 6 and 1,000 different ones, by a generator of Numerical Recipes; up to 6 a
 * side. */
static void mann_whitney__is_what_trying_gives_for_all_small_sizes(void **state)
{
	static const uint32_t ranges[] = {2, 3, 6, 1000};
	uint32_t random = 1;

	(void)state;
	for (uint32_t a_count = 1; a_count <= 6; a_count++)
		for (uint32_t b_count = 1; b_count <= 6; b_count++)
			for (uint32_t i = 0; i < 12; i++) {
				double value[12], p;

				for (uint32_t k = 0; k < a_count + b_count; k++) {
					random = random * 1664525 + 1013904223;
					value[k] = (random >> 16) % ranges[i % 4];
				}
				p = by_trying(value, a_count, a_count + b_count);
				assert_near(u_test(value, a_count, value + a_count, b_count), p,
					    1e-12);
			}
}

/* 20 a side are counted out: 2 of C(40, 20) orders.  With 21 on a side the normal distribution is
 * asked. */
static void mann_whitney__twenty_a_side_are_the_most_that_are_counted_out(void **state)
{
	double a[21], b[21], distance, variance;

	(void)state;
	for (int i = 0; i < 21; i++) {
		a[i] = i;
		b[i] = 100 + i;
	}
	assert_near(u_test(a, 20, b, 20), 2.0 / 137846528820, 1e-24);
	distance = 20 * 21 / 2.0 - 0.5;
	variance = 20 * 21 * 42 / 12.0;
	assert_near(u_test(a, 20, b, 21), erfc(distance / sqrt(variance) / M_SQRT2), 1e-15);
	assert_near(u_test(a, 21, b, 20), erfc(distance / sqrt(variance) / M_SQRT2), 1e-15);
	assert_near(u_test(a, 21, a, 21), 1, 0);
	for (int i = 0; i < 21; i++)
		a[i] = b[i] = 7;
	assert_near(u_test(a, 21, b, 21), 1, 0);
}

/* By hand: 21 a side, of which each has one 0 and the others stand apart: U = 1 / 2, ties 2^3 - 2 =
 * 6. */
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

/* The density of Student's t, (1 + x^2 / f)^(-(f + 1) / 2) by a factor, integrated by Simpson's
 * rule. */
static double student_by_simpson(double t, double freedom)
{
	const int steps = 4000;
	double factor = exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(freedom * M_PI),
	       sum = 0;

	for (int i = 0; i <= steps; i++) {
		double x = t * i / steps, weight = !i || i == steps ? 1 : i % 2 ? 4 : 2;

		sum += weight * pow(1 + x * x / freedom, -(freedom + 1) / 2);
	}
	return 1 - 2 * factor * sum * t / steps / 3;
}

static void student__is_the_integral_of_its_density(void **state)
{
	static const double ts[] = {0.01, 0.1, 0.5, 1, 1.5, 2, 3, 5},
			    freedoms[] = {1, 1.5, 2, 3, 7, 30, 200, 1000};

	(void)state;
	for (size_t i = 0; i < sizeof(ts) / sizeof(ts[0]); i++)
		for (size_t k = 0; k < sizeof(freedoms) / sizeof(freedoms[0]); k++)
			assert_near(stat_student_p(ts[i], freedoms[k]),
				    student_by_simpson(ts[i], freedoms[k]), 1e-8);
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

/* p / weight is 0.01, 0.02, 0.3; of the weights 10, 9.5 and 1.5 are left: 0.005 * 10 / 0.5, 0.16 *
 * 9.5 / 8, 0.45 * 1.5 / 1.5. */
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

/* Windows without weight have no share; 2 and 4 are left: sqrt(2) / 3. */
static void cov__windows_without_weight_are_left_out(void **state)
{
	const double value[] = {1, 7, 1, 9}, weight[] = {0.5, 0, 0.25, 0}, none[] = {0, 0, 0, 0};
	const struct stat_side two = {value, weight, 4}, one = {value + 1, weight + 1, 3},
			       nothing = {value, none, 4};
	const struct stat_side idle = {none, value, 4};

	(void)state;
	assert_near(stat_cov(&two), M_SQRT2 / 3, 1e-12);
	assert_true(stat_cov(&one) < 0);
	assert_true(stat_cov(&nothing) < 0);
	assert_true(stat_cov(&idle) < 0);
	assert_near(stat_share(&nothing), 0, 0);
	assert_near(stat_share(&two), 24, 1e-12);
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

/* splitmix64 as published (Steele, Lea, Flood 2014). */
static uint64_t splitmix64(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15U;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
	z = (z ^ z >> 27) * 0x94d049bb133111ebU;
	return z ^ z >> 31;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

#define DRAWS 1000

/* The share of `count` windows drawn with replacement: the upper 32 random bits choose one. */
static double drawn_share(const double *value, const double *weight, uint32_t count,
			  uint64_t *random)
{
	double values = 0, weights = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t at = (splitmix64(random) >> 32) * count / 4294967296U;

		values += value[at];
		weights += weight[at];
	}
	return values / weights;
}

/* 1,000 draws of both sides in turns, the 26th from either end, and the deviation of each side. */
static void bootstrap__draws_what_its_seed_says(void **state)
{
	static const double a[] = {1.3, 5.1, 2.7, 8.9, 3.2, 6.1, 4.4, 7.8, 0.6},
			    b[] = {9.1, 4.3, 7.7, 5.2, 8.4, 6.9, 3.3},
			    a_weight[] = {10, 20, 10.5, 30, 15, 12, 17, 21, 13},
			    b_weight[] = {12, 11, 30, 14.5, 16, 19, 23};
	const struct stat_side side_a = {a, a_weight, 9}, side_b = {b, b_weight, 7};
	static double share[2][DRAWS], change[DRAWS];
	struct stat_interval interval;
	uint64_t random = 0;

	(void)state;
	/* The published first numbers of seed 0. */
	assert_true(splitmix64(&random) == 0xe220a8397b1dcdafU);
	assert_true(splitmix64(&random) == 0x6e789e6aa1b965f4U);
	random = 12345;
	for (int i = 0; i < DRAWS; i++) {
		share[0][i] = drawn_share(a, a_weight, 9, &random);
		share[1][i] = drawn_share(b, b_weight, 7, &random);
		change[i] = share[1][i] - share[0][i];
	}
	qsort(change, DRAWS, sizeof(change[0]), ascending);
	assert_int_equal(stat_bootstrap(&side_a, &side_b, 12345, &interval), 0);
	assert_near(interval.low, change[25], 1e-12);
	assert_near(interval.high, change[DRAWS - 26], 1e-12);
	assert_true(change[24] < change[25] && change[25] < change[26]);
	for (int side = 0; side < 2; side++) {
		double mean = 0, squares = 0;

		for (int i = 0; i < DRAWS; i++)
			mean += share[side][i] / DRAWS;
		for (int i = 0; i < DRAWS; i++)
			squares += pow(share[side][i] - mean, 2);
		assert_near(interval.error[side], sqrt(squares / (DRAWS - 1)), 1e-9);
	}
}

/* A side in whose windows nothing ran has a share of 0, whichever are drawn. */
static void bootstrap__of_windows_without_weight_is_0(void **state)
{
	static const double value[] = {0, 0}, none[] = {0, 0}, some[] = {5, 5};
	const struct stat_side idle = {value, none, 2}, other = {some, some, 2};
	struct stat_interval interval;

	(void)state;
	assert_int_equal(stat_bootstrap(&idle, &idle, 1, &interval), 0);
	assert_true(interval.low == 0 && interval.high == 0);
	assert_true(interval.error[0] == 0 && interval.error[1] == 0);
	assert_int_equal(stat_bootstrap(&idle, &other, 1, &interval), 0);
	assert_true(interval.low == 1 && interval.high == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mann_whitney__few_values_are_counted_out),
		cmocka_unit_test(mann_whitney__eight_apart_have_the_smallest_p),
		cmocka_unit_test(mann_whitney__ties_are_counted_out),
		cmocka_unit_test(mann_whitney__is_what_trying_all_choices_gives),
		cmocka_unit_test(mann_whitney__ties_of_the_values_before_are_forgotten),
		cmocka_unit_test(mann_whitney__is_what_trying_gives_for_all_small_sizes),
		cmocka_unit_test(mann_whitney__twenty_a_side_are_the_most_that_are_counted_out),
		cmocka_unit_test(student__is_the_integral_of_its_density),
		cmocka_unit_test(cov__windows_without_weight_are_left_out),
		cmocka_unit_test(mann_whitney__many_ties_are_corrected),
		cmocka_unit_test(mann_whitney__approximation_is_near_the_exact_one),
		cmocka_unit_test(student__is_that_of_the_tables),
		cmocka_unit_test(holm__corrects_by_what_is_left),
		cmocka_unit_test(holm__more_weight_needs_less),
		cmocka_unit_test(cov__is_deviation_by_mean),
		cmocka_unit_test(bootstrap__draws_what_its_seed_says),
		cmocka_unit_test(bootstrap__error_is_that_of_the_mean),
		cmocka_unit_test(bootstrap__of_windows_without_weight_is_0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
