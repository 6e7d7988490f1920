/* SPDX-License-Identifier: BSD-2-Clause */
#include "diff/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define RESAMPLES 1000U
#define UNKNOWN -1.0
#define MAX_STEPS 300	 /* of the continued fraction; it takes about sqrt(freedom) */
#define MUCH_FREEDOM 1e6 /* above this, Student's t is the normal distribution */

double stat_share(const struct stat_side *side)
{
	double value = 0, weight = 0;

	for (uint32_t i = 0; i < side->count; i++) {
		value += side->value[i];
		weight += side->weight[i];
	}
	return weight > 0 ? value / weight : 0;
}

double stat_cov(const struct stat_side *side)
{
	double sum = 0, squares = 0, mean;
	uint32_t count = 0;

	for (uint32_t i = 0; i < side->count; i++) {
		if (side->weight[i] <= 0)
			continue;
		sum += side->value[i] / side->weight[i];
		count++;
	}
	if (count < 2 || sum <= 0)
		return UNKNOWN;
	mean = sum / count;
	for (uint32_t i = 0; i < side->count; i++) {
		if (side->weight[i] <= 0)
			continue;
		squares += pow(side->value[i] / side->weight[i] - mean, 2);
	}
	return sqrt(squares / (count - 1)) / mean;
}

/* ---- distributions ---- */

double stat_normal_p(double z)
{
	return erfc(fabs(z) / M_SQRT2);
}

/* The continued fraction of the incomplete beta function, by Lentz's method (Abramowitz and Stegun,
 * 26.5.8). */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), value;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	value = d;
	for (int m = 1; m < MAX_STEPS; m++) {
		const double term[] = {m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
				       -(a + m) * (a + b + m) * x /
					       ((a + 2 * m) * (a + 2 * m + 1))};

		for (int i = 0; i < 2; i++) {
			d = 1 + term[i] * d;
			c = 1 + term[i] / c;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = fabs(c) < tiny ? tiny : c;
			value *= d * c;
		}
		if (fabs(d * c - 1) < 1e-14)
			break;
	}
	return value;
}

