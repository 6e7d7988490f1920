/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/totals.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/saturating.h"

#define NO_CODE UINT32_MAX
#define UNKNOWN -1.0

/* The standard error of a share of all, where events come by chance. */

#define NORMAL_975 1.959964 /* quantile of the normal distribution */

/* The same quantile of Student's distribution (Abramowitz and Stegun, Handbook of Mathematical
 * Functions, 26.7.5);
 * 11 % too small for one degree of freedom, 1 % for two. */
static double student_975(double degrees)
{
	static const double term[] = {2.37227, 2.82250, 2.55585, 1.58953};
	double quantile = NORMAL_975, divisor = 1;

	for (unsigned int i = 0; i < sizeof(term) / sizeof(term[0]); i++) {
		divisor *= degrees;
		quantile += term[i] / divisor;
	}
	return quantile;
}

/* Degrees of freedom of a sum of two variances (Satterthwaite), each known from value^2 / per_event
 * events.  Each is a sum of squares about 0, not about a mean: no degree is lost. */
static double degrees_of(double mine, double others, double my_events, double others_events)
{
	double spread = 0;

	if (mine > 0)
		spread += mine * mine / my_events;
	if (others > 0)
		spread += others * others / others_events;
	return spread > 0 ? fmax((mine + others) * (mine + others) / spread, 1) : 1;
}

static double events_of(double value, double per_event)
{
	return per_event > 0 ? fmax(value * value / per_event, 1) : 1;
}

double share_error(const struct share_part *part, const struct share_part *all, bool few_known)
{
	double p = part->value / all->value, rest = all->value - part->value;
	double rest_per_event = fmax(all->per_event - part->per_event, 0);
	double mine = (1 - p) * (1 - p) * part->per_event, others = p * p * rest_per_event;
	double error = sqrt(mine + others) / all->value;

	if (!few_known)
		return error;
	error *= student_975(degrees_of(mine, others, events_of(part->value, part->per_event),
					events_of(rest, rest_per_event))) /
		 NORMAL_975;
	return fmin(error, sqrt(fmax(p * (1 - p), 0))); /* of a single event */
}

void totals_init(struct totals *totals, const struct totals_options *options)
{
	*totals = (struct totals){.by = options->by};
	totals->code.by = options->code_by;
	totals->groups.by = options->group_by;
}

void totals_release(struct totals *totals)
{
	code_table_release(&totals->code);
	groups_release(&totals->groups);
	index_table_release(&totals->index);
	free(totals->row);
	id_map_release(&totals->row_of_code);
	free(totals->touched);
	*totals = (struct totals){0};
}

/* ---- rows ---- */

static bool row_equal(const void *context, uint32_t index, const void *key)
{
	const struct totals *totals = context;
	const uint32_t *pair = key;

	return totals->row[index].code == pair[0] && totals->row[index].group == pair[1];
}

static int search_row(struct totals *totals, uint32_t code, uint32_t group, uint32_t *ret_row)
{
	uint32_t pair[] = {code, group};
	uint32_t hash = (uint32_t)XXH3_64bits(pair, sizeof(pair));
	int err;

	if (index_table_find(&totals->index, hash, row_equal, totals, pair, ret_row))
		return 0;
	err = INDEX_RESERVE(&totals->index, hash, totals->row, totals->count, totals->capacity);
	if (err)
		return err;
	totals->row[totals->count] = (struct totals_row){.code = code, .group = group};
	*ret_row = totals->count++;
	return 0;
}

static int find_row(struct totals *totals, uint32_t code, uint32_t group, uint32_t *ret_row)
{
	int err;

	if (totals->groups.by.keys || code == NO_CODE)
		return search_row(totals, code, group, ret_row);
	if (id_map_find(&totals->row_of_code, code, ret_row))
		return 0;
	err = id_map_reserve(&totals->row_of_code, totals->code.capacity);
	if (!err)
		err = search_row(totals, code, group, ret_row);
	if (!err)
		id_map_set(&totals->row_of_code, code, *ret_row);
	return err;
}

static int touch(struct totals *totals, uint32_t row)
{
	int err;

	if (totals->row[row].last_window == totals->windows + 1)
		return 0;
	err = ARRAY_RESERVE(totals->touched, totals->touched_count, totals->touched_capacity);
	if (err)
		return err;
	totals->touched[totals->touched_count++] = row;
	totals->row[row].last_window = totals->windows + 1;
	totals->row[row].window_self = totals->row[row].window_total = 0;
	return 0;
}

/* ---- a sample ---- */

static void add_events(struct totals_sum *sum, const struct profile_delta *delta)
{
	sum->samples = add_saturating(sum->samples, delta->count);
	if (delta->count > 0)
		sum->per_event +=
			(double)delta->value * (double)delta->value / (double)delta->count;
}

static int add_total(struct totals *totals, uint32_t code, uint32_t group,
		     const struct profile_delta *delta, uint32_t *ret_row)
{
	struct totals_row *row;
	int err = find_row(totals, code, group, ret_row);

	if (!err)
		err = touch(totals, *ret_row);
	if (err)
		return err;
	row = &totals->row[*ret_row];
	if (row->last_sample == totals->sample)
		return 0;
	row->last_sample = totals->sample;
	row->window_total = add_saturating(row->window_total, delta->value);
	add_events(&row->total, delta);
	return 0;
}

