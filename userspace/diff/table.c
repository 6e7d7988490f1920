/* SPDX-License-Identifier: BSD-2-Clause */
#include "diff/table.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/kinds.h"
#include "base/saturating.h"
#include "profile/comments.h"
#include "render/code_table.h"

#define FIRST_CELLS 4U
#define MAX_PERIOD_CHANGE 0.01
#define UNKNOWN -1.0

static void table_release(struct diff_table *table)
{
	for (uint32_t i = 0; i < table->count; i++)
		for (unsigned int side = 0; side < DIFF_SIDES; side++)
			free(table->row[i].side[side].cell);
	free(table->row);
	id_map_release(&table->row_of);
	index_table_release(&table->index);
}

void diff_data_release(struct diff_data *data)
{
	for (unsigned int i = 0; i < DIFF_TABLES; i++)
		table_release(&data->table[i]);
	for (unsigned int i = 0; i < DIFF_SIDES; i++)
		free(data->side[i].value);
	free(data->stack_frame);
	*data = (struct diff_data){0};
}

uint32_t diff_row_line(const struct diff_row *row, enum diff_by by)
{
	if (by != DIFF_BY_LINE)
		return row->start_line;
	return row->code.offset + (row->code.has_start ? row->start_line : 0);
}

/* ---- rows ---- */

static int append_row(struct diff_table *table, const struct diff_row *row, uint32_t hash,
		      uint32_t *ret_row)
{
	int err = ARRAY_RESERVE(table->row, table->count, table->capacity);

	if (!err)
		err = index_table_add(&table->index, hash, table->count);
	if (err)
		return err;
	table->row[table->count] = *row;
	*ret_row = table->count++;
	return 0;
}

static bool code_equal(const void *context, uint32_t index, const void *key)
{
	const struct diff_table *table = context;

	return !memcmp(&table->row[index].code, key, sizeof(table->row[0].code));
}

static struct diff_code code_of_frame(const struct profile *profile, const struct frame *frame,
				      enum diff_by by)
{
	const struct module *module = profile_frame_module(profile, frame);
	struct diff_code code = {.name = frame->name,
				 .file = frame->file,
				 .module = module ? module->path : 0,
				 .class = frame_class(profile, frame)};

	if (by != DIFF_BY_LINE)
		return code;
	code.has_start = frame->start_line && frame->line >= frame->start_line;
	code.offset = frame->line - (code.has_start ? frame->start_line : 0);
	return code;
}

/* A new location comes from the side being read, so the lines shown become those of B. */
static int row_of_location(struct diff_data *data, enum diff_by by, uint32_t location,
			   uint32_t *ret_row)
{
	struct diff_table *table = &data->table[by];
	const struct frame *frame = &data->profile->stacks.location[location];
	struct diff_row row = {0};
	uint32_t hash;
	int err;

	if (id_map_find(&table->row_of, location, ret_row))
		return 0;
	err = id_map_reserve(&table->row_of, data->profile->stacks.location_capacity);
	if (err)
		return err;
	row.code = code_of_frame(data->profile, frame, by);
	hash = (uint32_t)XXH3_64bits(&row.code, sizeof(row.code));
	if (!index_table_find(&table->index, hash, code_equal, table, &row.code, ret_row))
		err = append_row(table, &row, hash, ret_row);
	if (err)
		return err;
	table->row[*ret_row].start_line = frame->start_line;
	id_map_set(&table->row_of, location, *ret_row);
	return 0;
}

struct stack_key {
	const struct diff_data *data;
	uint32_t first, count;
};

static bool stack_equal(const void *context, uint32_t index, const void *arg)
{
	const struct diff_table *table = context;
	const struct stack_key *key = arg;
	const struct diff_row *row = &table->row[index];

	return row->frame_count == key->count &&
	       !memcmp(&key->data->stack_frame[row->first_frame],
		       &key->data->stack_frame[key->first],
		       (size_t)key->count * sizeof(key->data->stack_frame[0]));
}