static double incomplete_beta(double a, double b, double x)
{
	double front;

	if (x <= 0)
		return 0;
	if (x >= 1)
		return 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double stat_student_p(double t, double freedom)
{
	if (isinf(t))
		return 0;
	if (freedom > MUCH_FREEDOM)
		return stat_normal_p(t);
	return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

/* ---- Mann-Whitney U ---- */

struct ranked {
	double value;
	bool is_a;
};

/* Equal values share the mean of their ranks, which is doubled here to be a whole number. */
struct tie {
	uint32_t rank, count;
};

struct mann_whitney {
	uint32_t a_count, b_count;
	double *below;	 /* without ties: P(U <= u), u from 0 to a_count * b_count */
	double *ways;	 /* scratch of count_ties(): [a's taken][sum of their ranks] */
	struct tie *tie; /* scratch, as ranked; of the values in ascending order */
	uint32_t tie_count;
	struct ranked ranked[];
};

void mann_whitney_free(struct mann_whitney *test)
{
	if (!test)
		return;
	free(test->below);
	free(test->ways);
	free(test->tie);
	free(test);
}

/* Counts in ways[k][u] the orders of the values so far, in ascending order, with k of a's, in which
 * a's are above u of b's. */
static int count_out(struct mann_whitney *test)
{
	uint32_t a_count = test->a_count, b_count = test->b_count;
	size_t width = (size_t)a_count * b_count + 1;
	OWNED_MEM double *ways = calloc((a_count + 1) * width, sizeof(*ways));
	OWNED_MEM double *below = calloc(width, sizeof(*below));
	double all = 0, sum = 0;

	if (!ways || !below)
		return -ENOMEM;
	ways[0] = 1;
	for (uint32_t i = 0; i < a_count + b_count; i++) {
		/* The next value is a's k-th: then i - (k - 1) of b's are below it. */
		for (uint32_t k = i + 1 < a_count ? i + 1 : a_count; k > 0; k--) {
			size_t gain = i + 1 - k;

			if (gain > b_count)
				continue;
			for (size_t u = width; u-- > gain;)
				ways[k * width + u] += ways[(k - 1) * width + u - gain];
		}
	}
	for (size_t u = 0; u < width; u++)
		all += ways[a_count * width + u];
	for (size_t u = 0; u < width; u++) {
		sum += ways[a_count * width + u];
		below[u] = sum / all;
	}
	test->below = TAKE(below);
	return 0;
}

/* The sum of all doubled ranks is count * (count + 1). */
static size_t ways_width(const struct mann_whitney *test)
{
	size_t count = (size_t)test->a_count + test->b_count;

	return count * (count + 1) + 1;
}

int mann_whitney_new(uint32_t a_count, uint32_t b_count, struct mann_whitney **ret_test)
{
	OWNED(mann_whitney) struct mann_whitney *test = NULL;
	size_t count = (size_t)a_count + b_count;
	int err = 0;

	test = calloc(1, sizeof(*test) + count * sizeof(test->ranked[0]));
	if (!test)
		return -ENOMEM;
	test->a_count = a_count;
	test->b_count = b_count;
	test->tie = calloc(count, sizeof(*test->tie));
	if (!test->tie)
		return -ENOMEM;
	if (a_count <= STATISTICS_MAX_EXACT && b_count <= STATISTICS_MAX_EXACT) {
		test->ways = calloc((a_count + 1) * ways_width(test), sizeof(*test->ways));
		err = test->ways ? count_out(test) : -ENOMEM;
	}
	if (err)
		return err;
	*ret_test = TAKE(test);
	return 0;
}

static int compare_ranked(const void *a, const void *b)
{
	return ORDER(((const struct ranked *)a)->value, ((const struct ranked *)b)->value);
}

/* Returns the sum of a's doubled ranks. */
static size_t rank(struct mann_whitney *test, const double *a, const double *b)
{
	uint32_t count = test->a_count + test->b_count;
	size_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		test->ranked[i] = i < test->a_count ? (struct ranked){a[i], true}
						    : (struct ranked){b[i - test->a_count], false};
	qsort(test->ranked, count, sizeof(test->ranked[0]), compare_ranked);
	test->tie_count = 0;
	for (uint32_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count; end++)
			if (test->ranked[end].value > test->ranked[i].value)
				break;
		for (uint32_t k = i; k < end; k++)
			if (test->ranked[k].is_a)
				sum += i + 1 + end;
		test->tie[test->tie_count++] = (struct tie){i + 1 + end, end - i};
	}
	return sum;
}

static double approximate_p(const struct mann_whitney *test, size_t ranks)
{
	double a = test->a_count, b = test->b_count, n = a + b, ties = 0, variance, distance;

	for (uint32_t i = 0; i < test->tie_count; i++)
		ties += pow(test->tie[i].count, 3) - test->tie[i].count;
	variance = a * b / 12 * (n + 1 - ties / (n * (n - 1)));
	distance = fabs((double)ranks - a * (n + 1)) / 2 - 0.5;
	/* Where all values are equal, the variance is 0, and so is the distance without the 0.5. */
	if (distance <= 0)
		return 1;
	return stat_normal_p(distance / sqrt(variance));
}

/* Extends the counts by a tie: any number of its equal values may be a's.  ret_taken: all values so
 * far, and the sum of their ranks. */
static void take_tie(const struct mann_whitney *test, const struct tie *tie, struct tie *ret_taken)
{
	size_t width = ways_width(test);
	uint32_t most;

	ret_taken->count += tie->count;
	ret_taken->rank += tie->count * tie->rank;
	most = ret_taken->count < test->a_count ? ret_taken->count : test->a_count;
	for (uint32_t k = most; k > 0; k--) {
		double choices = 1;

		for (uint32_t j = 1; j <= tie->count && j <= k; j++) {
			const double *from = &test->ways[(k - j) * width];
			size_t gain = (size_t)j * tie->rank;

			choices *= (double)(tie->count + 1 - j) / j;
			for (size_t sum = gain; sum <= ret_taken->rank; sum++)
				test->ways[k * width + sum] += choices * from[sum - gain];
		}
	}
}

static double binomial(uint32_t n, uint32_t k)
{
	double ways = 1;

	for (uint32_t i = 1; i <= k; i++)
		ways *= (double)(n + 1 - i) / i;
	return ways;
}

/* Returns the share of all assignments of values to a whose rank sum is at least as far from the
 * mean. The largest tie gets what the others leave: most rows are 0 in most windows. */
static double tied_p(const struct mann_whitney *test, size_t ranks)
{
	size_t width = ways_width(test);
	double mean = test->a_count * (test->a_count + test->b_count + 1.0);
	double far = fabs((double)ranks - mean), all = 0, extreme = 0;
	uint32_t largest = 0;
	struct tie taken = {0};

	memset(test->ways, 0, (test->a_count + 1) * width * sizeof(*test->ways));
	test->ways[0] = 1;
	for (uint32_t i = 1; i < test->tie_count; i++)
		if (test->tie[i].count > test->tie[largest].count)
			largest = i;
	for (uint32_t i = 0; i < test->tie_count; i++)
		if (i != largest)
			take_tie(test, &test->tie[i], &taken);
	for (uint32_t k = 0; k <= test->a_count; k++) {
		uint32_t rest = test->a_count - k;
		double choices, offset = (double)rest * test->tie[largest].rank - mean;

		if (rest > test->tie[largest].count)
			continue;
		choices = binomial(test->tie[largest].count, rest);
		for (size_t sum = 0; sum <= taken.rank; sum++) {
			double ways = choices * test->ways[k * width + sum];

			all += ways;
			if (fabs((double)sum + offset) >= far)
				extreme += ways;
		}
	}
	return extreme / all;
}

double mann_whitney_p(struct mann_whitney *test, const double *a, const double *b)
{
	size_t ranks = rank(test, a, b), pairs = (size_t)test->a_count * test->b_count, u;
	double p;

	if (!test->ways)
		return approximate_p(test, ranks);
	if (test->tie_count < test->a_count + test->b_count)
		return tied_p(test, ranks);
	u = ranks / 2 - (size_t)test->a_count * (test->a_count + 1) / 2;
	p = 2 * test->below[u > pairs / 2 ? pairs - u : u];
	return p < 1 ? p : 1;
}

/* ---- bootstrap ---- */

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15U;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
	return z ^ (z >> 31);
}

