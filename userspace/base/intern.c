/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/intern.h"

#include <errno.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/index_table.h"
#include "base/utf8.h"

#define CHUNK_BYTES 16384U

struct intern_chunk {
	struct intern_chunk *next;
	size_t used, size;
	char bytes[];
};

struct intern_string {
	const char *bytes;
	uint32_t size;
};

/* A table of ids over an array of strings over chunks: one allocation a chunk, not one a string, as
 * uthash would need (a window has tens of thousands). */
struct intern {
	struct intern_chunk *chunk;
	struct intern_string *string;
	uint32_t count, capacity;
	struct index_table table; /* by hash; the index is the id */
	uint64_t seed;		  /* of the hashes: programs choose their names */
	size_t bytes_used;
};

void intern_free(struct intern *intern)
{
	if (!intern)
		return;
	for (struct intern_chunk *chunk = intern->chunk, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(intern->string);
	index_table_release(&intern->table);
	free(intern);
}

int intern_new(struct intern **ret_intern)
{
	OWNED(intern) struct intern *intern = calloc(1, sizeof(*intern));
	uint32_t empty;

	if (!intern)
		return -ENOMEM;
	intern->seed = hash_factor();
	if (intern_bytes(intern, "", 0, &empty))
		return -ENOMEM;
	*ret_intern = TAKE(intern);
	return 0;
}

static char *chunk_take(struct intern *intern, size_t size)
{
	struct intern_chunk *chunk = intern->chunk;

	if (!chunk || chunk->size - chunk->used < size) {
		size_t bytes = size > CHUNK_BYTES ? size : CHUNK_BYTES;

		chunk = malloc(sizeof(*chunk) + bytes);
		if (!chunk)
			return NULL;
		*chunk = (struct intern_chunk){.next = intern->chunk, .size = bytes};
		intern->chunk = chunk;
		intern->bytes_used += bytes;
	}
	chunk->used += size;
	return chunk->bytes + chunk->used - size;
}

/* Makes the string that gets the next id. */
static int append(struct intern *intern, const char *bytes, size_t size)
{
	char *copy;

	if (ARRAY_RESERVE(intern->string, intern->count, intern->capacity))
		return -ENOMEM;
	copy = chunk_take(intern, size + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, bytes, size);
	copy[size] = '\0';
	intern->string[intern->count] =
		(struct intern_string){.bytes = copy, .size = (uint32_t)size};
	return 0;
}

/* A string that is looked for. */
struct wanted {
	const char *bytes;
	size_t size;
};

static bool is_wanted(const void *context, uint32_t id, const void *key)
{
	const struct intern_string *string = &((const struct intern *)context)->string[id];
	const struct wanted *wanted = key;

	return string->size == wanted->size && !memcmp(string->bytes, wanted->bytes, wanted->size);
}

int intern_bytes(struct intern *intern, const char *bytes, size_t size, uint32_t *ret_id)
{
	const uint32_t hash = (uint32_t)XXH3_64bits_withSeed(bytes, size, intern->seed);
	const struct wanted wanted = {.bytes = bytes, .size = size};
	int err;

	if (size > UINT32_MAX)
		return -ENOMEM;
	if (index_table_find(&intern->table, hash, is_wanted, intern, &wanted, ret_id))
		return 0;
	err = append(intern, bytes, size);
	if (!err)
		err = index_table_add(&intern->table, hash, intern->count);
	if (err)
		return err;
	*ret_id = intern->count++;
	return 0;
}

int intern_clean(struct intern *intern, const char *bytes, size_t size, uint32_t *ret_id)
{
	OWNED_MEM char *clean = NULL;

	if (utf8_is_clean(bytes, size))
		return intern_bytes(intern, bytes, size, ret_id);
	clean = reallocarray(NULL, size, UTF8_CLEAN_MAX_GROWTH);
	if (!clean)
		return -ENOMEM;
	return intern_bytes(intern, clean, utf8_clean(bytes, size, clean), ret_id);
}

int intern_string(struct intern *intern, const char *string, uint32_t *ret_id)
{
	return intern_bytes(intern, string, strlen(string), ret_id);
}

const char *intern_get(const struct intern *intern, uint32_t id, size_t *ret_size)
{
	if (ret_size)
		*ret_size = intern->string[id].size;
	return intern->string[id].bytes;
}

uint32_t intern_count(const struct intern *intern)
{
	return intern->count;
}

size_t intern_bytes_used(const struct intern *intern)
{
	return intern->bytes_used + (size_t)intern->capacity * sizeof(*intern->string) +
	       index_table_bytes(&intern->table);
}
