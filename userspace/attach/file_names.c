/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/file_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "attach/file_table.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"

#define TEXT_MAX_BYTES 8192U /* paths of mappings are shorter */

struct fixed_part {
	uint32_t kind, major, minor, reserved;
	uint64_t inode, generation, changed_ns;
};

struct file_link {
	struct file *file;
	struct file_link *next, **previous; /* in its file's list */
	bool is_lent;
	uint64_t used_ns; /* of a lent name */
	UT_hash_handle hh;
	uint8_t key[]; /* struct fixed_part, then the text */
};

struct file_names {
	struct file_link *link;
};

struct key_buffer {
	uint8_t bytes[sizeof(struct fixed_part) + TEXT_MAX_BYTES];
	size_t size;
};

static int fill_key(const struct file_name *name, struct key_buffer *key)
{
	const struct fixed_part part = {.kind = name->kind,
					.major = name->key.major,
					.minor = name->key.minor,
					.inode = name->key.inode,
					.generation = name->key.inode_generation,
					.changed_ns = name->changed_ns};

	if (name->text_bytes > TEXT_MAX_BYTES)
		return -ENAMETOOLONG;
	memcpy(key->bytes, &part, sizeof(part));
	if (name->text_bytes)
		memcpy(key->bytes + sizeof(part), name->text, name->text_bytes);
	key->size = sizeof(part) + name->text_bytes;
	return 0;
}

int file_names_new(struct file_names **ret_names)
{
	*ret_names = calloc(1, sizeof(**ret_names));
	return *ret_names ? 0 : -ENOMEM;
}

void file_names_free(struct file_names *names)
{
	if (!names)
		return;
	HASH_DROP_ALL(names->link);
	free(names);
}

static struct file_link *find(const struct file_names *names, const struct key_buffer *key)
{
	struct file_link *link;

	HASH_FIND(hh, names->link, key->bytes, key->size, link);
	return link;
}

struct file *file_names_find(const struct file_names *names, const struct file_name *name)
{
	struct key_buffer key;
	struct file_link *link = fill_key(name, &key) ? NULL : find(names, &key);

	if (link && link->is_lent)
		link->used_ns = mono_ns();
	return link ? link->file : NULL;
}

static void list_put(struct file_link *link, struct file *file, struct file_link **list)
{
	link->file = file;
	link->next = *list;
	link->previous = list;
	if (*list)
		(*list)->previous = &link->next;
	*list = link;
}

static void list_take(struct file_link *link)
{
	*link->previous = link->next;
	if (link->next)
		link->next->previous = link->previous;
}

static int set(struct file_names *names, const struct file_name *name, struct file *file,
	       struct file_link **list, bool is_lent)
{
	struct key_buffer key;
	struct file_link *link;
	int err = fill_key(name, &key);

	if (err)
		return err == -ENAMETOOLONG ? 0 : err;
	link = find(names, &key);
	if (link) {
		list_take(link);
		list_put(link, file, list);
		link->is_lent = is_lent;
		link->used_ns = mono_ns();
		return 0;
	}
	link = malloc(sizeof(*link) + key.size);
	if (!link)
		return -ENOMEM;
	link->is_lent = is_lent;
	link->used_ns = mono_ns();
	memcpy(link->key, key.bytes, key.size);
	HASH_ADD_KEYPTR(hh, names->link, link->key, key.size, link);
	/* HASH_NONFATAL_OOM: the name was not added. */
	if (!find(names, &key)) {
		free(link);
		return -ENOMEM;
	}
	list_put(link, file, list);
	return 0;
}

int file_names_set(struct file_names *names, const struct file_name *name, struct file *file,
		   struct file_link **list)
{
	return set(names, name, file, list, false);
}

int file_names_lend(struct file_names *names, const struct file_name *name, struct file *file,
		    struct file_link **list)
{
	return set(names, name, file, list, true);
}

static void drop(struct file_names *names, struct file_link *link)
{
	list_take(link);
	HASH_DROP(names->link, link);
}

void file_names_tidy(struct file_names *names, uint64_t before_ns)
{
	struct file_link *link, *next;

	HASH_ITER (hh, names->link, link, next) {
		if (link->is_lent && link->used_ns < before_ns)
			drop(names, link);
	}
}

void file_names_drop(struct file_names *names, struct file_link **list)
{
	while (*list)
		drop(names, *list);
}

/* A slot whose file was forgotten; stacks may still refer to it. */
struct resting_slot {
	uint32_t slot, epochs;
};

void file_slots_release(struct file_slots *slots)
{
	free(slots->file);
	free(slots->generation);
	free(slots->resting);
	free(slots->free_slot);
	*slots = (struct file_slots){0};
}

struct file *file_slots_get(const struct file_slots *slots, uint32_t slot)
{
	uint32_t at = slot - PP_FILE_FIRST;

	return slot >= PP_FILE_FIRST && at < slots->count ? slots->file[at] : NULL;
}

static int grow(struct file_slots *slots)
{
	uint32_t capacity = slots->capacity ? slots->capacity * 2 : 64;
	struct file **file = realloc(slots->file, capacity * sizeof(*file));
	uint16_t *generation;

	if (!file)
		return -ENOMEM;
	slots->file = file;
	generation = realloc(slots->generation, capacity * sizeof(*generation));
	if (!generation)
		return -ENOMEM;
	slots->generation = generation;
	slots->capacity = capacity;
	return 0;
}

static int slot_take(struct file_slots *slots, uint32_t *ret_at)
{
	int err = 0;

	if (slots->free_count) {
		*ret_at = slots->free_slot[--slots->free_count] - PP_FILE_FIRST;
		return 0;
	}
	if (slots->count == FILE_SLOTS - PP_FILE_FIRST)
		return -ENOSPC;
	if (slots->count == slots->capacity)
		err = grow(slots);
	if (err)
		return err;
	slots->generation[slots->count] = 0;
	*ret_at = slots->count++;
	return 0;
}

int file_slots_put(struct file_slots *slots, struct file *file, uint32_t *ret_id)
{
	uint32_t at;
	int err = slot_take(slots, &at);

	if (err)
		return err;
	slots->file[at] = file;
	*ret_id = (uint32_t)slots->generation[at] << FILE_SLOT_BITS | (PP_FILE_FIRST + at);
	return 0;
}

/* When there is no memory to note the slot, it is lost. */
void file_slots_drop(struct file_slots *slots, uint32_t slot)
{
	const uint32_t at = slot - PP_FILE_FIRST;

	slots->file[at] = NULL;
	slots->generation[at] = (uint16_t)((slots->generation[at] + 1U) & (FILE_GENERATIONS - 1));
	if (ARRAY_RESERVE(slots->resting, slots->resting_count, slots->resting_capacity))
		return;
	slots->resting[slots->resting_count++] = (struct resting_slot){.slot = slot};
}

static bool slot_free(struct file_slots *slots, uint32_t slot)
{
	if (ARRAY_RESERVE(slots->free_slot, slots->free_count, slots->free_capacity))
		return false;
	slots->free_slot[slots->free_count++] = slot;
	return true;
}

void file_slots_end_epoch(struct file_slots *slots, const uint64_t *named)
{
	size_t kept = 0;

	for (size_t i = 0; i < slots->resting_count; i++) {
		struct resting_slot rest = slots->resting[i];
		const bool is_named = named[rest.slot / 64] >> (rest.slot % 64) & 1;

		if (++rest.epochs < FILE_SLOT_REST_EPOCHS || is_named ||
		    !slot_free(slots, rest.slot))
			slots->resting[kept++] = rest;
	}
	slots->resting_count = kept;
}
