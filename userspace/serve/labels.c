/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/labels.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/saturating.h"
#include "serve/answers.h"

#define NO_KEY UINT32_MAX
#define PROCESSES LABELS_KEYS_MAX
#define NUMBER_BYTES 24U

void labels_release(struct labels *labels)
{
	free(labels->value);
	index_table_release(&labels->index);
	*labels = (struct labels){0};
}

/* ---- sums ---- */

static uint32_t hash(uint64_t number, uint32_t more)
{
	const uint64_t mixed = (number ^ (uint64_t)more << 40) * 0x9e3779b97f4a7c15ULL;

	return (uint32_t)(mixed >> 32);
}

static bool value_equal(const void *context, uint32_t index, const void *wanted)
{
	const struct labels_value *a = &((const struct labels *)context)->value[index];
	const struct labels_value *b = wanted;

	return a->key == b->key && a->is_number == b->is_number && a->value == b->value;
}

static int add_value(struct labels *labels, const struct labels_value *value)
{
	const uint32_t at_hash = hash((uint64_t)value->value, value->key << 1 | value->is_number);
	struct labels_value *known;
	uint32_t index;
	int err;

	if (index_table_find(&labels->index, at_hash, value_equal, labels, value, &index)) {
		known = &labels->value[index];
		known->total = add_saturating(known->total, value->total);
		known->comm = known->comm ? known->comm : value->comm;
		known->app = known->app ? known->app : value->app;
		return 0;
	}
	err = INDEX_RESERVE(&labels->index, at_hash, labels->value, labels->value_count,
			    labels->value_capacity);
	if (!err)
		labels->value[labels->value_count++] = *value;
	return err;
}

/* ---- keys ---- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lists the keys whose values are told, each name once. */
static void list_keys(struct labels *labels)
{
	const struct profile *profile = labels->profile;

	for (uint32_t i = 0; i < profile->key_count; i++) {
		const char *name = profile->key[i].name;
		uint32_t at = 0;

		while (at < labels->key_count && strcmp(labels->key[at], name) != 0)
			at++;
		if (at == labels->key_count && at < LABELS_KEYS_MAX && strcmp(name, "pid") != 0 &&
		    strcmp(name, "tid") != 0)
			labels->key[labels->key_count++] = name;
	}
	qsort(labels->key, labels->key_count, sizeof(labels->key[0]), compare_names);
}

/* Returns the index of a key of the profile; PROCESSES; NO_KEY: its values are not told. */
static uint32_t find_key(const struct labels *labels, uint32_t key)
{
	const char *name = labels->profile->key[key].name;
	const char *const *found = bsearch(&name, labels->key, labels->key_count,
					   sizeof(labels->key[0]), compare_names);

	if (!strcmp(name, "pid"))
		return PROCESSES;
	return found ? (uint32_t)(found - labels->key) : NO_KEY;
}

/* ---- label sets ---- */

struct set_total {
	uint32_t set;
	int64_t total;
};

static int compare_sets(const void *a, const void *b)
{
	const struct set_total *left = a, *right = b;

	if (left->total != right->total)
		return left->total > right->total ? -1 : 1;
	return left->set < right->set ? -1 : left->set > right->set;
}

static int add_set(struct labels *labels, const struct set_total *sum, const uint32_t *told)
{
	const struct profile *profile = labels->profile;
	const struct label_set *set = &profile->label_set[sum->set];
	struct labels_value value = {.total = sum->total,
				     .comm = profile_label_text(profile, sum->set, "comm"),
				     .app = profile_label_text(profile, sum->set, "app")};
	int err = 0;

	for (uint32_t i = 0; !err && i < set->count; i++) {
		const struct stored_label *label = &profile->label[set->first + i];

		value.key = told[label->key];
		value.is_number = label->is_number;
		value.value = label->value;
		if (value.key != NO_KEY && (value.key != PROCESSES || value.is_number))
			err = add_value(labels, &value);
	}
	return err;
}

/* Adds the label sets, the largest first, as a process has the names of its largest one. */
static int add_sets(struct labels *labels, struct set_total *sum, const uint32_t *told)
{
	const uint32_t count = labels->profile->label_set_count;
	int err = 0;

	if (count)
		qsort(sum, count, sizeof(*sum), compare_sets);
	for (uint32_t i = 0; !err && i < count; i++)
		if (sum[i].total)
			err = add_set(labels, &sum[i], told);
	return err;
}

/* ---- order ---- */

static int compare_values(const void *a, const void *b, void *context)
{
	const struct labels_value *left = a, *right = b;
	const struct intern *strings = ((const struct labels *)context)->profile->strings;

	if (left->key != right->key)
		return left->key < right->key ? -1 : 1;
	if (left->total != right->total)
		return left->total > right->total ? -1 : 1;
	if (left->is_number != right->is_number)
		return left->is_number ? -1 : 1;
	if (left->is_number)
		return left->value < right->value ? -1 : left->value > right->value;
	return strcmp(intern_get(strings, (uint32_t)left->value, NULL),
		      intern_get(strings, (uint32_t)right->value, NULL));
}

