/* SPDX-License-Identifier: BSD-2-Clause */
#include "identity/value_table.h"

#include <errno.h>
#include <string.h>

#include <uthash.h>

struct label_value_entry {
	UT_hash_handle hh;
	uint32_t uses, uid; /* uid: who answers for it */
	char text[];
};

struct value_table {
	struct label_value_entry *by_text;
	struct user_quota quota;
};

int value_table_new(struct value_table **ret_table)
{
	struct value_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	table->quota.total = VALUE_TABLE_MAX;
	*ret_table = table;
	return 0;
}

void value_table_free(struct value_table *table)
{
	struct label_value_entry *value, *next;

	if (!table)
		return;
	HASH_ITER (hh, table->by_text, value, next) {
		HASH_DEL(table->by_text, value);
		free(value);
	}
	user_quota_release(&table->quota);
	free(table);
}

struct label_value_entry *value_table_share(struct label_value_entry *value)
{
	if (value)
		value->uses++;
	return value;
}

static int add(struct value_table *table, uint32_t uid, const char *text, size_t size,
	       struct label_value_entry **ret_value)
{
	OWNED_MEM struct label_value_entry *value = NULL;
	int err = user_quota_take(&table->quota, uid, 1);

	if (err)
		return err;
	value = calloc(1, sizeof(*value) + size + 1);
	if (value) {
		value->uid = uid;
		value->uses = 1;
		memcpy(value->text, text, size + 1);
		HASH_ADD_KEYPTR(hh, table->by_text, value->text, (unsigned int)size, value);
	}
	if (!value || !value->hh.tbl) {
		user_quota_give(&table->quota, uid, 1);
		return -ENOMEM;
	}
	*ret_value = TAKE(value);
	return 0;
}

int value_table_take(struct value_table *table, uint32_t uid, const char *text,
		     struct label_value_entry **ret_value)
{
	const size_t size = strlen(text);
	struct label_value_entry *value = NULL;

	if (size)
		HASH_FIND(hh, table->by_text, text, (unsigned int)size, value);
	if (size && !value)
		return add(table, uid, text, size, ret_value);
	*ret_value = value_table_share(value);
	return 0;
}

void value_table_give(struct value_table *table, struct label_value_entry *value)
{
	if (!value || --value->uses)
		return;
	user_quota_give(&table->quota, value->uid, 1);
	HASH_DEL(table->by_text, value);
	free(value);
}

const char *value_text(const struct label_value_entry *value)
{
	return value ? value->text : "";
}

struct user_quota *value_table_quota(struct value_table *table)
{
	return &table->quota;
}
