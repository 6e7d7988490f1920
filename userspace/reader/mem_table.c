/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/mem_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/kinds.h"
#include "base/saturating.h"

void mem_table_release(struct mem_table *table)
{
	code_table_release(&table->code);
	free(table->row);
	*table = (struct mem_table){0};
}

/* Finds the sample types by their names: another program may have written them in another order. */
static bool find_columns(const struct profile *profile, enum pp_profile kind,
			 unsigned int column[MEM_COLUMNS])
{
	const struct kind *own = kind_get(kind);
	const struct profile_options *options = &profile->options;

	for (unsigned int i = 0; own->value[i].type; i++) {
		unsigned int at = 0;

		while (at < options->value_count &&
		       strcmp(options->value_type[at].type, own->value[i].type) != 0)
			at++;
		if (at == options->value_count)
			return false;
		column[i] = at;
	}
	return true;
}

/* ---- filling ---- */

static void add_held(struct mem_row *row, const struct held *held, uint32_t index)
{
	row->at_peak = add_saturating(row->at_peak, held_at_peak(held, index));
	row->for_long = add_saturating(row->for_long, held_for_long(held, index));
	for (uint32_t i = 0; i < held->points; i++)
		row->point[i] = add_saturating(row->point[i], held_at_point(held, index, i));
}

static void find_growth(struct mem_row *row, const struct held *held)
{
	const struct held_window *first = NULL, *last = NULL;
	int64_t first_bytes = 0, last_bytes = 0;

	for (uint32_t i = 0; i < held->points; i++) {
		if (!held_has_point(held, i))
			continue;
		if (!first) {
			first = &held->point[i];
			first_bytes = row->point[i];
		} else {
			row->intervals++;
			row->grew += row->point[i] > last_bytes;
		}
		last = &held->point[i];
		last_bytes = row->point[i];
	}
	if (row->intervals)
		row->growth = ((double)last_bytes - (double)first_bytes) * 60 * NS_PER_SEC /
			      (double)(last->end_ns - first->end_ns);
}

static int leaf_code(struct mem_table *table, const struct profile *profile, uint32_t index,
		     uint32_t *ret_code)
{
	const struct stack *stack = &profile->stacks.stack[profile->row[index].stack];

	return stack->count ? code_table_of_location(&table->code, stack->location[0], ret_code)
			    : code_table_add(&table->code, &(struct code){0}, ret_code);
}

static int add_rows(struct mem_table *table, const struct profile *profile,
		    const unsigned int column[MEM_COLUMNS], const struct held *held)
{
	const unsigned int columns = table->is_alloc ? MEM_ALLOC_TYPES : MEM_TYPES;
	CLEANUP(id_map_release) struct id_map row_of_code = {0};
	int err = 0;

	for (uint32_t i = 0; i < profile->row_count && !err; i++) {
		const int64_t *value = profile_row_values(profile, i);
		uint32_t code, at;

		err = leaf_code(table, profile, i, &code);
		if (!err)
			err = id_map_reserve(&row_of_code, table->code.capacity);
		if (err)
			return err;
		if (!id_map_find(&row_of_code, code, &at)) {
			at = table->count++;
			table->row[at] = (struct mem_row){.code = code};
			id_map_set(&row_of_code, code, at);
		}
		for (unsigned int k = 0; k < columns; k++) {
			int64_t *sum = &table->row[at].value[k];

			*sum = add_saturating(*sum, value[column[k]]);
			table->all[k] = add_saturating(table->all[k], value[column[k]]);
		}
		if (table->is_alloc)
			add_held(&table->row[at], held, i);
	}
	return 0;
}

int mem_table_fill(struct mem_table *table, const struct profile *profile, const struct held *held)
{
	unsigned int column[MEM_COLUMNS];
	int err;

	table->is_alloc = kind_is(profile->options.kind, PP_PROFILE_ALLOC);
	if (!find_columns(profile, table->is_alloc ? PP_PROFILE_ALLOC : PP_PROFILE_MEM, column))
		return -EPROTO;
	code_table_init(&table->code, profile, CODE_BY_LINE);
	table->row = calloc((size_t)profile->row_count + 1, sizeof(*table->row));
	if (!table->row)
		return -ENOMEM;
	err = add_rows(table, profile, column, held);
	for (uint32_t i = 0; i < table->count && table->is_alloc && !err; i++)
		find_growth(&table->row[i], held);
	return err;
}

/* ---- the order ---- */

bool mem_row_leaks(const struct mem_row *row)
{
	return row->growth > 0 && row->grew * 2 > row->intervals;
}

static int by_number(int64_t left, int64_t right)
{
	return (left < right) - (left > right);
}

static int by_code(const struct mem_row *a, const struct mem_row *b)
{
	return (a->code > b->code) - (a->code < b->code);
}

static int compare_touched(const void *left, const void *right)
{
	const struct mem_row *a = left, *b = right;
	int order = by_number(add_saturating(a->value[MEM_TOUCHED], a->value[MEM_COPIED]),
			      add_saturating(b->value[MEM_TOUCHED], b->value[MEM_COPIED]));

	return order ? order : by_code(a, b);
}

static int compare_held(const void *left, const void *right)
{
	const struct mem_row *a = left, *b = right;
	int order = by_number(a->value[MEM_HELD], b->value[MEM_HELD]);

	if (!order)
		order = by_number(a->value[MEM_ALLOCATED], b->value[MEM_ALLOCATED]);
	return order ? order : by_code(a, b);
}

static int compare_leaks(const void *left, const void *right)
{
	const struct mem_row *a = left, *b = right;

	if (mem_row_leaks(a) != mem_row_leaks(b))
		return mem_row_leaks(a) ? -1 : 1;
	if (mem_row_leaks(a) && (a->growth > b->growth || a->growth < b->growth))
		return a->growth > b->growth ? -1 : 1;
	if (a->for_long != b->for_long)
		return by_number(a->for_long, b->for_long);
	return compare_held(left, right);
}

void mem_table_sort(struct mem_table *table, bool by_leak)
{
	if (table->count)
		qsort(table->row, table->count, sizeof(*table->row),
		      by_leak		? compare_leaks
		      : table->is_alloc ? compare_held
					: compare_touched);
}
