/* SPDX-License-Identifier: BSD-2-Clause */
#include "config/nearest.h"

#include <string.h>

#include "base/nearest.h"

void config_hint_at_section(const char *name, size_t size, char ret_hint[CONFIG_HINT_BYTES])
{
	struct nearest nearest = NEAREST_NONE;

	for (enum config_kind kind = 0; kind < CONFIG_KIND_COUNT; kind++)
		nearest_compare(&nearest, name, size, config_kind_name(kind));
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
	struct nearest nearest = NEAREST_NONE;
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
		nearest_compare(&nearest, name, strlen(name), key[i].name);
	if (nearest.name)
		snprintf(ret_hint, CONFIG_HINT_BYTES, "; did you mean '%s'?", nearest.name);
}
