/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/cuda_totals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <pyprofd/sample.h>

#include "drain/counts.h"
#include "drain/hash_set.h"
#include "drain/table.h"

/* Counters of a row that are kept for windows in which it has none, and for how many of these: the
 * dictionary forgets stacks that are not used. */
#define KEPT_ROWS 4U
#define KEPT_WINDOWS 6U

/* What is divided among stacks. */
struct sums {
	uint64_t calls, bytes, host_ns, wait_ns;
};

/* How far a row's sums have been given to its counters. */
struct passed {
	uint64_t samples, weight;
};

struct kept {
	struct pp_count_key key;
	struct pp_count count;
};

struct row {
	uint64_t id; /* first: hash_set.h */
	struct pp_cuda_totals now, counted;
	struct cuda_fresh fresh; /* what this window divides; without its spread */
	uint64_t squares;	 /* of that, as in struct pp_cuda_totals */
	struct pp_count walked;	 /* the sum of the window's counters */
	struct passed passed;
	struct kept kept[KEPT_ROWS];
	uint32_t kept_count;
	uint32_t kept_window;
	uint32_t idle;	 /* windows since it had something new */
	bool is_ended;	 /* its process */
	bool is_removed; /* the kernel side's row */
};

struct cuda_totals {
	struct hash_set set;
	uint32_t window; /* counts up */
};

int cuda_totals_new(struct cuda_totals **ret_totals)
{
	OWNED(cuda_totals) struct cuda_totals *totals = calloc(1, sizeof(*totals));

	if (!totals)
		return -ENOMEM;
	hash_set_init(&totals->set);
	*ret_totals = TAKE(totals);
	return 0;
}

void cuda_totals_free(struct cuda_totals *totals)
{
	if (!totals)
		return;
	hash_set_release(&totals->set);
	free(totals);
}

/* ---- what the kernel side has added up ---- */

int cuda_totals_note(struct cuda_totals *totals, uint64_t id, const struct pp_cuda_totals *now)
{
	struct row *row = hash_set_get(&totals->set, id, sizeof(*row));

	if (!row)
		return -ENOMEM;
	row->now = *now;
	return 0;
}

/* Returns whether there is something to divide among stacks. */
static bool has_any(const struct cuda_fresh *fresh)
{
	return fresh->calls || fresh->bytes || fresh->host_ns || fresh->wait_ns;
}

/* Takes what was not divided yet; a histogram goes round, as the kernel side's does. */
static void take_fresh(struct row *row)
{
	const struct pp_cuda_totals *now = &row->now, *counted = &row->counted;

	row->fresh = (struct cuda_fresh){.id = row->id,
					 .what = now->what,
					 .name = now->name,
					 .calls = now->calls - counted->calls,
					 .bytes = now->bytes - counted->bytes,
					 .host_ns = now->host_ns - counted->host_ns,
					 .wait_ns = now->wait_ns - counted->wait_ns,
					 .captured = now->captured - counted->captured,
					 .nodes = now->nodes - counted->nodes,
					 .unknown = now->unknown - counted->unknown};
	for (size_t i = 0; i < PP_CUDA_HISTOGRAM; i++)
		row->fresh.histogram[i] = now->histogram[i] - counted->histogram[i];
	row->squares = now->squares - counted->squares;
	row->idle = has_any(&row->fresh) || row->fresh.captured ? 0 : row->idle + 1;
	row->counted = row->now;
	row->walked = (struct pp_count){};
	row->passed = (struct passed){};
}

/* ---- shares ---- */

/* Returns the share of a part that begins at `before`, of `all` parts; all shares add up to
 * `sum`. */
static uint64_t share(uint64_t sum, uint64_t before, uint64_t part, uint64_t all)
{
	const unsigned __int128 wide = sum;

	if (!all)
		return 0;
	return (uint64_t)(wide * (before + part) / all) - (uint64_t)(wide * before / all);
}

