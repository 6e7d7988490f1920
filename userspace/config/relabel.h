/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules that change the labels of what a sink gets, before it gets them: a part of Prometheus'
 * relabel_config, one rule a line:
 *
 *   [action=replace] source_labels=app,rank regex=(.*)\.py;0 target_label=service_name
 *   [replacement=$1] [separator=;]
 *
 * Words are divided by spaces; a value with spaces is put in double quotes, in which \" and \\
 * stand for " and \.  Values of the source labels are joined by the separator (";"), "" for those
 * that are not there, and the expression (POSIX extended; default "(.*)") must match the whole of
 * that:
 *
 *   replace              sets the target to the replacement ($0 to $9, ${1}, $$), else changes
 *                        nothing; a label that becomes "" is taken away
 *   keep, drop           keeps what matches, or what does not
 *   lowercase, uppercase sets the target to the source, A to Z changed
 *   labeldrop, labelkeep takes away labels whose names match, or do not
 *
 * Rules are applied in their order.  No state. */
#ifndef CONFIG_RELABEL_H
#define CONFIG_RELABEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

#define RELABEL_RULES_MAX 64U
#define RELABEL_SOURCES_MAX 8U
#define RELABEL_NAME_MAX_BYTES 64U
#define RELABEL_REGEX_MAX_BYTES 256U
#define RELABEL_LABELS_MAX 64U
#define RELABEL_VALUE_MAX_BYTES 1024U /* what a rule makes is cut at a character */
#define RELABEL_WHY_BYTES 160U

struct relabel_rules;
/* Reads rules, one a line; empty lines are none.  Returns 0; -EINVAL with one line in `why` that
 * says which rule and what is wrong; -ENOMEM. */
int relabel_rules_parse(const char *text, struct relabel_rules **ret_rules,
			char why[RELABEL_WHY_BYTES]);
void relabel_rules_free(struct relabel_rules *rules);
DEFINE_OWNED(struct relabel_rules, relabel_rules)

struct relabel_label {
	char *name, *value; /* owned */
};
/* All zero is empty. */
struct relabel_labels {
	struct relabel_label label[RELABEL_LABELS_MAX];
	size_t count;
};
void relabel_labels_release(struct relabel_labels *labels);
/* Sets a label; a value of "" takes it away.  Returns 0; -ENOSPC: there are too many; -ENOMEM. */
int relabel_labels_set(struct relabel_labels *labels, const char *name, const char *value);
/* Returns "" for a label that is not there. */
const char *relabel_labels_get(const struct relabel_labels *labels, const char *name);

/* Applies all rules.  *ret_keep: whether the series is to be sent.  Returns 0; -ENOSPC: a rule
 * makes one label too many, and it and the rest were not applied; -ENOMEM. */
int relabel_rules_apply(const struct relabel_rules *rules, struct relabel_labels *labels,
			bool *ret_keep);

#endif
