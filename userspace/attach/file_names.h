/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds files by several kinds of names, and by number.  A file has many names, a name belongs to
 * one file.  One thread. */
#ifndef ATTACH_FILE_NAMES_H
#define ATTACH_FILE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "discover/process.h"

enum file_name_kind {
	FILE_NAME_MAPPED = 1, /* a mapping's key and path */
	FILE_NAME_OPENED,     /* key, time of the last change, path: as fstat() shows it */
	FILE_NAME_INODE,      /* the same without a path: finds the file whose rows are loaded */
	FILE_NAME_BUILD_ID,   /* the file's own claim: where to look for an equal one */
};

struct file_name {
	enum file_name_kind kind;
	struct file_key key; /* zeros for a build-id */
	uint64_t changed_ns; /* CLOCK_REALTIME; 0 for the other kinds */
	const void *text;    /* path or build-id, borrowed */
	size_t text_bytes;
};

struct file;
struct file_link; /* a name of a file; each file has a list of its own */
struct file_names;
int file_names_new(struct file_names **ret_names);
void file_names_free(struct file_names *names);
DEFINE_OWNED(struct file_names, file_names)

/* Finds the file with this name; NULL: none. */
struct file *file_names_find(const struct file_names *names, const struct file_name *name);
/* Adds a name with another inode than the file's own.  That inode may be deleted and its number
 * reused, so the name is dropped when nobody looked for it since before_ns. */
int file_names_lend(struct file_names *names, const struct file_name *name, struct file *file,
		    struct file_link **list);
void file_names_tidy(struct file_names *names, uint64_t before_ns);
/* Gives a name to a file, and takes it from any other.  *list: all names of the file.  Returns 0;
 * -ENOMEM. */
int file_names_set(struct file_names *names, const struct file_name *name, struct file *file,
		   struct file_link **list);
/* Removes all names of a file and frees the list. */
void file_names_drop(struct file_names *names, struct file_link **list);

/* ---- numbers ----
 * An id is a slot and, above it, how often the slot was reused; stacks store the slot alone, so a
 * slot rests before it is used again. */

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
