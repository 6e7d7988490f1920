/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/file_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "base/clock.h"

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
	struct file_link *link, *next;

	if (!names)
		return;
	HASH_ITER (hh, names->link, link, next) {
		HASH_DEL(names->link, link);
		free(link);
	}
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
	HASH_DEL(names->link, link);
	free(link);
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
