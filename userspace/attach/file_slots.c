/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/file_slots.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "attach/file_table.h"
#include "base/array.h"

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
