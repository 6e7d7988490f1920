/* SPDX-License-Identifier: BSD-2-Clause */
#include "diff/significance.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "diff/table.h"

/* Parses --fail-if 'self > 3% p < 0.01', which decides when a difference fails a build. */

static const char *skip_blanks(const char *text)
{
	return text + strspn(text, " \t,");
}

/* Takes a word from the front of the text; it must not be followed by a letter. */
static bool take_word(const char **text, const char *word)
{
	size_t size = strlen(word);
	const char *at = skip_blanks(*text);

	if (strncmp(at, word, size) || islower((unsigned char)at[size]))
		return false;
	*text = at + size;
	return true;
}

static bool take_sign(const char **text, char sign)
{
	const char *at = skip_blanks(*text);

	if (*at != sign)
		return false;
	*text = at + 1;
	return true;
}

static bool take_number(const char **text, double *ret_number)
{
	const char *at = skip_blanks(*text);
	char *end;
	double number = strtod(at, &end);

	if (end == at || !isfinite(number))
		return false;
	*text = end;
	*ret_number = number;
	return true;
}

static bool take_change(const char **text, struct diff_rule *rule)
{
	double points;

	if (take_sign(text, '<'))
		rule->shrinks = true;
	else if (!take_sign(text, '>'))
		return false;
	if (!take_number(text, &points) || !take_sign(text, '%'))
		return false;
	rule->change = points / 100;
	/* "self < 3%" would be true for nearly every function. */
	return rule->shrinks ? points <= 0 : points >= 0;
}

int diff_rule_parse(const char *text, struct diff_rule *ret_rule)
{
	struct diff_rule rule = {.p = DIFF_RULE_DEFAULT_P};

	if (take_word(&text, "line"))
		rule.by = DIFF_BY_LINE;
	else if (take_word(&text, "stack"))
		rule.by = DIFF_BY_STACK;
	else
		(void)take_word(&text, "function");
	if (take_word(&text, "total"))
		rule.column = DIFF_TOTAL;
	else if (!take_word(&text, "self"))
		return -EINVAL;
	if (rule.by == DIFF_BY_STACK && rule.column == DIFF_TOTAL)
		return -EINVAL;
	if (!take_change(&text, &rule))
		return -EINVAL;
	(void)take_word(&text, "and");
	if (take_word(&text, "p") &&
	    (!take_sign(&text, '<') || !take_number(&text, &rule.p) || rule.p <= 0 || rule.p > 1))
		return -EINVAL;
	if (*skip_blanks(text))
		return -EINVAL;
	*ret_rule = rule;
	return 0;
}

bool diff_rule_holds(const struct diff_rule *rule, const struct diff_row *row)
{
	const struct diff_change *change = &row->change[rule->column];
	double difference = change->share[DIFF_B] - change->share[DIFF_A];

	if (change->p < 0 || change->p >= rule->p)
		return false;
	return rule->shrinks ? difference < rule->change : difference > rule->change;
}

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "diff/statistics.h"

#define UNKNOWN -1.0
#define SEED 0x7079707266U /* arbitrary, but fixed: the same input gives the same figures */
#define NO_FREEDOM_LIMIT 1e9
/* Bursts vary by more than counting alone says, and a single window does not show by how much. */
#define BURSTS 4.0
#define MAX_WITHOUT 10U /* one in this many windows may be without the row */

struct scratch {
	double value[DIFF_SIDES][DIFF_MAX_SLOTS], weight[DIFF_SIDES][DIFF_MAX_SLOTS];
	double score[DIFF_SIDES][DIFF_MAX_SLOTS]; /* what is ranked */
	struct stat_side side[DIFF_SIDES];
	struct mann_whitney *ranks; /* NULL: too few windows */
};

/* Counts the windows in which something ran: the others have no shares. */
static uint32_t used_slots(const struct diff_side *side)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < side->slot_count; i++)
		used += side->weight[i] > 0;
	return used;
}

