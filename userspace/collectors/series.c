/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/series.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/index_table.h"
#include "config/relabel.h"
#include "profile/profile_data.h"

/* ---- whose a sample is ---- */

uint32_t push_service_name(const struct profile *profile, uint32_t label_set)
{
	static const char *const keys[] = {PUSH_SERVICE_LABELS};

	uint32_t name = 0;

	for (size_t i = 0; !name && i < ARRAY_SIZE(keys); i++)
		name = profile_label_text(profile, label_set, keys[i]);
	return name;
}

/* ---- series that were sent ---- */

#define PLACES_MAX (PUSH_SERIES_MAX - 1) /* the last one is that of all others */
/* A newcomer's weight in a window against the other's in the hour: what is as heavy stays. */
#define HEAVIER_TIMES 2U

void push_known_series_begin(struct push_known_series *known, uint64_t start_ms)
{
	const uint64_t hour = start_ms / PUSH_SERIES_HOUR_MS;

	if (known->hour == hour)
		return;
	memset(known, 0, sizeof(*known));
	known->hour = hour;
}

/* Returns the user's index, or user_count. */
static uint32_t find_user(const struct push_known_series *known, uint64_t id)
{
	uint32_t at = 0;

	while (at < known->user_count && known->user[at].id != id)
		at++;
	return at;
}

/* Returns whether a user may take one more of what is shared. */
static bool has_share(uint64_t user, uint32_t taken, uint32_t used, uint32_t total)
{
	const uint32_t left = total - used;

	return left && (user == PUSH_USER_ROOT || taken + 1 < left);
}

/* Finds the lightest series of this user, or of one who has more.  Returns false: there is none. */
static bool find_lightest(const struct push_known_series *known, uint32_t user, uint32_t *ret_at)
{
	bool is_found = false;

	for (uint32_t i = 0; i < known->count; i++) {
		const uint32_t other = known->series[i].user;

		if (other != user && known->user[other].held <= known->user[user].held + 1)
			continue;
		if (is_found && known->series[i].weight >= known->series[*ret_at].weight)
			continue;
		*ret_at = i;
		is_found = true;
	}
	return is_found;
}

/* Takes a place that is free, or that of a lighter series.  Returns false: there is none. */
static bool find_place(struct push_known_series *known, uint64_t id, uint32_t user, uint64_t weight,
		       uint32_t *ret_at)
{
	if (has_share(id, known->user[user].held, known->count, PLACES_MAX)) {
		*ret_at = known->count++;
		return true;
	}
	if (!has_share(id, known->user[user].displaced, known->displaced,
		       PUSH_SERIES_DISPLACED_MAX) ||
	    !find_lightest(known, user, ret_at) ||
	    weight / HEAVIER_TIMES <= known->series[*ret_at].weight)
		return false;
	known->user[known->series[*ret_at].user].held--;
	known->user[user].displaced++;
	known->displaced++;
	return true;
}

bool push_known_series_admit(struct push_known_series *known, uint64_t hash, uint64_t user,
			     uint64_t weight)
{
	const uint32_t user_at = find_user(known, user);
	uint32_t at;

	for (at = 0; at < known->count; at++) {
		if (known->series[at].hash != hash)
			continue;
		known->series[at].weight += weight;
		return true;
	}
	if (!find_place(known, user, user_at, weight, &at))
		return false;
	known->user[user_at].id = user;
	known->user[user_at].held++;
	if (user_at == known->user_count)
		known->user_count++;
	known->series[at].hash = hash;
	known->series[at].user = user_at;
	known->series[at].weight = weight;
	return true;
}

/* ---- the division ---- */

#define NUMBER_CHARS 24U
#define NO_SERIES UINT32_MAX
#define UNWANTED_SERIES (UINT32_MAX - 1) /* rules leave it out */
#define ROOT_NAME "root"
#define WEIGHT_UNITS 1e6 /* of a window: windows of all kinds are compared */

void push_division_release(struct push_division *division)
{
	for (uint32_t i = 0; i < division->count; i++)
		free(division->series[i].row);
	free(division->series);
	*division = (struct push_division){0};
}

struct divider {
	struct profile *profile;
	const struct push_label_choice *choice;
	struct push_known_series *known;
	struct push_division division;
	struct index_table index; /* of the series, by their values */
	uint32_t *of_label_set;	  /* series, or UNWANTED_SERIES; NO_SERIES: not known yet */
};

