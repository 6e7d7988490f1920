/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/profile.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/saturating.h"
#include "profile/profile_data.h"

int profile_new(const struct profile_options *options, struct intern *strings,
		struct profile **ret_profile)
{
	struct profile *profile;

	assert(options->kind);
	assert(options->value_count >= 1 && options->value_count <= PROFILE_MAX_VALUES);
	profile = calloc(1, sizeof(*profile));
	if (!profile)
		return -ENOMEM;
	profile->options = *options;
	profile->strings = strings;
	*ret_profile = profile;
	return 0;
}

void profile_free(struct profile *profile)
{
	if (!profile)
		return;
	stack_table_release(&profile->stacks);
	index_table_release(&profile->module_index);
	index_table_release(&profile->label_set_index);
	index_table_release(&profile->row_index);
	free(profile->module);
	free(profile->key);
	free(profile->label);
	free(profile->label_set);
	free(profile->row);
	free(profile->value);
	free(profile->comment);
	free(profile);
}

size_t profile_bytes(const struct profile *profile)
{
	return sizeof(*profile) + stack_table_bytes(&profile->stacks) +
	       index_table_bytes(&profile->module_index) +
	       index_table_bytes(&profile->label_set_index) +
	       index_table_bytes(&profile->row_index) +
	       profile->module_capacity * sizeof(*profile->module) +
	       profile->key_capacity * sizeof(*profile->key) +
	       profile->label_capacity * sizeof(*profile->label) +
	       profile->label_set_capacity * sizeof(*profile->label_set) +
	       profile->row_capacity * sizeof(*profile->row) +
	       profile->value_capacity * profile->options.value_count * sizeof(*profile->value) +
	       profile->comment_capacity * sizeof(*profile->comment);
}

void profile_set_duration(struct profile *profile, uint64_t duration_ns)
{
	profile->options.duration_ns = duration_ns;
}

const char *profile_kind(const struct profile *profile)
{
	return profile->options.kind;
}

size_t profile_sample_count(const struct profile *profile)
{
	return profile->row_count;
}

static bool module_equal(const void *context, uint32_t index, const void *key)
{
	const struct profile *profile = context;
	const struct module *a = &profile->module[index].module, *b = key;

	return a->path == b->path && a->build_id == b->build_id && a->start == b->start &&
	       a->limit == b->limit && a->offset == b->offset;
}

int profile_add_module(struct profile *profile, const struct module *module, uint32_t *ret_index)
{
	uint64_t mixed[] = {module->path, module->build_id, module->start, module->limit,
			    module->offset};
	uint32_t hash = (uint32_t)XXH3_64bits(mixed, sizeof(mixed));
	uint32_t found;
	int err;

	if (index_table_find(&profile->module_index, hash, module_equal, profile, module, &found)) {
		*ret_index = found + 1;
		return 0;
	}
	err = ARRAY_RESERVE(profile->module, profile->module_count, profile->module_capacity);
	if (err)
		return err;
	err = index_table_add(&profile->module_index, hash, profile->module_count);
	if (err)
		return err;
	profile->module[profile->module_count++] = (struct profile_module){.module = *module};
	*ret_index = profile->module_count;
	return 0;
}

const struct module *profile_module(const struct profile *profile, uint32_t index)
{
	return index && index <= profile->module_count ? &profile->module[index - 1].module : NULL;
}

int profile_add_comment(struct profile *profile, const char *comment)
{
	uint32_t id;
	int err = intern_string(profile->strings, comment, &id);

	if (!err)
		err = ARRAY_RESERVE(profile->comment, profile->comment_count,
				    profile->comment_capacity);
	if (!err)
		profile->comment[profile->comment_count++] = id;
	return err;
}

/* Returns a key's index.  Keys are a few literals, which are mostly found by their pointers. */
static int key_index(struct profile *profile, const struct profile_label *label,
		     uint32_t *ret_index)
{
	const char *unit = label->is_number && label->unit ? label->unit : "";
	int err;

	for (uint32_t i = 0; i < profile->key_count; i++) {
		const struct label_key *key = &profile->key[i];

		if ((key->name == label->key || !strcmp(key->name, label->key)) &&
		    (key->unit == unit || !strcmp(key->unit, unit))) {
			*ret_index = i;
			return 0;
		}
	}
	err = ARRAY_RESERVE(profile->key, profile->key_count, profile->key_capacity);
	if (err)
		return err;
	*ret_index = profile->key_count;
	profile->key[profile->key_count++] = (struct label_key){label->key, unit};
	return 0;
}

