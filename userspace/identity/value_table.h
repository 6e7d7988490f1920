/* SPDX-License-Identifier: BSD-2-Clause */
/* The values that labels of processes have at the moment, each once.  Their number is bounded, in
 * whole and by user (docs/design/shares.md): any user may start programs that each
 * have other values.  One thread. */
#ifndef IDENTITY_VALUE_TABLE_H
#define IDENTITY_VALUE_TABLE_H

#include <stdint.h>

#include "base/cleanup.h"
#include "base/user_quota.h"

#define VALUE_TABLE_MAX 16384U /* values */

struct label_value_entry;
struct value_table;
int value_table_new(struct value_table **ret_table);
void value_table_free(struct value_table *table);
DEFINE_OWNED(struct value_table, value_table)

/* Takes a value for a process of a user; "" is none, and costs nothing: *ret_value is NULL.  Who
 * brought it first answers for it as long as it is used.  Returns 0; -EDQUOT, -ENOSPC: there are
 * too many; -ENOMEM. */
int value_table_take(struct value_table *table, uint32_t uid, const char *text,
		     struct label_value_entry **ret_value);
/* Takes it once more; NULL stays NULL. */
struct label_value_entry *value_table_share(struct label_value_entry *value);
void value_table_give(struct value_table *table, struct label_value_entry *value);
/* Returns "" for NULL.  Valid until it is given back. */
const char *value_text(const struct label_value_entry *value);
/* The users' shares, for whoever tells of them. */
struct user_quota *value_table_quota(struct value_table *table);

#endif