static uint64_t share_by_samples(const struct row *row, uint64_t sum, const struct pp_count *part)
{
	return share(sum, row->passed.samples, part->samples, row->walked.samples);
}

static uint64_t share_by_weight(const struct row *row, uint64_t sum, const struct pp_count *part)
{
	return share(sum, row->passed.weight, part->weight, row->walked.weight);
}

/* Returns a counter's share of a row's sums.  Bytes, and the time that the device takes, go by what
 * the counter's calls have of them; all else goes by calls. */
static struct sums share_of(struct row *row, const struct pp_count *part)
{
	const struct cuda_fresh *fresh = &row->fresh;
	const bool has_weight = row->walked.weight, has_samples = row->walked.samples;
	const bool is_by_weight = (fresh->wait_ns && has_weight) || !has_samples;
	struct sums sums;

	sums.calls = has_samples ? share_by_samples(row, fresh->calls, part)
				 : share_by_weight(row, fresh->calls, part);
	sums.bytes = has_weight ? share_by_weight(row, fresh->bytes, part)
				: share_by_samples(row, fresh->bytes, part);
	sums.host_ns = is_by_weight ? share_by_weight(row, fresh->host_ns, part)
				    : share_by_samples(row, fresh->host_ns, part);
	sums.wait_ns = is_by_weight ? share_by_weight(row, fresh->wait_ns, part)
				    : share_by_samples(row, fresh->wait_ns, part);
	row->passed.samples += part->samples;
	row->passed.weight += part->weight;
	return sums;
}

static int add_kind(struct counts *counts, struct pp_count_key key, uint32_t kind,
		    struct pp_count count)
{
	key.kind = kind;
	return count.samples || count.weight ? counts_add(counts, &key, &count) : 0;
}

/* Adds sums under a stack. */
static int add_sums(struct counts *counts, const struct pp_count_key *key, const struct sums *sums)
{
	const struct pp_count calls = {.samples = sums->calls, .weight = sums->host_ns};
	int err = add_kind(counts, *key, PP_KIND_CUDA, calls);

	if (!err)
		err = add_kind(counts, *key, PP_KIND_CUDA_WAIT,
			       (struct pp_count){.weight = sums->wait_ns});
	if (!err)
		err = add_kind(counts, *key, PP_KIND_CUDA_BYTES,
			       (struct pp_count){.weight = sums->bytes});
	return err;
}

/* ---- the counters of a window ---- */

/* Keeps the row's counters with the most calls. */
static void keep(struct cuda_totals *totals, struct row *row, const struct counted *counted)
{
	struct kept *least = row->kept;

	if (row->kept_window != totals->window)
		row->kept_count = 0;
	row->kept_window = totals->window;
	if (row->kept_count < KEPT_ROWS) {
		row->kept[row->kept_count++] = (struct kept){counted->key, counted->count};
		return;
	}
	for (size_t i = 1; i < KEPT_ROWS; i++)
		if (row->kept[i].count.samples < least->count.samples)
			least = &row->kept[i];
	if (least->count.samples < counted->count.samples)
		*least = (struct kept){counted->key, counted->count};
}

static struct row *row_of(const struct cuda_totals *totals, const struct counted *counted)
{
	return counted->key.kind == PP_KIND_CUDA ? hash_set_find(&totals->set, counted->key.detail)
						 : NULL;
}

static void add_walked(struct row *row, const struct pp_count *count)
{
	row->walked.samples += count->samples;
	row->walked.weight += count->weight;
}

/* Divides what the rows have among the counters that the window has. */
static int divide_counted(struct cuda_totals *totals, struct counts *counts)
{
	const size_t count = counts->count;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		const struct counted counted = counts->entry[i];
		struct row *row = row_of(totals, &counted);
		struct sums sums;

		if (counted.key.kind != PP_KIND_CUDA)
			continue;
		counts->entry[i].count = (struct pp_count){};
		if (!row)
			continue; /* it had no room, and the totals have its calls */
		keep(totals, row, &counted);
		sums = share_of(row, &counted.count);
		err = add_sums(counts, &counted.key, &sums);
	}
	return err;
}