const struct stored_label *profile_find_label(const struct profile *profile, uint32_t label_set,
					      const char *name)
{
	const struct label_set *set = &profile->label_set[label_set];

	for (uint32_t i = 0; i < set->count; i++) {
		const struct stored_label *label = &profile->label[set->first + i];

		if (!strcmp(profile->key[label->key].name, name))
			return label;
	}
	return NULL;
}

int64_t profile_label_number(const struct profile *profile, uint32_t label_set, const char *name)
{
	const struct stored_label *label = profile_find_label(profile, label_set, name);

	return label && label->is_number ? label->value : 0;
}

uint32_t profile_label_text(const struct profile *profile, uint32_t label_set, const char *name)
{
	const struct stored_label *label = profile_find_label(profile, label_set, name);

	return label && !label->is_number ? (uint32_t)label->value : 0;
}

int profile_label_as_text(struct profile *profile, uint32_t label_set, const char *name,
			  uint32_t *ret_string)
{
	const struct stored_label *label = profile_find_label(profile, label_set, name);
	char number[24];

	*ret_string = label && !label->is_number ? (uint32_t)label->value : 0;
	if (!label || !label->is_number)
		return 0;
	snprintf(number, sizeof(number), "%" PRId64, label->value);
	return intern_string(profile->strings, number, ret_string);
}

int64_t profile_signed_whole(const struct profile *profile)
{
	const struct profile_signs *signs = &profile->signs;

	return signs->base ? signs->base : signs->has_negative ? signs->all : 0;
}

int profile_find_value(const struct profile_options *options, const char *type, const char *unit)
{
	for (size_t i = 0; i < options->value_count; i++)
		if (!strcmp(options->value_type[i].type, type) &&
		    (!unit || !strcmp(options->value_type[i].unit, unit)))
			return (int)i;
	return -ENOENT;
}

struct label_list {
	struct stored_label label[PROFILE_MAX_LABELS];
	uint32_t count;
};

static bool label_set_equal(const void *context, uint32_t index, const void *key)
{
	const struct profile *profile = context;
	const struct label_set *set = &profile->label_set[index];
	const struct label_list *list = key;

	if (set->count != list->count)
		return false;
	/* Without labels there is no array, and memcmp() must not get NULL. */
	return !set->count || !memcmp(profile->label + set->first, list->label,
				      set->count * sizeof(list->label[0]));
}

/* Collects the labels sorted by key, so that the caller's order does not matter. */
static int collect_labels(struct profile *profile, const struct profile_label *labels, size_t count,
			  struct label_list *list)
{
	assert(count <= PROFILE_MAX_LABELS);
	list->count = 0;
	for (size_t i = 0; i < count; i++) {
		const struct profile_label *label = &labels[i];
		struct stored_label stored = {.is_number = label->is_number != 0};
		uint32_t at = list->count;
		int err = key_index(profile, label, &stored.key);

		if (err)
			return err;
		stored.value = label->is_number ? label->number : (int64_t)label->string;
		for (; at && list->label[at - 1].key > stored.key; at--)
			list->label[at] = list->label[at - 1];
		list->label[at] = stored;
		list->count++;
	}
	return 0;
}

int profile_add_label_set(struct profile *profile, const struct profile_label *label, size_t count,
			  uint32_t *ret_id)
{
	struct label_list list;
	uint32_t hash, id = profile->label_set_count;
	int err = collect_labels(profile, label, count, &list);

	if (err)
		return err;
	hash = (uint32_t)XXH3_64bits(list.label, list.count * sizeof(list.label[0]));
	if (index_table_find(&profile->label_set_index, hash, label_set_equal, profile, &list,
			     ret_id))
		return 0;

	struct label_set set = {.first = profile->label_count, .count = list.count};

	for (uint32_t i = 0; i < list.count; i++) {
		err = ARRAY_RESERVE(profile->label, set.first + i, profile->label_capacity);
		if (err)
			return err;
		profile->label[set.first + i] = list.label[i];
	}
	err = ARRAY_RESERVE(profile->label_set, id, profile->label_set_capacity);
	if (err)
		return err;
	err = index_table_add(&profile->label_set_index, hash, id);
	if (err)
		return err;
	profile->label_count += list.count;
	profile->label_set[profile->label_set_count++] = set;
	*ret_id = id;
	return 0;
}