static void divider_release(struct divider *divider)
{
	push_division_release(&divider->division);
	index_table_release(&divider->index);
	free(divider->of_label_set);
}

/* Returns where in value[] a series' user is. */
static size_t user_at(const struct push_label_choice *choice)
{
	return 1 + choice->count;
}

static size_t key_bytes(const struct push_label_choice *choice)
{
	return (user_at(choice) + 1) * sizeof(uint32_t);
}

const char *push_series_key(const struct push_label_choice *choice, size_t index)
{
	if (index > user_at(choice))
		return NULL;
	return index == user_at(choice) ? PUSH_USER_LABEL : choice->key[index - 1];
}

static bool series_equal(const void *context, uint32_t index, const void *key)
{
	const struct divider *divider = context;

	return !memcmp(divider->division.series[index].value, key, key_bytes(divider->choice));
}

static int values_of(struct divider *divider, uint32_t label_set, struct push_series *ret_series)
{
	struct profile *profile = divider->profile;
	int err = 0;

	ret_series->value[0] = push_service_name(profile, label_set);
	for (size_t i = 0; !err && i < divider->choice->count; i++)
		err = profile_label_as_text(profile, label_set, divider->choice->key[i],
					    &ret_series->value[1 + i]);
	return err;
}

/* Collects the labels of a set, with the service's name among them. */
static int labels_of(const struct profile *profile, uint32_t label_set,
		     struct relabel_labels *labels)
{
	const struct label_set *set = &profile->label_set[label_set];
	int err = 0;

	for (uint32_t i = 0; !err && i < set->count; i++) {
		const struct stored_label *label = &profile->label[set->first + i];
		char number[NUMBER_CHARS];

		snprintf(number, sizeof(number), "%" PRId64, label->value);
		err = relabel_labels_set(labels, profile->key[label->key].name,
					 label->is_number
						 ? number
						 : intern_get(profile->strings,
							      (uint32_t)label->value, NULL));
	}
	return err ? err
		   : relabel_labels_set(labels, PUSH_SERVICE_NAME,
					intern_get(profile->strings,
						   push_service_name(profile, label_set), NULL));
}

/* As values_of(), behind the rules. */
static int ruled_values_of(struct divider *divider, uint32_t label_set,
			   struct push_series *ret_series, bool *ret_wanted)
{
	CLEANUP(relabel_labels_release) struct relabel_labels labels = {.count = 0};
	const struct push_label_choice *choice = divider->choice;
	struct intern *strings = divider->profile->strings;
	int err = labels_of(divider->profile, label_set, &labels);

	if (!err)
		err = relabel_rules_apply(choice->rules, &labels, ret_wanted);
	if (!err)
		err = intern_string(strings, relabel_labels_get(&labels, PUSH_SERVICE_NAME),
				    &ret_series->value[0]);
	for (size_t i = 0; !err && i < choice->count; i++)
		err = intern_string(strings, relabel_labels_get(&labels, choice->key[i]),
				    &ret_series->value[1 + i]);
	return err;
}

static bool is_chosen(const struct push_label_choice *choice, const char *key)
{
	for (size_t i = 0; i < choice->count; i++)
		if (!strcmp(choice->key[i], key))
			return true;
	return false;
}

/* Notes whose a series is: a number that stands for the user, and the name, unless it is among the
 * chosen labels. */
static void set_user(const struct divider *divider, uint32_t label_set, struct push_series *series)
{
	const struct profile *profile = divider->profile;
	const struct stored_label *label = profile_find_label(profile, label_set, PUSH_USER_LABEL);
	const char *name;
	size_t size;

	series->user = PUSH_USER_UNKNOWN;
	if (!label || label->is_number)
		return;
	name = intern_get(profile->strings, (uint32_t)label->value, &size);
	series->user = strcmp(name, ROOT_NAME) ? XXH3_64bits(name, size) : PUSH_USER_ROOT;
	if (!is_chosen(divider->choice, PUSH_USER_LABEL))
		series->value[user_at(divider->choice)] = (uint32_t)label->value;
}

