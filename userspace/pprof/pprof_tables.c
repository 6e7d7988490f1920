/* SPDX-License-Identifier: BSD-2-Clause */
#include "pprof/pprof_tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

static int fail(struct pprof_tables *tables, int err, const char *why)
{
	tables->error = why;
	return err;
}

static void items_release(struct pprof_items *items)
{
	free(items->item);
	index_table_release(&items->index);
}

void pprof_tables_release(struct pprof_tables *tables)
{
	items_release(&tables->function);
	items_release(&tables->location);
	items_release(&tables->mapping);
	free(tables->text);
	free(tables->type);
	free(tables->comment);
	*tables = (struct pprof_tables){0};
}

static size_t items_bytes(const struct pprof_items *items)
{
	return items->capacity * sizeof(*items->item) + index_table_bytes(&items->index);
}

size_t pprof_tables_bytes(const struct pprof_tables *tables)
{
	return items_bytes(&tables->function) + items_bytes(&tables->location) +
	       items_bytes(&tables->mapping) + tables->text_capacity * sizeof(*tables->text) +
	       tables->type_capacity * sizeof(*tables->type) +
	       tables->comment_capacity * sizeof(*tables->comment);
}

/* Returns whether a table may grow, which takes half as much again; most calls need not grow. */
static bool has_room(const struct pprof_tables *tables, size_t count, size_t capacity)
{
	return count < capacity ||
	       pprof_tables_bytes(tables) + pprof_tables_bytes(tables) / 2 <= tables->max_bytes;
}

static void items_clear(struct pprof_items *items)
{
	items->count = 0;
	index_table_release(&items->index);
}

/* ---- ids ---- */

/* Fibonacci hashing: the multiplier is 2^64 / golden ratio. */
static uint32_t hash_id(uint64_t id)
{
	return (uint32_t)(id * 0x9e3779b97f4a7c15ULL >> 32);
}

static bool id_equal(const void *context, uint32_t index, const void *key)
{
	const struct pprof_items *items = context;

	return items->item[index].id == *(const uint64_t *)key;
}

static int index_ids(struct pprof_items *items)
{
	bool in_order = true;
	uint32_t at;
	int err = 0;

	for (uint32_t i = 0; i < items->count && in_order; i++)
		in_order = items->item[i].id == (uint64_t)i + 1;
	for (uint32_t i = 0; !err && !in_order && i < items->count; i++) {
		const uint64_t *id = &items->item[i].id;

		err = index_table_find(&items->index, hash_id(*id), id_equal, items, id, &at)
			      ? -EBADMSG
			      : index_table_add(&items->index, hash_id(*id), i);
	}
	return err;
}

struct pprof_item *pprof_items_find(const struct pprof_items *items, uint64_t id)
{
	uint32_t at;

	if (!items->index.slot)
		return id && id <= items->count ? &items->item[id - 1] : NULL;
	return index_table_find(&items->index, hash_id(id), id_equal, items, &id, &at)
		       ? &items->item[at]
		       : NULL;
}

/* ---- fields ---- */

static int add_item(struct pprof_tables *tables, struct pprof_items *items, struct wire message)
{
	struct pprof_item item = {.message = message};
	uint64_t *const place[] = {NULL, &item.id};

	if (wire_numbers(message, place, ARRAY_SIZE(place)) || !item.id)
		return fail(tables, -EBADMSG,
			    "broken: a function, location or mapping does not parse");
	if (!has_room(tables, items->count, items->capacity))
		return fail(tables, -EFBIG, PPROF_TOO_MANY);
	if (ARRAY_RESERVE(items->item, items->count, items->capacity))
		return fail(tables, -ENOMEM, "not enough memory");
	items->item[items->count++] = item;
	return 0;
}

static int add_text(struct pprof_tables *tables, struct wire bytes)
{
	int err;

	if (!has_room(tables, tables->text_count, tables->text_capacity))
		return fail(tables, -EFBIG, PPROF_TOO_MANY);
	err = ARRAY_RESERVE(tables->text, tables->text_count, tables->text_capacity);
	if (err)
		return fail(tables, err, "not enough memory");
	tables->text[tables->text_count++] =
		(struct pprof_text){.offset = (uint32_t)(bytes.at - tables->bytes),
				    .size = (uint32_t)(bytes.end - bytes.at)};
	return 0;
}

static int read_value_type(struct pprof_tables *tables, struct wire message,
			   struct pprof_value_type *ret_type)
{
	struct pprof_value_type type = {0};
	uint64_t *const place[] = {NULL, &type.type, &type.unit};

	if (wire_numbers(message, place, ARRAY_SIZE(place)))
		return fail(tables, -EBADMSG, "broken: a sample type does not parse");
	*ret_type = type;
	return 0;
}

