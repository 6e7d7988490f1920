/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/kinds.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define KIND_ROW(id, number, text, needed, captures, is_served, default_index)                     \
	[number].name = text, [number].needs = (uint32_t)(needed),                                 \
	[number].private_captures = (uint32_t)(captures), [number].default_value = default_index,
#define KIND_VALUE(id, index, type_name, unit_name, rule)                                          \
	[PP_PROFILE_##id].value[index] = {type_name, unit_name, PP_MERGE_##rule},

static const struct kind kinds[PP_PROFILE_COUNT] = {PP_PROFILES(KIND_ROW, KIND_ROW)
							    PP_VALUES(KIND_VALUE)};

#define CAPTURE_ROW(id, text, ...) {.name = text, .bit = PP_CAPTURE_##id},

static const struct {
	const char *name;
	uint32_t bit;
} captures[] = {PP_CAPTURES(CAPTURE_ROW, CAPTURE_ROW)};

static bool is_name(const char *name, size_t size, const char *known)
{
	return strlen(known) == size && !memcmp(known, name, size);
}

/* ---- profiles ---- */

const struct kind *kind_get(enum pp_profile kind)
{
	return &kinds[kind];
}

size_t kind_value_count(enum pp_profile kind)
{
	size_t count = 0;

	while (kinds[kind].value[count].type)
		count++;
	return count;
}

bool kind_find(const char *name, size_t size, enum pp_profile *ret_kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!is_name(name, size, kinds[i].name))
			continue;
		*ret_kind = (enum pp_profile)i;
		return true;
	}
	return false;
}

bool kind_is(const char *name, enum pp_profile kind)
{
	return !strcmp(name, kinds[kind].name);
}

enum pp_merge kind_value_merge(const char *kind, const char *type)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!kind_is_record((enum pp_profile)i) && strcmp(kinds[i].name, kind) != 0)
			continue;
		for (const struct kind_value *value = kinds[i].value; value->type; value++)
			if (!strcmp(value->type, type))
				return value->merge;
	}
	return PP_MERGE_SUM;
}

bool kind_is_record(enum pp_profile kind)
{
	return PP_RECORDS & 1U << kind;
}

bool kind_is_captured(enum pp_profile kind, uint32_t captured)
{
	const uint32_t needs = kinds[kind].needs;

	return kind_is_record(kind) ? captured & needs : (captured & needs) == needs;
}

const char *kind_memory(enum pp_memory memory)
{
#define MEMORY_LABEL(id, label) [PP_MEMORY_##id] = label,
	static const char *const label[PP_MEMORY_COUNT] = {PP_MEMORIES(MEMORY_LABEL)};

	return label[memory];
}

/* ---- lists of names ---- */

struct list {
	const char *between, *last;
	char *text;
	size_t size, used;
};

static void add_name(struct list *list, const char *name, bool is_last)
{
	const char *before = !list->used ? "" : is_last ? list->last : list->between;
	int size = snprintf(list->text + list->used, list->size - list->used, "%s%s", before, name);

	if (size > 0 && (size_t)size < list->size - list->used)
		list->used += (size_t)size;
}

void kind_names(uint32_t wanted, const char *between, const char *last,
		char ret_names[KIND_NAMES_CHARS])
{
	struct list list = {between, last, ret_names, KIND_NAMES_CHARS, 0};

	ret_names[0] = '\0';
	wanted &= (1U << PP_PROFILE_COUNT) - 1;
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++)
		if (wanted & 1U << i)
			add_name(&list, kinds[i].name, !(wanted >> i >> 1));
}

/* ---- captures ---- */

bool capture_find(const char *name, size_t size, uint32_t *ret_capture)
{
	for (size_t i = 0; i < ARRAY_SIZE(captures); i++) {
		if (!is_name(name, size, captures[i].name))
			continue;
		*ret_capture = captures[i].bit;
		return true;
	}
	return false;
}

void capture_names(uint32_t wanted, const char *between, char ret_names[CAPTURE_NAMES_CHARS])
{
	struct list list = {between, between, ret_names, CAPTURE_NAMES_CHARS, 0};

	ret_names[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(captures); i++)
		if (wanted & captures[i].bit)
			add_name(&list, captures[i].name, false);
}