/* Appends the functions of a stack to those of earlier stacks; the caller removes them when they
 * are known. */
static int push_frames(struct diff_data *data, const struct stack *stack)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < stack->count; i++) {
		uint32_t row = 0;

		err = row_of_location(data, DIFF_BY_FUNCTION, stack->location[i], &row);
		if (!err)
			err = ARRAY_RESERVE(data->stack_frame, data->stack_frame_count,
					    data->stack_frame_capacity);
		if (!err)
			data->stack_frame[data->stack_frame_count++] = row;
	}
	return err;
}

static int row_of_stack(struct diff_data *data, uint32_t stack_id, uint32_t *ret_row)
{
	struct diff_table *table = &data->table[DIFF_BY_STACK];
	const struct stack *stack = &data->profile->stacks.stack[stack_id];
	struct stack_key key = {data, data->stack_frame_count, stack->count};
	struct diff_row row = {.first_frame = key.first, .frame_count = key.count};
	uint32_t hash;
	int err;

	if (id_map_find(&table->row_of, stack_id, ret_row))
		return 0;
	err = id_map_reserve(&table->row_of, data->profile->stacks.stack_capacity);
	if (!err)
		err = push_frames(data, stack);
	if (err)
		return err;
	hash = (uint32_t)XXH3_64bits(data->stack_frame + key.first,
				     (size_t)key.count * sizeof(*data->stack_frame));
	if (index_table_find(&table->index, hash, stack_equal, table, &key, ret_row))
		data->stack_frame_count = key.first;
	else
		err = append_row(table, &row, hash, ret_row);
	if (!err)
		id_map_set(&table->row_of, stack_id, *ret_row);
	return err;
}

/* ---- slots ---- */

static void halve_series(struct diff_series *series)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < series->count; i++) {
		struct diff_cell cell = series->cell[i];

		cell.slot /= 2;
		if (kept && series->cell[kept - 1].slot == cell.slot) {
			for (unsigned int c = 0; c < DIFF_COLUMNS; c++)
				series->cell[kept - 1].value[c] = add_saturating(
					series->cell[kept - 1].value[c], cell.value[c]);
			continue;
		}
		series->cell[kept++] = cell;
	}
	series->count = kept;
}

static void halve(struct diff_data *data, enum diff_side_id id)
{
	struct diff_side *side = &data->side[id];

	for (uint32_t i = 0; i < DIFF_MAX_SLOTS / 2; i++) {
		side->weight[i] = side->weight[(size_t)i * 2] + side->weight[(size_t)i * 2 + 1];
		side->duration[i] =
			side->duration[(size_t)i * 2] + side->duration[(size_t)i * 2 + 1];
	}
	for (uint32_t i = DIFF_MAX_SLOTS / 2; i < DIFF_MAX_SLOTS; i++)
		side->weight[i] = side->duration[i] = 0;
	for (unsigned int t = 0; t < DIFF_TABLES; t++)
		for (uint32_t i = 0; i < data->table[t].count; i++)
			halve_series(&data->table[t].row[i].side[id]);
	side->stride *= 2;
	side->slot_count = DIFF_MAX_SLOTS / 2;
}

static uint32_t begin_window(struct diff_data *data, enum diff_side_id id)
{
	struct diff_side *side = &data->side[id];

	if (!side->stride)
		side->stride = 1;
	if (side->windows / side->stride == DIFF_MAX_SLOTS)
		halve(data, id);
	side->slot_count = side->windows / side->stride + 1;
	side->windows++;
	return side->slot_count - 1;
}

/* ---- samples ---- */

struct addition {
	enum diff_side_id side;
	uint32_t slot;
	const struct profile_delta *delta;
};