static bool row_equal(const void *context, uint32_t index, const void *key)
{
	const struct profile *profile = context;
	const struct profile_row *a = &profile->row[index], *b = key;

	return a->stack == b->stack && a->label_set == b->label_set;
}

/* Adds a sample to the module's weight once, however many of the sample's frames are in it. */
static void weigh_frame(struct profile *profile, const struct frame *frame, int64_t value)
{
	struct profile_module *module;

	if (!frame->module || frame->module > profile->module_count)
		return;
	module = &profile->module[frame->module - 1];
	if (module->last_add == profile->add_count)
		return;
	module->last_add = profile->add_count;
	module->weight = add_saturating(module->weight, value);
	module->kinds |= 1U << (frame->kind & 31);
}

void profile_weigh_modules(struct profile *profile)
{
	for (uint32_t i = 0; i < profile->module_count; i++)
		profile->module[i].weight = 0;
	for (uint32_t i = 0; i < profile->row_count; i++) {
		const struct stack *stack = &profile->stacks.stack[profile->row[i].stack];

		profile->add_count++;
		for (uint32_t k = 0; k < stack->count; k++)
			weigh_frame(profile, &profile->stacks.location[stack->location[k]],
				    profile_row_values(profile, i)[0]);
	}
}

int profile_add_location(struct profile *profile, const struct frame *frame, uint32_t *ret_id)
{
	return stack_table_add_location(&profile->stacks, frame, ret_id);
}

int profile_add_stack(struct profile *profile, const uint32_t *location, size_t count,
		      uint32_t *ret_id)
{
	return stack_table_add_ids(&profile->stacks, location, count, ret_id);
}

/* Makes room for the values of one more row. */
static int reserve_values(struct profile *profile)
{
	size_t row_bytes = profile->options.value_count * sizeof(profile->value[0]);
	int64_t *grown = array_grown(profile->value, profile->row_count, &profile->value_capacity,
				     UINT32_MAX, row_bytes);

	if (!grown)
		return -ENOMEM;
	profile->value = grown;
	return 0;
}

int profile_add_values(struct profile *profile, const struct profile_value_type *type, size_t count)
{
	const size_t before = profile->options.value_count;
	int64_t *value;

	if (before + count > PROFILE_MAX_VALUES)
		return -E2BIG;
	value = calloc(profile->row_count + 1U, (before + count) * sizeof(*value));
	if (!value)
		return -ENOMEM;
	for (size_t i = 0; i < profile->row_count; i++)
		memcpy(&value[i * (before + count)], &profile->value[i * before],
		       before * sizeof(*value));
	free(profile->value);
	profile->value = value;
	profile->value_capacity = profile->row_count + 1U;
	memcpy(&profile->options.value_type[before], type, count * sizeof(*type));
	profile->options.value_count += count;
	return 0;
}

static int append_row(struct profile *profile, const struct profile_row *row, uint32_t hash)
{
	uint32_t at = profile->row_count;
	int err = ARRAY_RESERVE(profile->row, at, profile->row_capacity);

	if (!err)
		err = reserve_values(profile);
	if (!err)
		err = index_table_add(&profile->row_index, hash, at);
	if (err)
		return err;
	profile->row[at] = *row;
	memset(&profile->value[(size_t)at * profile->options.value_count], 0,
	       profile->options.value_count * sizeof(profile->value[0]));
	profile->row_count++;
	return 0;
}

int profile_add_row(struct profile *profile, uint32_t stack, uint32_t label_set,
		    const int64_t *value, uint32_t *ret_row)
{
	struct profile_row row = {.stack = stack, .label_set = label_set};
	uint32_t hash = (uint32_t)XXH3_64bits(&row, sizeof(row)), at;
	int64_t *sum;

	if (!index_table_find(&profile->row_index, hash, row_equal, profile, &row, &at)) {
		int err = append_row(profile, &row, hash);

		if (err)
			return err;
		at = profile->row_count - 1;
	}
	sum = &profile->value[(size_t)at * profile->options.value_count];
	for (size_t i = 0; i < profile->options.value_count; i++)
		sum[i] = add_saturating(sum[i], value[i]);
	*ret_row = at;
	return 0;
}