static int find_series(struct divider *divider, const struct push_series *wanted, uint32_t *ret_at)
{
	struct push_division *division = &divider->division;
	uint32_t hash = (uint32_t)XXH3_64bits(wanted->value, key_bytes(divider->choice));
	int err;

	if (index_table_find(&divider->index, hash, series_equal, divider, wanted->value, ret_at))
		return 0;
	err = INDEX_RESERVE(&divider->index, hash, division->series, division->count,
			    division->capacity);
	if (err)
		return err;
	*ret_at = division->count;
	division->series[division->count++] = *wanted;
	return 0;
}

static int series_of_label_set(struct divider *divider, uint32_t label_set, uint32_t *ret_at)
{
	struct push_series wanted = {0};
	bool is_wanted = true;
	int err = 0;

	if (divider->of_label_set[label_set] == NO_SERIES) {
		err = divider->choice->rules
			      ? ruled_values_of(divider, label_set, &wanted, &is_wanted)
			      : values_of(divider, label_set, &wanted);
		set_user(divider, label_set, &wanted);
		if (!err && is_wanted)
			err = find_series(divider, &wanted, &divider->of_label_set[label_set]);
		else if (!err)
			divider->of_label_set[label_set] = UNWANTED_SERIES;
	}
	if (!err)
		*ret_at = divider->of_label_set[label_set];
	return err;
}

static int add_row(struct push_series *series, uint32_t row, uint64_t weight)
{
	int err = ARRAY_RESERVE(series->row, series->row_count, series->row_capacity);

	if (err)
		return err;
	series->row[series->row_count++] = row;
	if (__builtin_add_overflow(series->weight, weight, &series->weight))
		series->weight = UINT64_MAX;
	return 0;
}

static int add_rows(struct divider *divider)
{
	const struct profile *profile = divider->profile;

	for (uint32_t i = 0; i < profile->row_count; i++) {
		int64_t value = profile_row_values(profile, i)[0];
		uint32_t at;
		int err = series_of_label_set(divider, profile->row[i].label_set, &at);
		if (!err && at != UNWANTED_SERIES)
			err = add_row(&divider->division.series[at], i,
				      value > 0 ? (uint64_t)value : 0);
		if (err)
			return err;
	}
	return 0;
}

static int compare_weights(const void *a, const void *b)
{
	const struct push_series *first = a, *second = b;

	if (first->weight != second->weight)
		return first->weight > second->weight ? -1 : 1;
	/* The same order at each time: of their first rows. */
	return first->row[0] < second->row[0] ? -1 : 1;
}

/* Hashes the texts: ids are of one profile only. */
static uint64_t hash_of(const struct divider *divider, const struct push_series *series)
{
	uint64_t hash = 0;

	for (size_t i = 0; i <= user_at(divider->choice); i++) {
		size_t size;
		const char *text = intern_get(divider->profile->strings, series->value[i], &size);

		hash = XXH3_64bits_withSeed(text, size, hash);
	}
	return hash;
}

static int append_rows(struct push_series *to, const struct push_series *from)
{
	for (uint32_t i = 0; i < from->row_count; i++) {
		int err = add_row(to, from->row[i], 0);

		if (err)
			return err;
	}
	if (__builtin_add_overflow(to->weight, from->weight, &to->weight))
		to->weight = UINT64_MAX;
	return 0;
}

/* ---- users of one name ----
 * Anybody may give a service the name of another's (OTEL_SERVICE_NAME, or a program's own). */

static int compare_names(const void *a, const void *b, void *context)
{
	const struct push_series *first = a, *second = b;
	const size_t user = *(const size_t *)context;

	/* Who is not known comes first. */
	return memcmp(first->value, second->value, user * sizeof(first->value[0]))
		       ?: ORDER(first->value[user], second->value[user]);
}

/* Returns the end of the series that have the name of the first, but for the user. */
static uint32_t end_of_name(const struct push_division *division, uint32_t first, size_t user)
{
	uint32_t end = first + 1;

	while (end < division->count &&
	       !memcmp(division->series[first].value, division->series[end].value,
		       user * sizeof(division->series[0].value[0])))
		end++;
	return end;
}

/* Leaves the label of users to names that several of them have: other series have the rows of whom
 * nothing is known as well. */