/* Divides a row that has no counters in this window among those of an earlier one. */
static int divide_kept(const struct cuda_totals *totals, struct row *row, struct counts *counts)
{
	const struct pp_count_key others = {.user_stack = PP_STACK_OTHERS,
					    .detail = row->id,
					    .id = row->now.what.id,
					    .kind = PP_KIND_CUDA};
	const struct cuda_fresh *fresh = &row->fresh;
	const struct sums all = {fresh->calls, fresh->bytes, fresh->host_ns, fresh->wait_ns};
	int err = 0;

	if (!row->kept_count || totals->window - row->kept_window > KEPT_WINDOWS)
		return add_sums(counts, &others, &all);
	for (size_t i = 0; i < row->kept_count; i++)
		add_walked(row, &row->kept[i].count);
	if (!row->walked.samples && !row->walked.weight)
		return add_sums(counts, &others, &all);
	for (size_t i = 0; i < row->kept_count && !err; i++) {
		const struct sums sums = share_of(row, &row->kept[i].count);

		err = add_sums(counts, &row->kept[i].key, &sums);
	}
	return err;
}

int cuda_totals_divide(struct cuda_totals *totals, struct counts *counts)
{
	int err;

	totals->window++;
	for (size_t i = 0; i < totals->set.count; i++)
		take_fresh(totals->set.entry[i]);
	for (size_t i = 0; i < counts->count; i++) {
		struct row *row = row_of(totals, &counts->entry[i]);

		if (row)
			add_walked(row, &counts->entry[i].count);
	}
	err = divide_counted(totals, counts);
	for (size_t i = 0; i < totals->set.count && !err; i++) {
		struct row *row = totals->set.entry[i];

		if (has_any(&row->fresh) && !row->walked.samples && !row->walked.weight)
			err = divide_kept(totals, row, counts);
	}
	return err;
}

/* ---- the kernel side's table ---- */

static int on_row(void *context, const void *key, const void *value)
{
	return cuda_totals_note(context, *(const uint64_t *)key, value);
}

static bool is_kept(const void *context, const void *entry)
{
	const struct row *row = entry;

	(void)context;
	return !row->is_removed;
}

/* What has ended before the table is read has its last sums there. */
static void note_ended(struct cuda_totals *totals, const struct cuda_tables *tables)
{
	for (size_t i = 0; i < totals->set.count; i++) {
		struct row *row = totals->set.entry[i];

		row->is_ended = !tables->is_alive(tables->context, row->now.what.id);
	}
}

/* Says to the kernel side that a process that goes on has one row less. */
static void note_removed(const struct cuda_tables *tables, struct pp_process_id id)
{
	uint64_t removed = 0;

	(void)table_get(tables->removed, &id, &removed);
	removed++;
	(void)table_set(tables->removed, &id, &removed);
}

/* What was noted of processes that have ended makes room for others. */
static int on_removed(void *context, const void *key, const void *value)
{
	const struct cuda_tables *tables = context;
	struct pp_process_id id;

	(void)value;
	memcpy(&id, key, sizeof(id));
	if (!tables->is_alive(tables->context, id))
		(void)table_remove(tables->removed, &id);
	return 0;
}

/* Returns whether a call of the row has not returned: its time will be added. */
static bool has_open_calls(const struct row *row, const struct cuda_tables *tables)
{
	uint64_t returned = 0;

	if (!tables->is_timed(row->now.what.api))
		return false;
	for (size_t i = 0; i < PP_CUDA_HISTOGRAM; i++)
		returned += row->now.histogram[i];
	return (uint32_t)returned != (uint32_t)row->now.calls;
}

/* Returns whether something was added since the table was read. */
static bool has_changed(const struct row *row, const struct cuda_tables *tables)
{
	struct pp_cuda_totals now;

	return !table_get(tables->totals, &row->id, &now) &&
	       (now.calls != row->now.calls || now.captured != row->now.captured);
}

