/* SPDX-License-Identifier: BSD-2-Clause */
#include "identity/environment.h"

#include <string.h>

#include "base/cleanup.h"

static const struct variable {
	const char *name;
	size_t size;
	enum environment_label label;
} variable[] = {
#define VARIABLE(id, text) {text, sizeof(text) - 1, ENVIRONMENT_##id},
	ENVIRONMENT_VARIABLES(VARIABLE)
#undef VARIABLE
};

static bool is_set(const struct variable *of, const char *entry)
{
	return !strncmp(entry, of->name, of->size) && entry[of->size] == '=';
}

static void put(enum environment_label label, const char *value,
		char ret_value[LABEL_VALUE_BYTES])
{
	if (label == ENVIRONMENT_SERVICE)
		label_value(value, strlen(value), ret_value);
	else
		(void)label_value_number(value, strlen(value), ret_value);
}

/* Returns where the next entry that is not empty starts, or size.  Titles leave runs of NULs. */
static size_t skip_empty(const char *text, size_t size, size_t at)
{
	while (at < size && !text[at])
		at++;
	return at;
}

bool environment_pick(const char *text, size_t size, struct environment *ret_environment)
{
	size_t at = skip_empty(text, size, 0);
	size_t from[ENVIRONMENT_LABELS]; /* the variable that a label has its value from */

	memset(ret_environment, 0, sizeof(*ret_environment));
	for (size_t label = 0; label < ENVIRONMENT_LABELS; label++)
		from[label] = ARRAY_SIZE(variable);
	for (size_t entry = 0; at < size && entry < ENVIRONMENT_ENTRIES_MAX; entry++) {
		for (size_t i = 0; i < ARRAY_SIZE(variable); i++) {
			const enum environment_label label = variable[i].label;
			char value[LABEL_VALUE_BYTES];

			/* As getenv() does, the first of several with one name. */
			if (i >= from[label] || !is_set(&variable[i], text + at))
				continue;
			put(label, text + at + variable[i].size + 1, value);
			if (!value[0])
				continue;
			memcpy(ret_environment->label[label], value, sizeof(value));
			from[label] = i;
		}
		at = skip_empty(text, size, at + strlen(text + at));
	}
	return at >= size;
}