enum significance_way significance_way(const struct diff_data *data)
{
	const struct diff_side *a = &data->side[DIFF_A], *b = &data->side[DIFF_B];
	uint32_t used_a = used_slots(a), used_b = used_slots(b);

	if (used_a >= DIFF_MIN_WINDOWS && used_b >= DIFF_MIN_WINDOWS)
		return SIGNIFICANCE_BY_RANKS;
	if (used_a > 1 && used_b > 1)
		return SIGNIFICANCE_BY_BOOTSTRAP;
	return a->all.samples > 0 && b->all.samples > 0 ? SIGNIFICANCE_BY_SAMPLES
							: SIGNIFICANCE_BY_NONE;
}

/* ---- one row ---- */

static void unfold_side(const struct diff_data *data, const struct diff_row *row,
			enum diff_column column, struct scratch *scratch, unsigned int s)
{
	const struct diff_side *side = &data->side[s];
	const struct diff_series *series = &row->side[s];
	uint32_t count = 0, next = 0;

	for (uint32_t i = 0; i < side->slot_count; i++) {
		double value = 0;

		if (next < series->count && series->cell[next].slot == i)
			value = (double)series->cell[next++].value[column];
		if (side->weight[i] <= 0)
			continue;
		scratch->value[s][count] = value;
		scratch->weight[s][count++] = side->weight[i];
	}
	scratch->side[s] = (struct stat_side){
		.value = scratch->value[s], .weight = scratch->weight[s], .count = count};
}

static void unfold(const struct diff_data *data, const struct diff_row *row,
		   enum diff_column column, struct scratch *scratch)
{
	for (unsigned int s = 0; s < DIFF_SIDES; s++)
		unfold_side(data, row, column, scratch, s);
}

/* Returns the row's share of both sides together, which does not depend on their order.  Both have
 * a value: comparable_sides() has seen to it. */
static double pooled_share(const struct diff_data *data, const struct diff_row *row,
			   enum diff_column column)
{
	double all = (double)data->side[DIFF_A].all.value + (double)data->side[DIFF_B].all.value;
	double value = (double)row->side[DIFF_A].sum[column].value +
		       (double)row->side[DIFF_B].sum[column].value;

	return value / all;
}

/* Gives a row the part of the chance of a false alarm that fits how much it could change.  Equal
 * parts would leave nothing to any row where thousands of rows are small. */
static double importance(double share)
{
	return share * (1 - share);
}

/* Returns the variance of events that come at random, as in totals.c.  It uses the share of both
 * sides together, because one side's own is too easily 0. */
static double event_variance(const struct diff_data *data, const struct diff_row *row,
			     enum diff_column column, unsigned int s)
{
	const struct diff_sum *a = &row->side[DIFF_A].sum[column];
	const struct diff_sum *b = &row->side[DIFF_B].sum[column], *all = &data->side[s].all;
	double total = (double)all->value, value = (double)a->value + (double)b->value;
	double share = pooled_share(data, row, column), size;

	size = (a->per_event + b->per_event) / value;
	size = (1 - 2 * share) * share * size + share * share * all->per_event / total;
	return size > 0 ? size / total : 0;
}

struct spread {
	double variance, freedom;
};

/* A few windows may be alike by chance, so the variance is never less than counting alone gives. */
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
				      scratch->side[s].count);
	*ret_p = spread_p(row->change[column].share[DIFF_B] - row->change[column].share[DIFF_A],
			  spread);
	return 0;
}

/* Returns whether nearly every window has both samples of the row and other samples. */
static bool is_everywhere(const struct scratch *scratch)
{
	uint32_t windows = 0, without = 0;

	for (unsigned int s = 0; s < DIFF_SIDES; s++)
		for (uint32_t i = 0; i < scratch->side[s].count; i++) {
			windows++;
			without += scratch->value[s][i] <= 0 ||
				   scratch->value[s][i] >= scratch->weight[s][i];
		}
	return without <= windows / MAX_WITHOUT;
}

