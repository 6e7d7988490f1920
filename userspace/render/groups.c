/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/groups.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"

void groups_init(struct groups *groups, struct profile *profile, const struct grouping *by)
{
	*groups = (struct groups){.profile = profile, .by = *by};
}

void groups_release(struct groups *groups)
{
	free(groups->group);
	id_map_release(&groups->of_set);
	index_table_release(&groups->index);
	*groups = (struct groups){0};
}

void groups_label_keys(const struct grouping *by, const char *key[GROUPS_MAX_KEYS])
{
	static const struct {
		uint32_t by;
		const char *key;
	} needed[] = {
		{GROUP_BY_PROCESS | GROUP_BY_THREAD, "pid"},
		{GROUP_BY_THREAD, "tid"},
		{GROUP_BY_PROCESS | GROUP_BY_COMM | GROUP_BY_THREAD, "comm"},
		{GROUP_BY_THREAD | GROUP_BY_THREAD_NAME, "thread_name"},
		{GROUP_BY_THREAD | GROUP_BY_THREAD_NAME, "thread"},
		{GROUP_BY_CONTAINER, "container_id"},
		{GROUP_BY_CONTAINER, "container"},
		{GROUP_BY_WAIT, "wait"},
	};
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (needed[i].by & by->keys)
			key[count++] = needed[i].key;
	for (size_t i = 0; i < by->label_count; i++)
		key[count++] = by->label[i];
	key[count] = NULL;
}

static uint32_t text_label(const struct groups *groups, uint32_t set, const char *name,
			   const char *other_name)
{
	const struct stored_label *label = profile_find_label(groups->profile, set, name);

	if (!label && other_name)
		label = profile_find_label(groups->profile, set, other_name);
	return label && !label->is_number ? (uint32_t)label->value : 0;
}

/* Returns 0 or -ENOMEM: a number becomes a text. */
static int any_label(struct groups *groups, uint32_t set, const char *name, uint32_t *ret_string)
{
	const struct stored_label *label = profile_find_label(groups->profile, set, name);
	char number[24];

	*ret_string = label && !label->is_number ? (uint32_t)label->value : 0;
	if (!label || !label->is_number)
		return 0;
	snprintf(number, sizeof(number), "%" PRId64, label->value);
	return intern_string(groups->profile->strings, number, ret_string);
}

static int read_labels(struct groups *groups, uint32_t set, struct group *group)
{
	const uint32_t by = groups->by.keys;
	int err = 0;

	if (by & (GROUP_BY_PROCESS | GROUP_BY_THREAD))
		group->pid = profile_label_number(groups->profile, set, "pid");
	if (by & GROUP_BY_THREAD)
		group->tid = profile_label_number(groups->profile, set, "tid");
	if (by & (GROUP_BY_PROCESS | GROUP_BY_THREAD | GROUP_BY_COMM))
		group->comm = text_label(groups, set, "comm", NULL);
	if (by & (GROUP_BY_THREAD | GROUP_BY_THREAD_NAME))
		group->thread = text_label(groups, set, "thread_name", "thread");
	if (by & GROUP_BY_CONTAINER)
		group->container = text_label(groups, set, "container", "container_id");
	if (by & GROUP_BY_WAIT)
		group->wait = text_label(groups, set, "wait", NULL);
	for (uint32_t i = 0; i < groups->by.label_count && !err; i++)
		err = any_label(groups, set, groups->by.label[i], &group->other[i]);
	return err;
}

static const char *text_of(const struct groups *groups, uint32_t string)
{
	return intern_get(groups->profile->strings, string, NULL);
}

static void put_part(FILE *out, const char *what, int64_t number, const char *name)
{
	fprintf(out, "%s%s", ftell(out) ? " / " : "", what);
	if (number)
		fprintf(out, "%s%" PRId64, what[0] ? " " : "", number);
	if (name[0])
		fprintf(out, "%s%s", what[0] || number ? " " : "", name);
	else if (!number)
		fprintf(out, " [unknown]");
}

static void put_label(const struct groups *groups, const struct group *group, FILE *out)
{
	const uint32_t by = groups->by.keys;

	for (uint32_t i = 0; i < groups->by.label_count; i++)
		put_part(out, groups->by.label[i], 0,
			 group->other[i] ? text_of(groups, group->other[i]) : "none");
	if (by & GROUP_BY_CONTAINER)
		put_part(out, "container", 0,
			 group->container ? text_of(groups, group->container) : "none");
	if (by & (GROUP_BY_PROCESS | GROUP_BY_THREAD))
		put_part(out, "pid", group->pid, text_of(groups, group->comm));
	else if (by & GROUP_BY_COMM)
		put_part(out, "", 0, group->comm ? text_of(groups, group->comm) : "[no name]");
	if (by & GROUP_BY_THREAD)
		put_part(out, "thread", group->tid, text_of(groups, group->thread));
	else if (by & GROUP_BY_THREAD_NAME)
		put_part(out, "thread", 0,
			 group->thread ? text_of(groups, group->thread) : "[no name]");
	if (by & GROUP_BY_WAIT)
		put_part(out, "", 0, group->wait ? text_of(groups, group->wait) : "on the CPU");
	if (!by)
		fputs("all", out);
}

static int make_label(struct groups *groups, struct group *group)
{
	OWNED_MEM char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	put_label(groups, group, out);
	if (close_memory_file(out, &text))
		return -ENOMEM;
	return intern_bytes(groups->profile->strings, text, size, &group->label);
}

static bool group_equal(const void *context, uint32_t index, const void *key)
{
	const struct groups *groups = context;

	return !memcmp(&groups->group[index], key, offsetof(struct group, label));
}

static int find_group(struct groups *groups, struct group *group, uint32_t *ret_group)
{
	uint32_t hash = (uint32_t)XXH3_64bits(group, offsetof(struct group, label));
	int err;

	if (index_table_find(&groups->index, hash, group_equal, groups, group, ret_group))
		return 0;
	err = make_label(groups, group);
	if (!err)
		err = ARRAY_RESERVE(groups->group, groups->count, groups->capacity);
	if (!err)
		err = index_table_add(&groups->index, hash, groups->count);
	if (err)
		return err;
	groups->group[groups->count] = *group;
	*ret_group = groups->count++;
	return 0;
}

int groups_of_set(struct groups *groups, uint32_t label_set, uint32_t *ret_group)
{
	struct group group;
	int err;

	if (id_map_find(&groups->of_set, label_set, ret_group))
		return 0;
	err = id_map_reserve(&groups->of_set, groups->profile->label_set_capacity);
	if (err)
		return err;
	/* The padding is hashed too. */
	memset(&group, 0, sizeof(group));
	err = read_labels(groups, label_set, &group);
	if (!err)
		err = find_group(groups, &group, ret_group);
	if (!err)
		id_map_set(&groups->of_set, label_set, *ret_group);
	return err;
}