static void add_events(struct diff_sum *sum, const struct profile_delta *delta)
{
	sum->value = add_saturating(sum->value, delta->value);
	sum->samples = add_saturating(sum->samples, delta->count);
	if (delta->count > 0)
		sum->per_event +=
			(double)delta->value * (double)delta->value / (double)delta->count;
}

/* Most rows are in a few windows only. */
static int reserve_cell(struct diff_series *series)
{
	if (!series->cell) {
		series->cell = calloc(FIRST_CELLS, sizeof(*series->cell));
		if (!series->cell)
			return -ENOMEM;
		series->capacity = FIRST_CELLS;
	}
	return ARRAY_RESERVE(series->cell, series->count, series->capacity);
}

static int add_value(struct diff_row *row, const struct addition *add, enum diff_column column)
{
	struct diff_series *series = &row->side[add->side];
	struct diff_cell *cell;

	if (!series->count || series->cell[series->count - 1].slot != add->slot) {
		int err = reserve_cell(series);

		if (err)
			return err;
		series->cell[series->count++] = (struct diff_cell){.slot = add->slot};
	}
	cell = &series->cell[series->count - 1];
	cell->value[column] = add_saturating(cell->value[column], add->delta->value);
	add_events(&series->sum[column], add->delta);
	return 0;
}

static int add_frame(struct diff_data *data, const struct addition *add, enum diff_by by,
		     uint32_t location, bool is_leaf)
{
	struct diff_row *row;
	uint32_t index = 0;
	int err = row_of_location(data, by, location, &index);

	if (err)
		return err;
	row = &data->table[by].row[index];
	if (row->last_sample != data->sample)
		err = add_value(row, add, DIFF_TOTAL);
	row->last_sample = data->sample;
	if (!err && is_leaf)
		err = add_value(row, add, DIFF_SELF);
	return err;
}

static int add_delta(struct diff_data *data, const struct addition *add)
{
	uint32_t stack_id = data->profile->row[add->delta->row].stack, row = 0;
	const struct stack *stack = &data->profile->stacks.stack[stack_id];
	int err = row_of_stack(data, stack_id, &row);

	data->sample++;
	if (!err)
		err = add_value(&data->table[DIFF_BY_STACK].row[row], add, DIFF_SELF);
	for (uint32_t i = 0; !err && i < stack->count; i++) {
		err = add_frame(data, add, DIFF_BY_FUNCTION, stack->location[i], !i);
		if (!err)
			err = add_frame(data, add, DIFF_BY_LINE, stack->location[i], !i);
	}
	return err;
}

/* Adds to the row of the profile, for the page. */
static int add_row_value(struct diff_data *data, const struct addition *add)
{
	struct diff_side *side = &data->side[add->side];
	const uint32_t row = add->delta->row;

	if (ARRAY_EXTEND(side->value, data->profile->row_capacity, side->value_count))
		return -ENOMEM;
	side->value[row] = add_saturating(side->value[row], add->delta->value);
	return 0;
}

int diff_data_add_window(struct diff_data *data, enum diff_side_id id, struct profile *profile,
			 const struct profile_window *window)
{
	struct diff_side *side = &data->side[id];
	uint32_t slot = begin_window(data, id);
	int err = 0;

	data->profile = profile;
	for (size_t i = 0; !err && i < window->delta_count; i++) {
		struct addition add = {id, slot, &window->delta[i]};

		err = add_delta(data, &add);
		if (!err)
			err = add_row_value(data, &add);
		add_events(&side->all, &window->delta[i]);
	}
	side->weight[slot] += (double)window->total;
	side->duration[slot] += (double)window->duration_ns;
	side->duration_ns += window->duration_ns;
	return err;
}

/* ---- whether two sides can be compared ---- */

static void copy_text(const char *comment, const char *name, char *text, size_t size)
{
	struct fact fact;

	if (facts_find(comment, name, &fact))
		snprintf(text, size, "%.*s", (int)fact.text_size, fact.text);
}

