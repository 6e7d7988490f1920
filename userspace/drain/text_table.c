/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/text_table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <pyprofd/limits.h>

#include "base/utf8.h"
#include "drain/hash_set.h"

struct text {
	uint64_t id; /* first: hash_set.h */
	uint32_t user;
	uint32_t epoch; /* when it was added last */
	uint32_t bytes;
	char text[];
};

struct held {
	uint32_t texts, bytes;
};

struct text_table {
	struct hash_set set;
	uint32_t epoch;
	uint64_t refused;
	struct held all;
	struct held held[TEXT_TABLE_USERS]; /* by user */
};

int text_table_new(struct text_table **ret_table)
{
	OWNED(text_table) struct text_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	hash_set_init(&table->set);
	*ret_table = TAKE(table);
	return 0;
}

void text_table_free(struct text_table *table)
{
	if (!table)
		return;
	hash_set_release(&table->set);
	free(table);
}

static struct held *held_by(struct text_table *table, uint32_t user)
{
	return &table->held[user % TEXT_TABLE_USERS];
}

static bool has_room(struct text_table *table, uint32_t user, size_t size)
{
	const struct held *held = held_by(table, user);

	if (table->all.texts >= TEXT_TABLE_MAX || table->all.bytes + size > TEXT_TABLE_MAX_BYTES)
		return false;
	return !user || (held->texts < TEXT_TABLE_USER_MAX &&
			 held->bytes + size <= TEXT_TABLE_USER_MAX_BYTES);
}

static void hold(struct text_table *table, const struct text *text)
{
	struct held *held = held_by(table, text->user);

	held->texts++;
	held->bytes += text->bytes;
	table->all.texts++;
	table->all.bytes += text->bytes;
}

static int add_new(struct text_table *table, uint64_t id, uint32_t user, const char *bytes,
		   size_t size)
{
	OWNED_MEM struct text *text = malloc(sizeof(*text) + size * UTF8_CLEAN_MAX_GROWTH + 1);
	struct text *shrunk;
	int err;

	if (!text)
		return -ENOMEM;
	*text = (struct text){.id = id, .user = user, .epoch = table->epoch};
	text->bytes = (uint32_t)utf8_clean(bytes, size, text->text);
	text->text[text->bytes] = '\0';
	shrunk = realloc(text, sizeof(*text) + text->bytes + 1);
	if (shrunk)
		text = shrunk;
	err = hash_set_add(&table->set, text);
	if (err)
		return err;
	hold(table, TAKE(text));
	return 0;
}

int text_table_add(struct text_table *table, uint64_t id, uint32_t user, const char *bytes,
		   size_t size)
{
	struct text *known = hash_set_find(&table->set, id);

	if (size > PP_MAX_TEXT_BYTES)
		size = PP_MAX_TEXT_BYTES;
	if (known) {
		known->epoch = table->epoch;
		return 0;
	}
	if (!has_room(table, user, size)) {
		table->refused++;
		return -EDQUOT;
	}
	return add_new(table, id, user, bytes, size);
}

const char *text_table_find(const struct text_table *table, uint64_t id)
{
	const struct text *text = hash_set_find(&table->set, id);

	return text ? text->text : NULL;
}

static bool is_kept(const void *context, const void *entry)
{
	const struct text_table *table = context;
	const struct text *text = entry;

	return table->epoch - text->epoch < 2;
}

void text_table_end_epoch(struct text_table *table)
{
	table->epoch++;
	hash_set_filter(&table->set, is_kept, table);
	memset(table->held, 0, sizeof(table->held));
	table->all = (struct held){0};
	for (size_t i = 0; i < table->set.count; i++)
		hold(table, table->set.entry[i]);
}

uint64_t text_table_refused(const struct text_table *table)
{
	return table->refused;
}