static bool is_needed(const struct row *row, const struct cuda_tables *tables, bool are_many)
{
	return !are_many || row->idle < CUDA_TOTALS_IDLE_WINDOWS ||
	       row->now.what.ident == PP_CUDA_IDENT_OTHERS || has_open_calls(row, tables) ||
	       has_changed(row, tables);
}

/* Its user has room for one row more. */
static void give_row(const struct cuda_tables *tables, uint32_t user)
{
	user_shares_give(&tables->shares, user, offsetof(struct pp_user_share, cuda_rows));
}

/* Removes a row that is not needed any more.  Returns whether it was. */
static bool remove_row(struct row *row, const struct cuda_tables *tables, bool are_many)
{
	int err;

	if (!row->is_ended && is_needed(row, tables, are_many))
		return false;
	err = table_remove(tables->totals, &row->id);
	row->is_removed = !err || err == -ENOENT;
	if (!err)
		give_row(tables, row->now.user);
	if (row->is_removed && !row->is_ended)
		note_removed(tables, row->now.what.id);
	return row->is_removed;
}

int cuda_totals_collect(struct cuda_totals *totals, const struct cuda_tables *tables,
			struct counts *counts, uint64_t *ret_rows)
{
	struct cuda_tables sweeping = *tables;
	uint64_t rows;
	bool are_many;
	int err;

	hash_set_filter(&totals->set, is_kept, totals);
	note_ended(totals, tables);
	err = table_read(tables->totals, sizeof(uint64_t), sizeof(struct pp_cuda_totals), on_row,
			 totals);
	if (!err)
		err = cuda_totals_divide(totals, counts);
	if (err)
		return err;
	rows = totals->set.count;
	are_many = rows > CUDA_TOTALS_MANY;
	for (size_t i = 0; i < totals->set.count; i++)
		if (remove_row(totals->set.entry[i], tables, are_many))
			rows--;
	*ret_rows = rows;
	return table_read(tables->removed, sizeof(struct pp_process_id), sizeof(uint64_t),
			  on_removed, &sweeping);
}

/* ---- what a window had ---- */

/* Returns the sum of w (w - 1) over the walks that a window's calls were divided among, which
 * stand for all of them. */
static uint64_t spread_of(const struct row *row)
{
	const double calls = (double)row->fresh.calls, walked = (double)row->walked.samples;
	const bool has_walks = row->squares && row->walked.samples;
	/* Without walks they came from one place that somebody saw. */
	const double squares = has_walks
				       ? (double)row->squares * (calls / walked) * (calls / walked)
				       : calls * calls;

	return squares > calls ? squares - calls < 0x1p64 ? (uint64_t)(squares - calls) : UINT64_MAX
			       : 0;
}

int cuda_totals_fresh(const struct cuda_totals *totals, cuda_on_fresh *on_fresh, void *context)
{
	int err = 0;

	for (size_t i = 0; i < totals->set.count && !err; i++) {
		const struct row *row = totals->set.entry[i];
		struct cuda_fresh fresh = row->fresh;

		if (!has_any(&fresh) && !fresh.captured)
			continue;
		fresh.spread = spread_of(row);
		err = on_fresh(context, &fresh);
	}
	return err;
}

uint64_t cuda_totals_name(const struct cuda_totals *totals, uint64_t id)
{
	const struct row *row = hash_set_find(&totals->set, id);

	return row ? row->now.name : 0;
}

void cuda_totals_hold(struct cuda_totals *totals, uint64_t id)
{
	struct row *row = hash_set_find(&totals->set, id);

	if (row)
		row->idle = 0;
}

const struct pp_cuda_what *cuda_totals_what(const struct cuda_totals *totals, uint64_t id)
{
	const struct row *row = hash_set_find(&totals->set, id);

	return row ? &row->now.what : NULL;
}