static int add_self(struct totals *totals, uint32_t index, const struct profile_delta *delta)
{
	struct totals_row *row = &totals->row[index];

	row->window_self = add_saturating(row->window_self, delta->value);
	add_events(&row->self, delta);
	return 0;
}

static int add_delta(struct totals *totals, const struct profile *profile,
		     const struct profile_delta *delta)
{
	const struct profile_row *at = &profile->row[delta->row];
	const struct stack *stack = &profile->stacks.stack[at->stack];
	uint32_t group = 0, code, row;
	int err = 0;

	totals->sample++;
	if (totals->groups.by.keys)
		err = groups_of_set(&totals->groups, at->label_set, &group);
	if (totals->by == TOTALS_BY_GROUP) {
		if (!err)
			err = add_total(totals, NO_CODE, group, delta, &row);
		return err ? err : add_self(totals, row, delta);
	}
	/* Backwards, so that the leaf comes last. */
	for (uint32_t i = stack->count; !err && i-- > 0;) {
		err = code_table_of_location(&totals->code, stack->location[i], &code);
		if (!err)
			err = add_total(totals, code, group, delta, &row);
		if (!err && !i)
			err = add_self(totals, row, delta);
	}
	return err;
}

/* ---- a window ---- */

static void close_sum(struct totals_sum *sum, int64_t value, const struct profile_window *window)
{
	double x = (double)value;

	if (!window->is_most)
		sum->value = add_saturating(sum->value, value);
	else if (value > sum->value)
		sum->value = value;
	sum->squares += x * x;
	sum->products += x * (double)window->total;
}

/* Returns whether a window counts whose values are levels; an older one's are forgotten then. */
static bool begin_level(struct totals *totals, uint64_t start_ns)
{
	if (start_ns < totals->level_start_ns)
		return false;
	if (start_ns == totals->level_start_ns)
		return true;
	totals->level_start_ns = start_ns;
	totals->windows = 0;
	totals->duration_ns = 0;
	totals->all = (struct totals_sum){0};
	for (uint32_t i = 0; i < totals->count; i++) {
		struct totals_row *row = &totals->row[i];

		*row = (struct totals_row){
			.code = row->code, .group = row->group, .last_sample = row->last_sample};
	}
	return true;
}

int totals_add_window(struct totals *totals, struct profile *profile,
		      const struct profile_window *window)
{
	int err = 0;

	totals->code.profile = profile;
	totals->groups.profile = profile;
	if (window->is_level &&
	    (!window->delta_count || !begin_level(totals, window->start_wall_ns)))
		return 0;
	totals->touched_count = 0;
	for (size_t i = 0; !err && i < window->delta_count; i++) {
		err = add_delta(totals, profile, &window->delta[i]);
		add_events(&totals->all, &window->delta[i]);
	}
	if (err)
		return err;
	for (uint32_t i = 0; i < totals->touched_count; i++) {
		struct totals_row *row = &totals->row[totals->touched[i]];

		close_sum(&row->self, row->window_self, window);
		close_sum(&row->total, row->window_total, window);
	}
	close_sum(&totals->all, window->total, window);
	totals->windows++;
	totals->few_known |= window->counts_effective;
	totals->duration_ns += window->duration_ns;
	return 0;
}

/* ---- figures ---- */

double totals_share(const struct totals *totals, const struct totals_sum *sum)
{
	const struct profile *profile = totals->code.profile;
	const int64_t whole = (profile ? profile_signed_whole(profile) : 0) ?: totals->all.value;

	return whole ? (double)sum->value / (double)whole : 0;
}

/* Returns the error of a ratio of two sums over windows: the residuals x[i] - p w[i] have the mean
 * 0, and their spread gives that of the ratio (Cochran, Sampling Techniques, section 2.11). */
static double error_of_windows(const struct totals *totals, const struct totals_sum *sum)
{
	double p = totals_share(totals, sum), n = totals->windows;
	double residuals = sum->squares - 2 * p * sum->products + p * p * totals->all.squares;

	if (residuals < 0)
		residuals = 0;
	return sqrt(residuals * n / (n - 1)) / (double)totals->all.value;
}

/* Returns the error when events come at random: the variance of their sum is the sum of their
 * squares; that of the share follows from the events in it and the others. */
static double error_of_events(const struct totals *totals, const struct totals_sum *sum)
{
	const struct share_part part = {.value = (double)sum->value, .per_event = sum->per_event};
	const struct share_part all = {.value = (double)totals->all.value,
				       .per_event = totals->all.per_event};

	return share_error(&part, &all, totals->few_known);
}

double totals_share_error(const struct totals *totals, const struct totals_sum *sum)
{
	if (totals->all.value <= 0 || totals->code.profile->signs.has_negative)
		return UNKNOWN;
	if (totals->windows >= TOTALS_MIN_WINDOWS)
		return error_of_windows(totals, sum);
	return totals->all.samples > 0 ? error_of_events(totals, sum) : UNKNOWN;
}

uint64_t totals_wanted_ns(const struct totals *totals, const struct totals_sum *sum, double wanted)
{
	double error = totals_share_error(totals, sum);
	double longer = error / wanted;

	if (error <= wanted || !totals->duration_ns)
		return 0;
	longer = longer * longer * (double)totals->duration_ns;
	return longer < 9e18 ? (uint64_t)longer : INT64_MAX;
}
