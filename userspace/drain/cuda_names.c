/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/cuda_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/user_quota.h"
#include "drain/hash_set.h"
#include "drain/table.h"
#include "drain/text_table.h"

#define NAMES_MAX_BYTES (20U << 20) /* with what each handle takes */

struct name {
	uint64_t hash; /* first: hash_set.h */
	struct pp_cuda_handle handle;
	uint64_t text; /* its id */
	uint64_t of;   /* without a text: the handle that it stands for */
	uint32_t life; /* since which it has it */
	uint32_t user; /* who answers for its process */
	bool is_ended;
	char *name; /* owned; NULL: that handle's */
};

struct cuda_names {
	struct hash_set set;	 /* frees what it holds, but not their names */
	struct user_quota quota; /* bytes */
	cuda_names_user_of *user_of;
	void *context;
};

int cuda_names_new(cuda_names_user_of *user_of, void *context, struct cuda_names **ret_names)
{
	OWNED(cuda_names) struct cuda_names *names = calloc(1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	names->user_of = user_of;
	names->context = context;
	names->quota.total = NAMES_MAX_BYTES;
	hash_set_init(&names->set);
	*ret_names = TAKE(names);
	return 0;
}

void cuda_names_free(struct cuda_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->set.count; i++)
		free(((struct name *)names->set.entry[i])->name);
	hash_set_release(&names->set);
	user_quota_release(&names->quota);
	free(names);
}

static uint64_t hash_of(const struct pp_cuda_handle *handle)
{
	return hash_mix(hash_mix((uint64_t)handle->id.tgid << 32 | handle->id.generation, 1),
			handle->handle);
}

/* A process may choose handles whose hashes are those of others: such have no name. */
static struct name *find(const struct cuda_names *names, const struct pp_cuda_handle *handle)
{
	struct name *name = hash_set_find(&names->set, hash_of(handle));

	if (!name || name->handle.id.tgid != handle->id.tgid ||
	    name->handle.id.generation != handle->id.generation ||
	    name->handle.handle != handle->handle)
		return NULL;
	return name;
}

static int add_new(struct cuda_names *names, const struct pp_cuda_handle *handle,
		   struct name **ret_name)
{
	OWNED_MEM struct name *made = NULL;
	const uint32_t user = names->user_of(names->context, handle->id);
	int err;

	if (hash_set_find(&names->set, hash_of(handle)))
		return -ENOSPC;
	err = user_quota_take(&names->quota, user, sizeof(*made));
	if (err)
		return err;
	made = calloc(1, sizeof(*made));
	err = -ENOMEM;
	if (made) {
		made->hash = hash_of(handle);
		made->handle = *handle;
		made->user = user;
		err = hash_set_add(&names->set, made);
	}
	if (err) {
		user_quota_give(&names->quota, user, sizeof(*made));
		return err;
	}
	*ret_name = TAKE(made);
	return 0;
}

static void drop_text(struct cuda_names *names, struct name *name)
{
	if (name->name)
		user_quota_give(&names->quota, name->user, strlen(name->name));
	free(name->name);
	name->name = NULL;
}

/* Sets what a handle is called; string NULL: as the handle that it stands for. */
static int set_name(struct cuda_names *names, const struct pp_cuda_handle *handle,
		    const struct pp_cuda_name *value, const char *string)
{
	struct name *name = find(names, handle);
	char *copy = NULL;
	int err = name ? 0 : add_new(names, handle, &name);

	if (err)
		return err;
	drop_text(names, name);
	if (string) {
		err = user_quota_take(&names->quota, name->user, strlen(string));
		copy = err ? NULL : strdup(string);
	}
	if (!err && string && !copy) {
		user_quota_give(&names->quota, name->user, strlen(string));
		err = -ENOMEM;
	}
	name->name = copy;
	name->text = value->text;
	name->of = value->of;
	name->life = value->life;
	return err;
}

