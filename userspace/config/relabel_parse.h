/* SPDX-License-Identifier: BSD-2-Clause */
/* How rules lie in memory: for the two files of relabel.h alone. */
#ifndef CONFIG_RELABEL_PARSE_H
#define CONFIG_RELABEL_PARSE_H

#include <regex.h>

#include "config/relabel.h"

/* X(id, name, whether it has a target label) */
#define RELABEL_ACTIONS(X)                                                                         \
	X(REPLACE, "replace", 1)                                                                   \
	X(KEEP, "keep", 0)                                                                         \
	X(DROP, "drop", 0)                                                                         \
	X(LOWERCASE, "lowercase", 1)                                                               \
	X(UPPERCASE, "uppercase", 1)                                                               \
	X(LABELDROP, "labeldrop", 0)                                                               \
	X(LABELKEEP, "labelkeep", 0)

#define RELABEL_ENUM_ACTION(id, ...) RELABEL_##id,
enum relabel_action { RELABEL_ACTIONS(RELABEL_ENUM_ACTION) RELABEL_ACTION_COUNT };

struct relabel_rule {
	enum relabel_action action;
	char *source[RELABEL_SOURCES_MAX]; /* owned; names */
	size_t source_count;
	char *separator, *target, *replacement; /* owned */
	regex_t regex; /* of the whole text; its first group is all of it */
	bool has_regex;
};

struct relabel_rules {
	struct relabel_rule rule[RELABEL_RULES_MAX];
	size_t count;
};

#endif