int labels_of_profile(const struct profile *profile, unsigned int value_index,
		      struct labels *ret_labels)
{
	CLEANUP(labels_release) struct labels labels = {.profile = profile};
	OWNED_MEM struct set_total *sum = calloc(profile->label_set_count + 1ULL, sizeof(*sum));
	OWNED_MEM uint32_t *told = calloc(profile->key_count + 1ULL, sizeof(*told));
	int err;

	if (!sum || !told)
		return -ENOMEM;
	list_keys(&labels);
	for (uint32_t i = 0; i < profile->key_count; i++)
		told[i] = find_key(&labels, i);
	for (uint32_t i = 0; i < profile->label_set_count; i++)
		sum[i].set = i;
	for (uint32_t i = 0; i < profile->row_count; i++) {
		const int64_t value = profile_row_values(profile, i)[value_index];
		struct set_total *of_row = &sum[profile->row[i].label_set];

		of_row->total = add_saturating(of_row->total, value);
		labels.total = add_saturating(labels.total, value);
	}
	err = add_sets(&labels, sum, told);
	if (err)
		return err;
	if (labels.value_count)
		qsort_r(labels.value, labels.value_count, sizeof(*labels.value), compare_values,
			&labels);
	index_table_release(&labels.index); /* the order has changed */
	*ret_labels = labels;
	labels = (struct labels){0};
	return 0;
}

/* ---- JSON ---- */

static void put_value(const struct labels *labels, const struct labels_value *value,
		      struct json_writer *json)
{
	const struct intern *strings = labels->profile->strings;
	char number[NUMBER_BYTES];

	snprintf(number, sizeof(number), "%" PRId64, value->value);
	json_open(json, '{');
	json_put_string(json, "value",
			value->is_number ? number
					 : intern_get(strings, (uint32_t)value->value, NULL));
	json_put_int(json, "total", value->total);
	json_close(json, '}');
}

/* Writes the values of one key.  Returns the first value of the next one. */
static uint32_t put_key(const struct labels *labels, uint32_t at, struct json_writer *json)
{
	const uint32_t key = labels->value[at].key, first = at;
	uint32_t shown = 0;

	json_open(json, '{');
	json_put_string(json, "key", labels->key[key]);
	json_put_open(json, "values", '[');
	for (; at < labels->value_count && labels->value[at].key == key; at++)
		if (at - first < LABELS_VALUES_SHOWN) {
			put_value(labels, &labels->value[at], json);
			shown++;
		}
	json_close(json, ']');
	json_put_int(json, "more", at - first - shown);
	json_close(json, '}');
	return at;
}

static void put_process(const struct labels *labels, const struct labels_value *process,
			struct json_writer *json)
{
	const struct intern *strings = labels->profile->strings;

	json_open(json, '{');
	json_put_int(json, "pid", process->value);
	json_put_string(json, "comm", intern_get(strings, process->comm, NULL));
	json_put_string(json, "app", intern_get(strings, process->app, NULL));
	json_put_int(json, "total", process->total);
	json_close(json, '}');
}

void labels_put(const struct labels *labels, struct json_writer *json)
{
	uint32_t at = 0, first;

	json_put_int(json, "total", labels->total);
	json_put_open(json, "labels", '[');
	while (at < labels->value_count && labels->value[at].key != PROCESSES)
		at = put_key(labels, at, json);
	json_close(json, ']');
	json_put_open(json, "processes", '[');
	for (first = at; at < labels->value_count && at - first < LABELS_VALUES_SHOWN; at++)
		put_process(labels, &labels->value[at], json);
	json_close(json, ']');
	json_put_int(json, "processes_more", labels->value_count - at);
}

/* ---- the answer ---- */

struct told {
	const struct labels *labels;
	const struct request *request;
};

static void put_told(struct json_writer *json, const void *context)
{
	const struct told *told = context;

	json_put_string(json, "kind", told->request->stored);
	json_put_int(json, "from_ms", (int64_t)told->request->from_ms);
	json_put_int(json, "until_ms", (int64_t)told->request->until_ms);
	labels_put(told->labels, json);
}

void labels_answer(const struct answer_sources *sources, const struct request *request,
		   const struct answer_view *view, uint64_t now_ms, struct answer *ret_answer)
{
	const struct input_options options = {.drop_stacks = true, .may_be_none = true};
	CLEANUP(labels_release) struct labels labels = {0};
	OWNED(input) struct input *input = NULL;
	struct request ranged = *request;
	int err = 0;

	*ret_answer = (struct answer){0};
	if (!answer_range(&ranged, now_ms, ret_answer) ||
	    request_read(sources, &ranged, view, &options, &input, ret_answer))
		return;
	if (input)
		err = labels_of_profile(input_profile(input),
					profile_reader_value_index(input_reader(input)), &labels);
	if (err)
		answer_say(ret_answer, 503, "no memory\n");
	else
		answer_json(ret_answer, put_told, &(struct told){&labels, &ranged});
}