int profile_add(struct profile *profile, const struct profile_sample *sample)
{
	uint32_t stack, label_set, row;
	int err;

	err = stack_table_add(&profile->stacks, sample->frame, sample->frame_count, &stack);
	if (!err)
		err = profile_add_label_set(profile, sample->label, sample->label_count,
					    &label_set);
	if (!err)
		err = profile_add_row(profile, stack, label_set, sample->value, &row);
	if (err)
		return err;
	profile->add_count++;
	for (size_t i = 0; i < sample->frame_count; i++)
		weigh_frame(profile, &sample->frame[i], sample->value[0]);
	return 0;
}

/* ---- the order of rows ---- */

struct order {
	const struct profile *profile;
	uint32_t last_key; /* index; UINT32_MAX: no label has it */
};

static int compare_numbers(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int compare_labels(const struct stored_label *a, const struct stored_label *b)
{
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return compare_numbers(a->value, b->value);
}

/* Returns the next label of a set that is not the last key's; NULL at the end. */
static const struct stored_label *next_label(const struct order *order, const struct label_set *set,
					     uint32_t *at)
{
	while (*at < set->count) {
		const struct stored_label *label = &order->profile->label[set->first + (*at)++];

		if (label->key != order->last_key)
			return label;
	}
	return NULL;
}

static int64_t last_value(const struct order *order, const struct label_set *set)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (order->profile->label[set->first + i].key == order->last_key)
			return order->profile->label[set->first + i].value;
	return INT64_MIN;
}

static int compare_sets(const struct order *order, const struct label_set *a,
			const struct label_set *b)
{
	uint32_t at_a = 0, at_b = 0;

	for (;;) {
		const struct stored_label *label_a = next_label(order, a, &at_a);
		const struct stored_label *label_b = next_label(order, b, &at_b);
		int result;

		if (!label_a || !label_b) {
			if (label_a || label_b)
				return label_a ? 1 : -1;
			return compare_numbers(last_value(order, a), last_value(order, b));
		}
		result = compare_labels(label_a, label_b);
		if (result)
			return result;
	}
}

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct order *order = context;
	const struct profile *profile = order->profile;
	const struct profile_row *row_a = &profile->row[*(const uint32_t *)a];
	const struct profile_row *row_b = &profile->row[*(const uint32_t *)b];

	if (row_a->stack != row_b->stack)
		return row_a->stack < row_b->stack ? -1 : 1;
	return compare_sets(order, &profile->label_set[row_a->label_set],
			    &profile->label_set[row_b->label_set]);
}

/* Puts the rows and their values into an order. */
static int apply_order(struct profile *profile, const uint32_t *index)
{
	const size_t values = profile->options.value_count, count = profile->row_count;
	OWNED_MEM struct profile_row *row = calloc(count, sizeof(*row));
	OWNED_MEM int64_t *value = calloc(count * values, sizeof(*value));

	if (!row || !value)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		row[i] = profile->row[index[i]];
		memcpy(value + i * values, profile_row_values(profile, index[i]),
		       values * sizeof(*value));
	}
	memcpy(profile->row, row, count * sizeof(*row));
	memcpy(profile->value, value, count * values * sizeof(*value));
	return 0;
}

int profile_order_rows(struct profile *profile, const char *last)
{
	struct order order = {.profile = profile, .last_key = UINT32_MAX};
	OWNED_MEM uint32_t *index = calloc((size_t)profile->row_count + 1, sizeof(*index));

	if (!index)
		return -ENOMEM;
	for (uint32_t i = profile->key_count; i-- > 0;)
		if (!strcmp(profile->key[i].name, last))
			order.last_key = i;
	for (uint32_t i = 0; i < profile->row_count; i++)
		index[i] = i;
	qsort_r(index, profile->row_count, sizeof(*index), compare_rows, &order);
	return profile->row_count ? apply_order(profile, index) : 0;
}
