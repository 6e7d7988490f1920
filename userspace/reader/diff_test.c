/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/diff_test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "reader/statistics.h"

#define UNKNOWN -1.0
#define SEED 0x7079707266U /* any: the same input has the same figures */
#define NO_FREEDOM_LIMIT 1e9
/* What runs in bursts varies by more than counting says, and one window does not tell by how much. */
#define BURSTS 4.0

struct scratch {
	double value[DIFF_SIDES][DIFF_MAX_SLOTS], share[DIFF_SIDES][DIFF_MAX_SLOTS];
	struct stat_side side[DIFF_SIDES];
	struct mann_whitney *ranks; /* NULL: too few windows */
};

enum diff_way diff_way(const struct diff_data *data)
{
	const struct diff_side *a = &data->side[DIFF_A], *b = &data->side[DIFF_B];

	if (a->slot_count >= DIFF_MIN_WINDOWS && b->slot_count >= DIFF_MIN_WINDOWS)
		return DIFF_WAY_RANKS;
	if (a->slot_count > 1 && b->slot_count > 1)
		return DIFF_WAY_BOOTSTRAP;
	return a->all.samples > 0 && b->all.samples > 0 ? DIFF_WAY_SAMPLES : DIFF_WAY_NONE;
}

/* ---- one row ---- */

static void unfold(const struct diff_data *data, const struct diff_row *row,
		   enum diff_column column, struct scratch *scratch)
{
	for (unsigned int s = 0; s < DIFF_SIDES; s++) {
		const struct diff_side *side = &data->side[s];
		const struct diff_series *series = &row->side[s];

		memset(scratch->value[s], 0, sizeof(scratch->value[s]));
		for (uint32_t i = 0; i < series->count; i++)
			scratch->value[s][series->cell[i].slot] =
				(double)series->cell[i].value[column];
		for (uint32_t i = 0; i < side->slot_count; i++)
			scratch->share[s][i] =
				side->weight[i] > 0 ? scratch->value[s][i] / side->weight[i] : 0;
		scratch->side[s] = (struct stat_side){.value = scratch->value[s],
						      .weight = side->weight,
						      .count = side->slot_count};
	}
}

/* Events come by chance, as totals.c says; of a share that is the same on both sides, as one side's
 * own is 0 too easily. */
static double event_variance(const struct diff_data *data, const struct diff_row *row,
			     enum diff_column column, unsigned int s)
{
	const struct diff_sum *a = &row->side[DIFF_A].sum[column];
	const struct diff_sum *b = &row->side[DIFF_B].sum[column], *all = &data->side[s].all;
	double total = (double)all->value, value = (double)a->value + (double)b->value, share, size;

	if (total <= 0 || value <= 0)
		return 0;
	share = value /
		((double)data->side[DIFF_A].all.value + (double)data->side[DIFF_B].all.value);
	size = (a->per_event + b->per_event) / value;
	size = (1 - 2 * share) * share * size + share * share * all->per_event / total;
	return size > 0 ? size / total : 0;
}

struct spread {
	double variance, freedom;
};

/* A few windows may be alike by chance: never less than what counting alone gives. */
static struct spread spread_of(double bootstrap_error, double events, uint32_t windows)
{
	struct spread spread = {windows < 2 ? events * BURSTS : events, NO_FREEDOM_LIMIT};
	double variance;

	if (windows < 2)
		return spread;
	variance = bootstrap_error * bootstrap_error * windows / (windows - 1);
	if (variance > spread.variance)
		spread = (struct spread){variance, windows - 1};
	return spread;
}

/* Welch's test. */
static double spread_p(double change, const struct spread spread[DIFF_SIDES])
{
	double a = spread[0].variance, b = spread[1].variance;
	double freedom = a * a / spread[0].freedom + b * b / spread[1].freedom;

	if (a + b <= 0)
		return 1;
	freedom = freedom > 0 ? (a + b) * (a + b) / freedom : NO_FREEDOM_LIMIT;
	return stat_student_p(change / sqrt(a + b), freedom);
}

static int p_of_few(const struct diff_data *data, const struct diff_row *row,
		    enum diff_column column, const struct scratch *scratch, double *ret_p)
{
	struct spread spread[DIFF_SIDES];
	struct stat_interval interval;
	int err = stat_bootstrap(&scratch->side[DIFF_A], &scratch->side[DIFF_B], SEED, &interval);