static double resampled_share(const struct stat_side *side, uint64_t *state)
{
	double value = 0, weight = 0;

	for (uint32_t i = 0; i < side->count; i++) {
		uint32_t at = (uint32_t)((next_random(state) >> 32) * side->count >> 32);

		value += side->value[at];
		weight += side->weight[at];
	}
	return weight > 0 ? value / weight : 0;
}

static int compare_doubles(const void *a, const void *b)
{
	return ORDER(*(const double *)a, *(const double *)b);
}

static double deviation(double sum, double squares)
{
	double variance = (squares - sum * sum / RESAMPLES) / (RESAMPLES - 1);

	return variance > 0 ? sqrt(variance) : 0;
}

int stat_bootstrap(const struct stat_side *a, const struct stat_side *b, uint64_t seed,
		   struct stat_interval *ret_interval)
{
	OWNED_MEM double *change = calloc(RESAMPLES, sizeof(*change));
	double sum[2] = {0}, squares[2] = {0}, offset[2] = {stat_share(a), stat_share(b)};
	uint64_t state = seed;

	if (!change)
		return -ENOMEM;
	for (uint32_t i = 0; i < RESAMPLES; i++) {
		double share[2] = {resampled_share(a, &state), resampled_share(b, &state)};

		change[i] = share[1] - share[0];
		for (int side = 0; side < 2; side++) {
			sum[side] += share[side] - offset[side];
			squares[side] += pow(share[side] - offset[side], 2);
		}
	}
	qsort(change, RESAMPLES, sizeof(*change), compare_doubles);
	*ret_interval = (struct stat_interval){.low = change[RESAMPLES / 40],
					       .high = change[RESAMPLES - 1 - RESAMPLES / 40],
					       .error = {deviation(sum[0], squares[0]),
							 deviation(sum[1], squares[1])}};
	return 0;
}

/* ---- Holm ---- */

static int compare_tests(const void *a, const void *b)
{
	const struct stat_test *left = *(struct stat_test *const *)a;
	const struct stat_test *right = *(struct stat_test *const *)b;

	return ORDER(left->p / left->weight, right->p / right->weight) ?: ORDER(left, right);
}

int stat_holm(struct stat_test *test, size_t count)
{
	OWNED_MEM struct stat_test **order = calloc(count + 1, sizeof(*order));
	double largest = 0, weight = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		order[i] = &test[i];
	qsort(order, count, sizeof(*order), compare_tests);
	/* Sums the remaining weights from the small end, so that nothing cancels. */
	for (size_t i = count; i-- > 0;) {
		weight += order[i]->weight;
		order[i]->p *= weight / order[i]->weight;
	}
	for (size_t i = 0; i < count; i++) {
		if (order[i]->p > largest)
			largest = order[i]->p < 1 ? order[i]->p : 1;
		order[i]->p = largest;
	}
	return 0;
}
