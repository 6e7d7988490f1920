/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/intern.h"

#include <errno.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/hash_place.h"

#define FIRST_SLOTS 256U
#define CHUNK_BYTES 16384U

struct intern_chunk {
	struct intern_chunk *next;
	size_t used, size;
	char bytes[];
};

struct intern_string {
	const char *bytes;
	uint32_t size;
	uint32_t hash;
};

/* An open-addressing table of ids over an array of strings over chunks: one allocation a chunk, not
 * one a string, as uthash would need (a window has tens of thousands). */
struct intern {
	struct intern_chunk *chunk;
	struct intern_string *string;
	uint32_t count, capacity;
	uint32_t *slot; /* id + 1; 0: free */
	uint32_t slot_mask;
	uint64_t seed; /* of the hashes: programs choose their names */
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
	free(intern->slot);
	free(intern);
}

int intern_new(struct intern **ret_intern)
{
	OWNED(intern) struct intern *intern = calloc(1, sizeof(*intern));
	uint32_t empty;

	if (!intern)
		return -ENOMEM;
	intern->slot = calloc(FIRST_SLOTS, sizeof(*intern->slot));
	if (!intern->slot)
		return -ENOMEM;
	intern->slot_mask = FIRST_SLOTS - 1;
	intern->seed = hash_factor();
	if (intern_bytes(intern, "", 0, &empty))
		return -ENOMEM;
	*ret_intern = TAKE(intern);
	return 0;
}

static int grow_slots(struct intern *intern)
{
	uint32_t mask = intern->slot_mask * 2 + 1;
	uint32_t *slot = calloc((size_t)mask + 1, sizeof(*slot));

	if (!slot)
		return -ENOMEM;
	for (uint32_t id = 0; id < intern->count; id++) {
		uint32_t at = intern->string[id].hash & mask;

		while (slot[at])
			at = (at + 1) & mask;
		slot[at] = id + 1;
	}
	free(intern->slot);
	intern->slot = slot;
	intern->slot_mask = mask;
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

static int append(struct intern *intern, const char *bytes, size_t size, uint32_t hash)
{
	char *copy;

	if (intern->count == intern->capacity) {
		uint32_t capacity = intern->capacity ? intern->capacity * 2 : FIRST_SLOTS;
		struct intern_string *grown =
			realloc(intern->string, (size_t)capacity * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		intern->string = grown;
		intern->capacity = capacity;
	}
	copy = chunk_take(intern, size + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, bytes, size);
	copy[size] = '\0';
	intern->string[intern->count++] =
		(struct intern_string){.bytes = copy, .size = (uint32_t)size, .hash = hash};
	return 0;
}

int intern_bytes(struct intern *intern, const char *bytes, size_t size, uint32_t *ret_id)
{
	uint32_t hash = (uint32_t)XXH3_64bits_withSeed(bytes, size, intern->seed);
	uint32_t at = hash & intern->slot_mask;
	int err;

	if (size > UINT32_MAX)
		return -ENOMEM;
	for (; intern->slot[at]; at = (at + 1) & intern->slot_mask) {
		const struct intern_string *string = &intern->string[intern->slot[at] - 1];

		if (string->hash == hash && string->size == size &&
		    !memcmp(string->bytes, bytes, size)) {
			*ret_id = intern->slot[at] - 1;
			return 0;
		}
	}
	err = append(intern, bytes, size, hash);
	if (err)
		return err;
	intern->slot[at] = intern->count;
	*ret_id = intern->count - 1;
	/* At most half full, so that probing stays short. */
	if (intern->count * 2 > intern->slot_mask)
		return grow_slots(intern);
	return 0;
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
	       ((size_t)intern->slot_mask + 1) * sizeof(*intern->slot);
}