/* Fills the scores that are ranked.  The share of a window in which little ran is unreliable.  So
 * the score is the window's time above what the share of both sides together predicts: near 0,
 * hence in the middle, when little ran.  When all windows have the same total time, the order is
 * that of the shares.  When many windows have nothing of the row, the order would be that of the
 * total time, so then the shares themselves are ranked. */
static void score(double pooled, struct scratch *scratch)
{
	bool everywhere = is_everywhere(scratch);

	for (unsigned int s = 0; s < DIFF_SIDES; s++)
		for (uint32_t i = 0; i < scratch->side[s].count; i++) {
			double value = scratch->value[s][i], weight = scratch->weight[s][i];

			scratch->score[s][i] =
				everywhere ? value - pooled * weight : value / weight;
		}
}

static bool is_testable(const struct diff_data *data, const struct diff_row *row,
			enum diff_column column)
{
	int64_t samples =
		row->side[DIFF_A].sum[column].samples + row->side[DIFF_B].sum[column].samples;

	if (importance(pooled_share(data, row, column)) <= 0)
		return false;
	return samples >= DIFF_MIN_SAMPLES ||
	       (data->side[DIFF_A].all.samples <= 0 && data->side[DIFF_B].all.samples <= 0);
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
	if (!is_testable(data, row, column) || significance_way(data) == SIGNIFICANCE_BY_NONE)
		return 0;
	if (!scratch->ranks)
		return p_of_few(data, row, column, scratch, &change->p);
	score(pooled_share(data, row, column), scratch);
	change->p = mann_whitney_p(scratch->ranks, scratch->score[DIFF_A], scratch->score[DIFF_B]);
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

static int want_ranks(struct scratch *scratch, uint32_t a_count, uint32_t b_count)
{
	if (a_count < DIFF_MIN_WINDOWS || b_count < DIFF_MIN_WINDOWS)
		return 0;
	return mann_whitney_new(a_count, b_count, &scratch->ranks);
}

struct test {
	uint64_t hash;
	struct stat_test tested;
	uint32_t row, column;
};

static int compare_tests(const void *a, const void *b)
{
	const struct test *left = a, *right = b;

	return ORDER(left->hash, right->hash) ?: ORDER(left->tested.p, right->tested.p);
}

/* Hashes what the test depends on: rows with the same values in the same windows share one test. */
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

static uint32_t collect(const struct diff_data *data, const struct diff_table *table,
			struct test *test)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < table->count; i++)
		for (unsigned int c = 0; c < DIFF_COLUMNS; c++) {
			const struct diff_row *row = &table->row[i];
			enum diff_column column = (enum diff_column)c;

			if (row->change[c].p < 0)
				continue;
			test[count++] = (struct test){
				.hash = hash_of(row, column),
				.tested = {row->change[c].p,
					   importance(pooled_share(data, row, column))},
				.row = i,
				.column = c};
		}
	qsort(test, count, sizeof(*test), compare_tests);
	return count;
}

static bool is_new(const struct test *test, uint32_t i)
{
	return !i || test[i].hash != test[i - 1].hash || test[i].tested.p > test[i - 1].tested.p;
}

/* Corrects one family of tests: self and total of all rows, as an alarm in either is an alarm.  A
 * leaf's self is its total, and the only caller of a function has the same total: such a test
 * counts once. */
