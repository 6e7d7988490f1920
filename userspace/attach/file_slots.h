/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers files.  An id is a slot and, above it, how often the slot was reused; stacks store the
 * slot alone, so a slot rests before it is used again.  Private to file_table.c. */
#ifndef ATTACH_FILE_SLOTS_H
#define ATTACH_FILE_SLOTS_H

#include <stddef.h>
#include <stdint.h>

struct file;
struct resting_slot;
struct file_slots {
	struct file **file;   /* owned array; by slot - PP_FILE_FIRST, NULL: forgotten */
	uint16_t *generation; /* owned; of the file that a slot has or had */
	uint32_t count, capacity;
	struct resting_slot *resting; /* owned */
	uint32_t *free_slot;	      /* owned; a stack of them */
	size_t resting_count, resting_capacity, free_count, free_capacity;
};
void file_slots_release(struct file_slots *slots);

/* Gives a file a free slot.  Returns 0; -ENOSPC: as many files are mapped, or were lately, as there
 * are ids; -ENOMEM. */
int file_slots_put(struct file_slots *slots, struct file *file, uint32_t *ret_id);
/* Returns the file that has a slot; NULL: none. */
struct file *file_slots_get(const struct file_slots *slots, uint32_t slot);
/* Takes the slot from its file; it rests from now on. */
void file_slots_drop(struct file_slots *slots, uint32_t slot);
/* As file_table_end_epoch(). */
void file_slots_end_epoch(struct file_slots *slots, const uint64_t *named);

#endif