	if (err)
		return err;
	for (unsigned int s = 0; s < DIFF_SIDES; s++)
		spread[s] = spread_of(interval.error[s], event_variance(data, row, column, s),
				      data->side[s].slot_count);
	*ret_p = spread_p(row->change[column].share[DIFF_B] - row->change[column].share[DIFF_A],
			  spread);
	return 0;
}

static bool is_testable(const struct diff_data *data, const struct diff_row *row,
			enum diff_column column)
{
	int64_t samples =
		row->side[DIFF_A].sum[column].samples + row->side[DIFF_B].sum[column].samples;

	if (data->side[DIFF_A].all.samples <= 0 && data->side[DIFF_B].all.samples <= 0)
		return row->side[DIFF_A].sum[column].value || row->side[DIFF_B].sum[column].value;
	return samples >= DIFF_MIN_SAMPLES;
}

static int test_column(const struct diff_data *data, struct diff_row *row, enum diff_column column,
		       struct scratch *scratch)
{
	struct diff_change *change = &row->change[column];

	unfold(data, row, column, scratch);
	*change = (struct diff_change){.low = 1, .p = UNKNOWN};
	for (unsigned int s = 0; s < DIFF_SIDES; s++) {
		change->share[s] = stat_share(&scratch->side[s]);
		change->cov[s] = stat_cov(&scratch->side[s]);
	}
	if (!is_testable(data, row, column) || diff_way(data) == DIFF_WAY_NONE)
		return 0;
	if (!scratch->ranks)
		return p_of_few(data, row, column, scratch, &change->p);
	change->p = mann_whitney_p(scratch->ranks, scratch->share[DIFF_A], scratch->share[DIFF_B]);
	return 0;
}

/* ---- a table ---- */

static void scratch_free(struct scratch *scratch)
{
	if (!scratch)
		return;
	mann_whitney_free(scratch->ranks);
	free(scratch);
}
DEFINE_OWNED(struct scratch, scratch)

static int scratch_new(const struct diff_data *data, struct scratch **ret_scratch)
{
	OWNED(scratch) struct scratch *scratch = calloc(1, sizeof(*scratch));
	int err = 0;

	if (!scratch)
		return -ENOMEM;
	if (diff_way(data) == DIFF_WAY_RANKS)
		err = mann_whitney_new(data->side[DIFF_A].slot_count, data->side[DIFF_B].slot_count,
				       &scratch->ranks);
	if (err)
		return err;
	*ret_scratch = TAKE(scratch);
	return 0;
}

struct test {
	uint64_t hash;
	double p;
	uint32_t row, column;
};

static int compare_tests(const void *a, const void *b)
{
	const struct test *test_a = a, *test_b = b;

	if (test_a->hash != test_b->hash)
		return test_a->hash < test_b->hash ? -1 : 1;
	return (test_a->p > test_b->p) - (test_a->p < test_b->p);
}

/* By what the test looks at: the same values in the same windows are the same test. */
static uint64_t hash_of(const struct diff_row *row, enum diff_column column)
{
	uint64_t hash = 0;

	for (unsigned int s = 0; s < DIFF_SIDES; s++) {
		const struct diff_series *series = &row->side[s];

		for (uint32_t i = 0; i < series->count; i++) {
			struct {
				uint64_t hash, side_and_slot;
				int64_t value;
			} mixed = {hash, (uint64_t)s << 32 | series->cell[i].slot,
				   series->cell[i].value[column]};

			if (mixed.value)
				hash = XXH3_64bits(&mixed, sizeof(mixed));
		}
	}
	return hash;
}

static uint32_t collect(const struct diff_table *table, struct test *test)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < table->count; i++)
		for (uint32_t c = 0; c < DIFF_COLUMNS; c++)
			if (table->row[i].change[c].p >= 0)
				test[count++] = (struct test){.hash = hash_of(&table->row[i],
									      (enum diff_column)c),
							      .p = table->row[i].change[c].p,
							      .row = i,
							      .column = c};
	qsort(test, count, sizeof(*test), compare_tests);
	return count;
}

static bool is_new(const struct test *test, uint32_t i)
{
	return !i || test[i].hash != test[i - 1].hash || test[i].p > test[i - 1].p;
}