void diff_facts_add_comment(struct diff_facts *facts, const char *text)
{
	struct fact fact;

	facts->elapsed_ns += facts_number(text, "elapsed_ns");
	facts->host_busy_ns += facts_number(text, "host_busy_ns");
	if (facts_find(text, "host_cpus", &fact))
		facts->host_cpus = fact.number;
	if (!facts_find(text, FACT_WRITER, &fact) || !facts_number(text, "hz"))
		return;
	copy_text(text, "kind", facts->kind, sizeof(facts->kind));
	copy_text(text, "host", facts->host, sizeof(facts->host));
	facts->hz = (unsigned int)facts_number(text, "hz");
}

static bool period_differs(int64_t a, int64_t b)
{
	return a > 0 && b > 0 && fabs((double)a - (double)b) > MAX_PERIOD_CHANGE * (double)b;
}

void diff_facts_add_window(struct diff_facts *facts, int64_t period, int64_t value)
{
	if (!facts->period)
		facts->period = period;
	facts->mixed += period_differs(period, facts->period);
	facts->windows++;
	if (__builtin_add_overflow(facts->value, value, &facts->value))
		facts->value = INT64_MAX;
}

double diff_facts_load(const struct diff_facts *facts)
{
	double capacity = (double)facts->elapsed_ns * (double)facts->host_cpus, others;

	if (capacity <= 0 || !facts->host_busy_ns || facts->unit_ns <= 0 || facts->is_part ||
	    !kind_is(facts->kind, PP_PROFILE_CPU))
		return UNKNOWN;
	others = (double)facts->host_busy_ns - (double)facts->value * facts->unit_ns;
	return others > 0 ? others / capacity : 0;
}

static bool rates_differ(const struct diff_facts *a, const struct diff_facts *b,
			 char ret_why[DIFF_WHY_BYTES])
{
	bool mixed = a->mixed || b->mixed;

	if (a->hz && b->hz && a->hz != b->hz)
		snprintf(ret_why, DIFF_WHY_BYTES, "one was sampled at %u Hz, the other at %u Hz",
			 a->hz, b->hz);
	else if (mixed || period_differs(a->period, b->period))
		snprintf(ret_why, DIFF_WHY_BYTES,
			 "their sampling periods differ: %" PRId64 " and %" PRId64 "%s", a->period,
			 b->period, mixed ? ", some windows have others" : "");
	else
		return false;
	return true;
}

static bool loads_differ(const struct diff_facts *a, const struct diff_facts *b,
			 char ret_why[DIFF_WHY_BYTES])
{
	double load_a = diff_facts_load(a), load_b = diff_facts_load(b);

	if (load_a < 0 || load_b < 0 || fabs(load_a - load_b) <= DIFF_MAX_LOAD_CHANGE)
		return false;
	snprintf(ret_why, DIFF_WHY_BYTES,
		 "other load on the host: what is not in the profiles took %.0f %% of its CPUs, "
		 "then %.0f %%",
		 load_a * 100, load_b * 100);
	return true;
}

enum comparable comparable_sides(const struct diff_facts *a, const struct diff_facts *b,
				 char ret_why[DIFF_WHY_BYTES])
{
	if (a->value <= 0 || b->value <= 0) {
		snprintf(ret_why, DIFF_WHY_BYTES, "%s no samples: nothing to compare",
			 a->value <= 0 && b->value <= 0 ? "both have"
			 : a->value <= 0		? "the first one has"
							: "the second one has");
		return NOTHING_TO_COMPARE;
	}
	if (a->kind[0] && b->kind[0] && strcmp(a->kind, b->kind)) {
		snprintf(ret_why, DIFF_WHY_BYTES, "one is of kind %s, the other of %s", a->kind,
			 b->kind);
		return NOT_COMPARABLE;
	}
	if (rates_differ(a, b, ret_why) || loads_differ(a, b, ret_why))
		return NOT_COMPARABLE;
	return COMPARABLE;
}