/* Returns whether it was for want of room: the handle has no name then. */
static bool is_full(int err)
{
	return err == -ENOSPC || err == -EDQUOT;
}

struct collecting {
	struct cuda_names *names;
	const struct text_table *texts;
};

static int on_name(void *context, const void *key, const void *value)
{
	const struct collecting *collecting = context;
	const struct pp_cuda_name *now = value;
	struct name *known = find(collecting->names, key);
	const char *text = NULL;
	int err;

	if (known && known->text == now->text && known->of == now->of) {
		known->life = now->life;
		return 0;
	}
	if (now->text) {
		text = text_table_find(collecting->texts, now->text);
		if (!text)
			return 0;
	}
	err = set_name(collecting->names, key, now, text);
	return is_full(err) ? 0 : err;
}

int cuda_names_collect(struct cuda_names *names, int map_fd, const struct text_table *texts)
{
	struct collecting collecting = {.names = names, .texts = texts};

	return table_read(map_fd, sizeof(struct pp_cuda_handle), sizeof(struct pp_cuda_name),
			  on_name, &collecting);
}

static bool is_kept(const void *context, const void *entry)
{
	const struct name *name = entry;

	(void)context;
	return !name->is_ended;
}

void cuda_names_tidy(struct cuda_names *names,
		     bool (*is_alive)(void *context, struct pp_process_id id), void *context)
{
	bool has_ended = false;

	for (size_t i = 0; i < names->set.count; i++) {
		struct name *name = names->set.entry[i];

		if (is_alive(context, name->handle.id))
			continue;
		drop_text(names, name);
		user_quota_give(&names->quota, name->user, sizeof(*name));
		name->is_ended = has_ended = true;
	}
	if (has_ended)
		hash_set_filter(&names->set, is_kept, names);
}

static const struct name *find_in(const struct cuda_names *names,
				  const struct pp_cuda_handle *handle, uint32_t life)
{
	const struct name *name = find(names, handle);

	return name && name->life == life ? name : NULL;
}

struct pp_cuda_handle cuda_names_origin(const struct cuda_names *names,
					const struct pp_cuda_handle *handle, uint32_t life)
{
	const struct name *name = find_in(names, handle, life);
	struct pp_cuda_handle origin = *handle;

	if (name && name->of)
		origin.handle = name->of;
	return origin;
}

const char *cuda_names_find(const struct cuda_names *names, const struct pp_cuda_handle *handle,
			    uint32_t life, uint64_t *ret_text)
{
	const struct pp_cuda_handle origin = cuda_names_origin(names, handle, life);
	const struct name *name = find_in(names, &origin, life);

	if (!name || !name->name)
		return NULL;
	*ret_text = name->text;
	return name->name;
}

/* ---- what rows are called ---- */

/* Texts have ids that are hashes, among handles that are addresses. */
static struct pp_cuda_handle key_of(struct pp_process_id id, uint64_t text)
{
	return (struct pp_cuda_handle){.id = id, .handle = text};
}

int cuda_names_note_text(struct cuda_names *names, const struct pp_cuda_handle *handle,
			 uint64_t text, const struct text_table *texts)
{
	const struct pp_cuda_handle key = key_of(handle->id, text);
	const char *string = text_table_find(texts, text);
	const struct name *known = find(names, handle);
	int err;

	if (find(names, &key))
		return 0;
	/* It was sent in an earlier epoch. */
	if (known && known->of)
		known = find(names,
			     &(struct pp_cuda_handle){.id = handle->id, .handle = known->of});
	if (!string && known && known->text == text)
		string = known->name;
	if (!string)
		return 0;
	err = set_name(names, &key, &(struct pp_cuda_name){.text = text}, string);
	return is_full(err) ? 0 : err;
}

const char *cuda_names_find_text(const struct cuda_names *names, struct pp_process_id id,
				 uint64_t text)
{
	const struct pp_cuda_handle key = key_of(id, text);
	const struct name *name = find(names, &key);

	return name ? name->name : NULL;
}
