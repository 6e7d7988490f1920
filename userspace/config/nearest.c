/* SPDX-License-Identifier: BSD-2-Clause */
#include "config/nearest.h"

#include <string.h>

/* Longer names are not compared. */
#define NAME_MAX_CHARS 24U
/* A name is near when no more than every third character differs. */
#define NEAR_SHARE 3U

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Returns how many characters must be put in, left out or changed to make `b` of `a`. */
static size_t distance_of(const char *a, size_t a_size, const char *b)
{
	size_t row[NAME_MAX_CHARS + 1], b_size = strlen(b);

	if (a_size > NAME_MAX_CHARS || b_size > NAME_MAX_CHARS)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_size; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_size; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_size; j++) {
			const size_t changed = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			row[j] = least(changed, least(row[j], row[j - 1]) + 1);
		}
	}
	return row[b_size];
}

struct nearest {
	const char *name;
	size_t distance;
};

static void compare(struct nearest *nearest, const char *name, size_t size, const char *known)
{
	const size_t distance = distance_of(name, size, known);

	if (distance <= 1 + strlen(known) / NEAR_SHARE && distance < nearest->distance)
		*nearest = (struct nearest){.name = known, .distance = distance};
}

void config_hint_at_section(const char *name, size_t size, char ret_hint[CONFIG_HINT_BYTES])
{
	struct nearest nearest = {.distance = SIZE_MAX};

	for (enum config_kind kind = 0; kind < CONFIG_KIND_COUNT; kind++)
		compare(&nearest, name, size, config_kind_name(kind));
	if (nearest.name)
		snprintf(ret_hint, CONFIG_HINT_BYTES, "; did you mean [%s%s]?", nearest.name,
			 strcmp(nearest.name, config_kind_name(CONFIG_PUSH)) ? "" : " NAME");
	else
		snprintf(ret_hint, CONFIG_HINT_BYTES,
			 "; there are [capture], [store], [http] and [push NAME]");
}

/* Finds a key by its own name or its option's. */
static const struct config_key *find(enum config_kind kind, const char *name)
{
	size_t count;
	const struct config_key *key = config_keys(kind, &count);

	for (size_t i = 0; i < count; i++) {
		if (!strcmp(key[i].name, name) || (key[i].option && !strcmp(key[i].option, name)))
			return &key[i];
	}
	return NULL;
}

void config_hint_at_key(enum config_kind kind, const char *name, char ret_hint[CONFIG_HINT_BYTES])
{
	struct nearest nearest = {.distance = SIZE_MAX};
	const struct config_key *key;
	size_t count;

	ret_hint[0] = '\0';
	for (enum config_kind other = 0; other < CONFIG_KIND_COUNT; other++) {
		const struct config_key *found = find(other, name);

		if (!found)
			continue;
		snprintf(ret_hint, CONFIG_HINT_BYTES, "; it is '%s' of [%s%s]", found->name,
			 config_kind_name(other), other == CONFIG_PUSH ? " NAME" : "");
		return;
	}
	key = config_keys(kind, &count);
	for (size_t i = 0; i < count; i++)
		compare(&nearest, name, strlen(name), key[i].name);
	if (nearest.name)
		snprintf(ret_hint, CONFIG_HINT_BYTES, "; did you mean '%s'?", nearest.name);
}
