/* SPDX-License-Identifier: BSD-2-Clause */
#include "config/keys.h"

#include <string.h>

#include "base/cleanup.h"

#define OPTION_KEY(id, key, long_option, switch, standard, how)                                    \
	{.name = key,                                                                              \
	 .option = long_option,                                                                    \
	 .takes_no_value = switch,                                                                 \
	 .fallback = standard,                                                                     \
	 .lines = CONFIG_LINES_##how},
#define SERVED_KEY(id, key, field, standard, how, what)                                            \
	{.name = key,                                                                              \
	 .fallback = standard,                                                                     \
	 .lines = CONFIG_LINES_##how,                                                              \
	 .shown = CONFIG_##what},

static const struct config_key capture_keys[] = {CONFIG_CAPTURE_KEYS(OPTION_KEY)};
static const struct config_key store_keys[] = {CONFIG_STORE_KEYS(OPTION_KEY)};
static const struct config_key http_keys[] = {CONFIG_HTTP_KEYS(SERVED_KEY)};
static const struct config_key push_keys[] = {CONFIG_PUSH_KEYS(SERVED_KEY)};

#define KIND_NAME(id, name, ...) name,
static const char *const kind_names[] = {CONFIG_SECTIONS(KIND_NAME)};

static const struct {
	const struct config_key *key;
	size_t count;
} tables[] = {
	[CONFIG_CAPTURE] = {capture_keys, ARRAY_SIZE(capture_keys)},
	[CONFIG_STORE] = {store_keys, ARRAY_SIZE(store_keys)},
	[CONFIG_HTTP] = {http_keys, ARRAY_SIZE(http_keys)},
	[CONFIG_PUSH] = {push_keys, ARRAY_SIZE(push_keys)},
};
_Static_assert(ARRAY_SIZE(capture_keys) <= CONFIG_KEYS_MAX, "a section holds all its keys");
_Static_assert(ARRAY_SIZE(push_keys) <= CONFIG_KEYS_MAX, "a section holds all its keys");

const struct config_key *config_keys(enum config_kind kind, size_t *ret_count)
{
	*ret_count = tables[kind].count;
	return tables[kind].key;
}

const char *config_kind_name(enum config_kind kind)
{
	return kind_names[kind];
}

bool config_key_of_option(const char *option, enum config_kind *ret_kind, size_t *ret_key)
{
	for (enum config_kind kind = CONFIG_CAPTURE; kind <= CONFIG_STORE; kind++) {
		for (size_t i = 0; i < tables[kind].count; i++) {
			if (strcmp(tables[kind].key[i].option, option))
				continue;
			*ret_kind = kind;
			*ret_key = i;
			return true;
		}
	}
	return false;
}