/* One family: self and total of all rows, as an alarm in either is one.  A leaf's self is its total,
 * and a caller of one function has its total: that is tested once. */
static int correct(struct diff_table *table, uint32_t *ret_tests)
{
	size_t room = (size_t)table->count * DIFF_COLUMNS + 1;
	OWNED_MEM struct test *test = calloc(room, sizeof(*test));
	OWNED_MEM double *p = calloc(room, sizeof(*p));
	uint32_t count, distinct = 0;
	int err;

	if (!test || !p)
		return -ENOMEM;
	count = collect(table, test);
	for (uint32_t i = 0; i < count; i++)
		if (is_new(test, i))
			p[distinct++] = test[i].p;
	err = stat_holm(p, distinct);
	if (err)
		return err;
	*ret_tests = distinct;
	distinct = 0;
	for (uint32_t i = 0; i < count; i++) {
		distinct += is_new(test, i);
		table->row[test[i].row].change[test[i].column].p = p[distinct - 1];
	}
	return 0;
}

int diff_test_table(struct diff_data *data, enum diff_by by, uint32_t *ret_tests)
{
	OWNED(scratch) struct scratch *scratch = NULL;
	struct diff_table *table = &data->table[by];
	unsigned int columns = by == DIFF_BY_STACK ? DIFF_SELF + 1 : DIFF_COLUMNS;
	int err = scratch_new(data, &scratch);

	for (uint32_t i = 0; !err && i < table->count; i++) {
		table->row[i].change[DIFF_TOTAL].p = UNKNOWN;
		for (unsigned int column = 0; !err && column < columns; column++)
			err = test_column(data, &table->row[i], (enum diff_column)column, scratch);
	}
	return err ? err : correct(table, ret_tests);
}

int diff_test_interval(const struct diff_data *data, struct diff_row *row, enum diff_column column)
{
	OWNED(scratch) struct scratch *scratch = NULL;
	struct stat_interval interval;
	int err;

	if (data->side[DIFF_A].slot_count < 2 || data->side[DIFF_B].slot_count < 2)
		return 0;
	err = scratch_new(data, &scratch);
	if (err)
		return err;
	unfold(data, row, column, scratch);
	err = stat_bootstrap(&scratch->side[DIFF_A], &scratch->side[DIFF_B], SEED, &interval);
	if (err)
		return err;
	row->change[column].low = interval.low;
	row->change[column].high = interval.high;
	return 0;
}

/* ---- all of it ---- */

static void unfold_all(const struct diff_data *data, double unit_ns, struct scratch *scratch)
{
	for (unsigned int s = 0; s < DIFF_SIDES; s++) {
		const struct diff_side *side = &data->side[s];

		for (uint32_t i = 0; i < side->slot_count; i++) {
			scratch->value[s][i] = side->weight[i] * unit_ns;
			scratch->share[s][i] = side->duration[i] > 0
						       ? scratch->value[s][i] / side->duration[i]
						       : 0;
		}
		scratch->side[s] = (struct stat_side){.value = scratch->value[s],
						      .weight = side->duration,
						      .count = side->slot_count};
	}
}

int diff_test_all(const struct diff_data *data, double unit_ns, struct diff_change *ret_change)
{
	OWNED(scratch) struct scratch *scratch = NULL;
	struct diff_change change = {.low = 1, .p = UNKNOWN};
	struct stat_interval interval;
	int err = scratch_new(data, &scratch);

	if (err)
		return err;
	unfold_all(data, unit_ns, scratch);
	for (unsigned int s = 0; s < DIFF_SIDES; s++) {
		change.share[s] = stat_share(&scratch->side[s]);
		change.cov[s] = stat_cov(&scratch->side[s]);
	}
	if (data->side[DIFF_A].slot_count > 1 && data->side[DIFF_B].slot_count > 1) {
		err = stat_bootstrap(&scratch->side[DIFF_A], &scratch->side[DIFF_B], SEED,
				     &interval);
		change.low = interval.low;
		change.high = interval.high;
	}
	if (!err && scratch->ranks)
		change.p = mann_whitney_p(scratch->ranks, scratch->share[DIFF_A],
					  scratch->share[DIFF_B]);
	if (!err)
		*ret_change = change;
	return err;
}