static int name_users(struct divider *divider)
{
	struct push_division *division = &divider->division;
	size_t user = user_at(divider->choice);
	uint32_t kept = 0, end;
	int err = 0;

	if (division->count)
		qsort_r(division->series, division->count, sizeof(division->series[0]),
			compare_names, &user);
	for (uint32_t first = 0; first < division->count; first = end) {
		struct push_series *unknown = &division->series[first], moved;
		bool is_joined;

		end = end_of_name(division, first, user);
		is_joined = end - first == 2 && !unknown->value[user];
		if (is_joined && !err)
			err = append_rows(unknown + 1, unknown);
		if (is_joined)
			free(TAKE(unknown->row));
		for (uint32_t i = first + is_joined; i < end; i++) {
			moved = division->series[i];
			division->series[i].row = NULL;
			if (end - first - is_joined == 1)
				moved.value[user] = 0;
			division->series[kept++] = moved;
		}
	}
	division->count = kept;
	return err;
}

static double sum_weights(const struct push_division *division)
{
	double sum = 0;

	for (uint32_t i = 0; i < division->count; i++)
		sum += (double)division->series[i].weight;
	return sum > 0 ? sum : 1;
}

/* Makes one series of all those that are too many; it comes last. */
static int fold(struct divider *divider)
{
	struct push_division *division = &divider->division;
	const double weight = sum_weights(division);
	struct push_series other = {0};
	uint32_t kept = 0;
	int err = intern_string(divider->profile->strings, PUSH_SERIES_OTHER, &other.value[0]);

	for (uint32_t i = 0; i < division->count; i++) {
		struct push_series *series = &division->series[i];

		if (err || push_known_series_admit(
				   divider->known, hash_of(divider, series), series->user,
				   (uint64_t)((double)series->weight / weight * WEIGHT_UNITS))) {
			struct push_series moved = *series;

			series->row = NULL;
			division->series[kept++] = moved;
			continue;
		}
		err = append_rows(&other, series);
		division->folded_count++;
		free(TAKE(series->row));
	}
	division->count = kept;
	/* Its room is that of the series that it has taken in. */
	if (other.row_count)
		division->series[division->count++] = other;
	else
		free(other.row);
	return err;
}

int push_divide(struct profile *profile, const struct push_label_choice *choice, uint64_t start_ms,
		struct push_known_series *known, struct push_division *ret_division)
{
	CLEANUP(divider_release) struct divider divider = {
		.profile = profile, .choice = choice, .known = known};
	int err;

	divider.of_label_set =
		malloc(((size_t)profile->label_set_count + 1) * sizeof(*divider.of_label_set));
	if (!divider.of_label_set)
		return -ENOMEM;
	memset(divider.of_label_set, 0xff,
	       (size_t)profile->label_set_count * sizeof(*divider.of_label_set));
	push_known_series_begin(known, start_ms);
	err = add_rows(&divider);
	if (!err)
		err = name_users(&divider);
	if (err)
		return err;
	if (divider.division.count)
		qsort(divider.division.series, divider.division.count,
		      sizeof(divider.division.series[0]), compare_weights);
	err = fold(&divider);
	if (err)
		return err;
	*ret_division = divider.division;
	divider.division = (struct push_division){0};
	return 0;
}

void push_label_name(const char *key, char ret_name[PUSH_LABEL_NAME_MAX_BYTES + 1])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
	size_t size = 0;

	while (key[0] == '_' && key[1] == '_')
		key++;
	for (; *key && size < PUSH_LABEL_NAME_MAX_BYTES; key++) {
		bool is_digit = *key >= '0' && *key <= '9';

		if (is_digit && !size)
			ret_name[size++] = '_';
		ret_name[size++] = is_digit || strchr(letters, *key) ? *key : '_';
	}
	if (!size)
		ret_name[size++] = '_';
	ret_name[size < PUSH_LABEL_NAME_MAX_BYTES ? size : PUSH_LABEL_NAME_MAX_BYTES] = '\0';
}

size_t push_label_value_size(const char *text)
{
	size_t size = strnlen(text, PUSH_LABEL_VALUE_MAX_BYTES + 1);

	if (size <= PUSH_LABEL_VALUE_MAX_BYTES)
		return size;
	for (size = PUSH_LABEL_VALUE_MAX_BYTES; size && ((unsigned char)text[size] & 0xc0) == 0x80;)
		size--;
	return size;
}
