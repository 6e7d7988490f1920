/* SPDX-License-Identifier: BSD-2-Clause */
#include "identity/identity.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/user_quota.h"
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Names users by our own /etc/passwd alone, which a child reads (peek/): what the name service
 * asks may be a server that does not answer, and the file may lie on a disk that does not.  Users
 * of a directory service are shown by their number.  One thread. */

void users_release(struct users *users)
{
	free(users->text);
	*users = (struct users){0};
}

/* NAME:PASSWORD:UID:...  Source: passwd(5). */
bool users_find(const char *text, uint32_t uid, char ret_name[LABEL_VALUE_BYTES])
{
	char number[12];
	const size_t size = (size_t)snprintf(number, sizeof(number), "%" PRIu32 ":", uid);

	for (const char *line = text; *line;) {
		const size_t line_size = strcspn(line, "\n");
		const size_t name = strcspn(line, ":\n");
		const char *id = line + name;

		if (*id == ':')
			id += 1 + strcspn(id + 1, ":\n");
		if (name && *id == ':' && !strncmp(id + 1, number, size)) {
			label_value(line, name, ret_name);
			return true;
		}
		line += line_size + (line[line_size] == '\n');
	}
	return false;
}

static bool is_due(const struct users *users, uint64_t now_ns)
{
	return !users->read_ns || now_ns - users->read_ns >= USERS_AGAIN_NS;
}

void users_name(struct users *users, uint32_t uid, uint64_t now_ns,
		char ret_name[LABEL_VALUE_BYTES])
{
	if (users->text && users_find(users->text, uid, ret_name))
		return;
	if (is_due(users, now_ns)) {
		char *text;
		size_t size;

		users->read_ns = now_ns;
		if (!process_read_text(getpid(), PROCESS_USERS, PROCESS_TEXT_MAX_BYTES, &text,
				       &size)) {
			free(users->text);
			users->text = text;
		}
		if (users->text && users_find(users->text, uid, ret_name))
			return;
	}
	snprintf(ret_name, LABEL_VALUE_BYTES, "%" PRIu32, uid);
}

/* Picks the few variables of a process's environment that labels are made from.  Nothing else of it
 * is kept: an environment holds secrets.  No state. */

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

static void put(enum environment_label label, const char *value, char ret_value[LABEL_VALUE_BYTES])
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

/* The values that labels of processes have at the moment, each once.  Their number is bounded, in
 * whole and by user (docs/design/shares.md): any user may start programs that each
 * have other values.  One thread. */

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
	if (!table)
		return;
	HASH_DROP_ALL(table->by_text);
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
	HASH_DROP(table->by_text, value);
}

const char *value_text(const struct label_value_entry *value)
{
	return value ? value->text : "";
}

struct user_quota *value_table_quota(struct value_table *table)
{
	return &table->quota;
}

/* The label of each value of an environment. */
static const enum identity_label of_environment[ENVIRONMENT_LABELS] = {
	[ENVIRONMENT_SERVICE] = IDENTITY_SERVICE,
	[ENVIRONMENT_SLURM_JOB] = IDENTITY_SLURM_JOB,
	[ENVIRONMENT_RANK] = IDENTITY_RANK,
	[ENVIRONMENT_LOCAL_RANK] = IDENTITY_LOCAL_RANK,
	[ENVIRONMENT_WORLD_SIZE] = IDENTITY_WORLD_SIZE,
};

void identity_release(struct value_table *values, struct identity *identity)
{
	for (size_t i = 0; i < IDENTITY_COUNT; i++)
		value_table_give(values, identity->value[i]);
	*identity = (struct identity){};
}

int identity_set(struct value_table *values, struct identity *identity, uint32_t uid,
		 enum identity_label label, const char *text)
{
	struct label_value_entry *value;
	int err = value_table_take(values, uid, text, &value);

	if (err)
		return err;
	value_table_give(values, identity->value[label]);
	identity->value[label] = value;
	return 0;
}

unsigned int identity_set_environment(struct value_table *values, struct identity *identity,
				      uint32_t uid, const struct environment *environment)
{
	unsigned int refused = 0;

	for (size_t i = 0; i < ENVIRONMENT_LABELS; i++)
		refused += identity_set(values, identity, uid, of_environment[i],
					environment->label[i]) != 0;
	return refused;
}

static void inherit_one(struct value_table *values, struct identity *identity,
			const struct identity *parent, enum identity_label label)
{
	struct label_value_entry *old = identity->value[label];

	identity->value[label] = value_table_share(parent->value[label]);
	value_table_give(values, old);
}

void identity_inherit_app(struct value_table *values, struct identity *identity,
			  const struct identity *parent)
{
	inherit_one(values, identity, parent, IDENTITY_APP);
}

void identity_inherit(struct value_table *values, struct identity *identity,
		      const struct identity *parent)
{
	identity_inherit_app(values, identity, parent);
	for (size_t i = 0; i < ENVIRONMENT_LABELS; i++)
		inherit_one(values, identity, parent, of_environment[i]);
}

int identity_name_service(struct value_table *values, struct identity *identity, uint32_t uid,
			  const char *comm)
{
	static const enum identity_label by[] = {IDENTITY_SERVICE, IDENTITY_APP,
						 IDENTITY_CONTAINER};
	char clean[LABEL_VALUE_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(by); i++) {
		if (!identity->value[by[i]])
			continue;
		value_table_give(values, identity->value[IDENTITY_SERVICE_NAME]);
		identity->value[IDENTITY_SERVICE_NAME] = value_table_share(identity->value[by[i]]);
		return 0;
	}
	label_value(comm, strlen(comm), clean);
	return identity_set(values, identity, uid, IDENTITY_SERVICE_NAME, clean);
}