static int correct(const struct diff_data *data, struct diff_table *table, uint32_t *ret_tests)
{
	size_t room = (size_t)table->count * DIFF_COLUMNS + 1;
	OWNED_MEM struct test *test = calloc(room, sizeof(*test));
	OWNED_MEM struct stat_test *family = calloc(room, sizeof(*family));
	uint32_t count, distinct = 0;
	int err;

	if (!test || !family)
		return -ENOMEM;
	count = collect(data, table, test);
	for (uint32_t i = 0; i < count; i++)
		if (is_new(test, i))
			family[distinct++] = test[i].tested;
	err = stat_holm(family, distinct);
	if (err)
		return err;
	*ret_tests = distinct;
	distinct = 0;
	for (uint32_t i = 0; i < count; i++) {
		distinct += is_new(test, i);
		table->row[test[i].row].change[test[i].column].p = family[distinct - 1].p;
	}
	return 0;
}

int significance_of_table(struct diff_data *data, enum diff_by by, uint32_t *ret_tests)
{
	OWNED(scratch) struct scratch *scratch = calloc(1, sizeof(*scratch));
	struct diff_table *table = &data->table[by];
	unsigned int columns = by == DIFF_BY_STACK ? DIFF_SELF + 1 : DIFF_COLUMNS;
	int err;

	if (!scratch)
		return -ENOMEM;
	err = want_ranks(scratch, used_slots(&data->side[DIFF_A]), used_slots(&data->side[DIFF_B]));
	for (uint32_t i = 0; !err && i < table->count; i++) {
		table->row[i].change[DIFF_TOTAL].p = UNKNOWN;
		for (unsigned int column = 0; !err && column < columns; column++)
			err = test_column(data, &table->row[i], (enum diff_column)column, scratch);
	}
	return err ? err : correct(data, table, ret_tests);
}

/* Leaves low above high when a side is one window. */
static int find_interval(const struct scratch *scratch, struct diff_change *change)
{
	struct stat_interval interval = {.low = 1};
	int err = 0;

	if (scratch->side[DIFF_A].count > 1 && scratch->side[DIFF_B].count > 1)
		err = stat_bootstrap(&scratch->side[DIFF_A], &scratch->side[DIFF_B], SEED,
				     &interval);
	change->low = interval.low;
	change->high = interval.high;
	return err;
}

int significance_interval(const struct diff_data *data, struct diff_row *row,
			  enum diff_column column)
{
	OWNED(scratch) struct scratch *scratch = calloc(1, sizeof(*scratch));

	if (!scratch)
		return -ENOMEM;
	unfold(data, row, column, scratch);
	return find_interval(scratch, &row->change[column]);
}

/* ---- the total ---- */

static void unfold_all(const struct diff_side *side, double unit_ns, struct scratch *scratch,
		       unsigned int s)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < side->slot_count; i++) {
		if (side->duration[i] <= 0)
			continue;
		scratch->value[s][count] = side->weight[i] * unit_ns;
		scratch->weight[s][count] = side->duration[i];
		scratch->score[s][count] = scratch->value[s][count] / side->duration[i];
		count++;
	}
	scratch->side[s] = (struct stat_side){
		.value = scratch->value[s], .weight = scratch->weight[s], .count = count};
}

int significance_of_all(const struct diff_data *data, double unit_ns,
			struct diff_change *ret_change)
{
	OWNED(scratch) struct scratch *scratch = calloc(1, sizeof(*scratch));
	struct diff_change change = {.p = UNKNOWN};
	int err;

	if (!scratch)
		return -ENOMEM;
	for (unsigned int s = 0; s < DIFF_SIDES; s++) {
		unfold_all(&data->side[s], unit_ns, scratch, s);
		change.share[s] = stat_share(&scratch->side[s]);
		change.cov[s] = stat_cov(&scratch->side[s]);
	}
	err = want_ranks(scratch, scratch->side[DIFF_A].count, scratch->side[DIFF_B].count);
	if (!err)
		err = find_interval(scratch, &change);
	if (err)
		return err;
	if (scratch->ranks)
		change.p = mann_whitney_p(scratch->ranks, scratch->score[DIFF_A],
					  scratch->score[DIFF_B]);
	*ret_change = change;
	return 0;
}