static int add_type(struct pprof_tables *tables, struct wire message)
{
	int err;

	if (!has_room(tables, tables->type_count, tables->type_capacity))
		return fail(tables, -EFBIG, PPROF_TOO_MANY);
	err = ARRAY_RESERVE(tables->type, tables->type_count, tables->type_capacity);
	if (err)
		return fail(tables, err, "not enough memory");
	err = read_value_type(tables, message, &tables->type[tables->type_count]);
	if (!err)
		tables->type_count++;
	return err;
}

static int add_comment(struct pprof_tables *tables, uint64_t text)
{
	int err;

	if (tables->comment_count == PPROF_MAX_COMMENTS)
		return 0;
	err = ARRAY_RESERVE(tables->comment, tables->comment_count, tables->comment_capacity);
	if (err)
		return fail(tables, err, "not enough memory");
	tables->comment[tables->comment_count++] = text;
	return 0;
}

static int add_comments(struct pprof_tables *tables, struct wire packed)
{
	uint64_t text;
	int err = 0;

	while (!err && packed.at < packed.end) {
		if (!wire_varint(&packed, &text))
			return fail(tables, -EBADMSG, "broken: a comment does not parse");
		err = add_comment(tables, text);
	}
	return err;
}

static int take_bytes(struct pprof_tables *tables, const struct wire_field *field)
{
	switch (field->number) {
	case PPROF_PROFILE_SAMPLE_TYPE:
		return add_type(tables, field->bytes);
	case PPROF_PROFILE_SAMPLE:
		tables->sample_count++;
		return 0;
	case PPROF_PROFILE_MAPPING:
		return add_item(tables, &tables->mapping, field->bytes);
	case PPROF_PROFILE_LOCATION:
		return add_item(tables, &tables->location, field->bytes);
	case PPROF_PROFILE_FUNCTION:
		return add_item(tables, &tables->function, field->bytes);
	case PPROF_PROFILE_STRING_TABLE:
		return add_text(tables, field->bytes);
	case PPROF_PROFILE_PERIOD_TYPE:
		return read_value_type(tables, field->bytes, &tables->period_type);
	case PPROF_PROFILE_COMMENT:
		return add_comments(tables, field->bytes);
	default:
		return 0; /* a field of a later format, or one that we do not need */
	}
}

static int take_number(struct pprof_tables *tables, const struct wire_field *field)
{
	switch (field->number) {
	case PPROF_PROFILE_TIME_NANOS:
		tables->time_ns = (int64_t)field->value > 0 ? field->value : 0;
		return 0;
	case PPROF_PROFILE_DURATION_NANOS:
		tables->duration_ns = (int64_t)field->value > 0 ? field->value : 0;
		return 0;
	case PPROF_PROFILE_PERIOD:
		tables->period = (int64_t)field->value;
		return 0;
	case PPROF_PROFILE_COMMENT:
		return add_comment(tables, field->value);
	case PPROF_PROFILE_DEFAULT_SAMPLE_TYPE:
		tables->default_type = field->value;
		return 0;
	case PPROF_PROFILE_SAMPLE_TYPE:
	case PPROF_PROFILE_SAMPLE:
	case PPROF_PROFILE_MAPPING:
	case PPROF_PROFILE_LOCATION:
	case PPROF_PROFILE_FUNCTION:
	case PPROF_PROFILE_STRING_TABLE:
		return fail(tables, -EBADMSG, "not a pprof file");
	default:
		return 0;
	}
}

static int check(struct pprof_tables *tables)
{
	if (!tables->type_count)
		return fail(tables, -EBADMSG, "not a pprof file: it has no sample types");
	for (uint32_t i = 0; i < tables->type_count; i++)
		if (tables->type[i].type >= tables->text_count ||
		    tables->type[i].unit >= tables->text_count)
			return fail(tables, -EBADMSG, "cut off or broken: strings are missing");
	return 0;
}

int pprof_tables_read(struct pprof_tables *tables, const uint8_t *bytes, size_t size)
{
	struct wire wire = {bytes, bytes + size};
	struct wire_field field;
	int more, err;

	items_clear(&tables->function);
	items_clear(&tables->location);
	items_clear(&tables->mapping);
	tables->bytes = bytes;
	tables->text_count = tables->type_count = tables->comment_count = 0;
	tables->sample_count = 0;
	tables->period_type = (struct pprof_value_type){0};
	tables->default_type = tables->time_ns = tables->duration_ns = 0;
	tables->period = 0;
	tables->error = "";
	while ((more = wire_next(&wire, &field)) > 0) {
		err = field.is_bytes ? take_bytes(tables, &field) : take_number(tables, &field);
		if (err)
			return err;
	}
	if (more < 0)
		return fail(tables, more,
			    tables->type_count ? "cut off or broken: a message does not parse"
					       : "not a pprof file");
	err = index_ids(&tables->function);
	if (!err)
		err = index_ids(&tables->location);
	if (!err)
		err = index_ids(&tables->mapping);
	if (err)
		return fail(tables, err,
			    err == -ENOMEM ? "not enough memory" : "broken: an id is there twice");
	return check(tables);
}
