/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/row_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_data.h"

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

static uint32_t find_key(const struct profile *profile, const char *name)
{
	for (uint32_t i = 0; i < profile->key_count; i++)
		if (!strcmp(profile->key[i].name, name))
			return i;
	return UINT32_MAX;
}

/* Puts the rows and their values into an order. */
static int apply(struct profile *profile, const uint32_t *index)
{
	const size_t values = profile->options.value_count, count = profile->row_count;
	struct profile_row *row = calloc(count, sizeof(*row));
	int64_t *value = calloc(count * values, sizeof(*value));

	if (!row || !value) {
		free(row);
		free(value);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		row[i] = profile->row[index[i]];
		memcpy(value + i * values, profile_row_values(profile, index[i]),
		       values * sizeof(*value));
	}
	memcpy(profile->row, row, count * sizeof(*row));
	memcpy(profile->value, value, count * values * sizeof(*value));
	free(row);
	free(value);
	return 0;
}

int profile_order_rows(struct profile *profile, const char *last)
{
	struct order order = {.profile = profile, .last_key = find_key(profile, last)};
	OWNED_MEM uint32_t *index = calloc((size_t)profile->row_count + 1, sizeof(*index));

	if (!index)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->row_count; i++)
		index[i] = i;
	qsort_r(index, profile->row_count, sizeof(*index), compare_rows, &order);
	return profile->row_count ? apply(profile, index) : 0;
}
