/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel side has described once: stacks, kernel stacks, code objects.  Counters name them
 * by hash.  Frames are packed into 8 bytes; a budget bounds the whole.  One thread. */
#ifndef DRAIN_DICTIONARY_H
#define DRAIN_DICTIONARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/sample.h>

#include "base/cleanup.h"
#include "drain/decode.h"
#include "python/python_code.h"

/* kind:3 | native: slot of the file:21, address:40 | Python: code index:29, what:32 | run, gap: count:32 */
typedef uint64_t packed_frame;
static inline uint32_t packed_kind(packed_frame frame)
{
	return (uint32_t)(frame >> 61);
}
static inline uint32_t packed_file(packed_frame frame)
{
	return frame >> 40 & 0x1fffff;
}
static inline uint64_t packed_address(packed_frame frame)
{
	return frame & 0xffffffffffULL;
}
static inline uint32_t packed_code(packed_frame frame)
{
	return frame >> 32 & 0x1fffffff;
}
static inline uint32_t packed_what(packed_frame frame)
{
	return (uint32_t)frame;
}
packed_frame packed_native(enum pp_frame_kind kind, uint32_t file, uint64_t address);
packed_frame packed_python(uint32_t code, uint32_t what);

/* One user stack: Python frames, then native ones, each leaf to root (struct pp_stack_record). */
struct dict_stack {
	uint64_t hash;
	struct pp_process_id id; /* of the first process seen with it */
	uint32_t epoch;
	uint32_t python_count, native_count;
	uint16_t python_stored, native_stored;
	uint8_t stop, py_stop, python;
	bool lacks_code; /* of a frame: it is looked up once more when the stack comes again */
	packed_frame frame[];
};

struct dict_kernel {
	uint64_t hash;
	uint32_t epoch;
	uint32_t count;
	uint64_t address[];
};

struct dictionary;

/* max_bytes: of everything.  Beyond it, and beyond a process's share of it (drain/shares.h), new entries
 * are refused and counted. */
int dictionary_new(size_t max_bytes, struct dictionary **ret_dictionary);
void dictionary_set_max_bytes(struct dictionary *dictionary, size_t max_bytes);
void dictionary_free(struct dictionary *dictionary);
DEFINE_OWNED(struct dictionary, dictionary)

/* Frames whose code object was never described (its record was lost) have code index 0.
 * read_raw (may be NULL) is asked for code objects that the kernel could not read:
 * 0 and an owned code, or -errno. */
typedef int (*dictionary_read_raw)(void *context, struct pp_process_id id, uint8_t python,
				   uint64_t address, struct python_code **ret_code);
void dictionary_set_reader(struct dictionary *dictionary, dictionary_read_raw read_raw,
			   void *context);

/* Adds or refreshes.  0; -ENOSPC: over the budget; -ENOMEM. */
int dictionary_add_stack(struct dictionary *dictionary, const struct decoded_stack *stack);
/* A second hash for a stack: the kernel side names one that it could not finish by where it ended, which is
 * another place each time.  0; -ENOSPC; -ENOMEM. */
int dictionary_add_alias(struct dictionary *dictionary, uint64_t hash, uint64_t stack);
int dictionary_add_kernel(struct dictionary *dictionary, const struct decoded_kernel *kernel);
/* Takes the code over, also on failure.  `id`: the process that it was first met in. */
int dictionary_add_code(struct dictionary *dictionary, struct pp_process_id id,
			struct python_code *code, uint32_t *ret_index);

/* Sets bit `packed_file()` of 1 << 21 for each file that a stack names. */
void dictionary_note_files(const struct dictionary *dictionary, uint64_t *ret_named);

const struct dict_stack *dictionary_find_stack(const struct dictionary *dictionary, uint64_t hash);
const struct dict_kernel *dictionary_find_kernel(const struct dictionary *dictionary, uint64_t hash);
/* The same, and it stays for two epochs more: a thread that sleeps for long sends its stack once. */
const struct dict_stack *dictionary_use_stack(struct dictionary *dictionary, uint64_t hash);
const struct dict_kernel *dictionary_use_kernel(struct dictionary *dictionary, uint64_t hash);
bool dictionary_knows_code(const struct dictionary *dictionary, uint64_t id);
/* NULL for index 0. */
const struct python_code *dictionary_code(const struct dictionary *dictionary, uint32_t index);

/* Whether this stack found no room since the epoch began.  Wrong for a few in a million. */
bool dictionary_was_refused(const struct dictionary *dictionary, uint64_t hash);

/* A new epoch: the kernel side sends everything once more; entries not sent in the last two epochs
 * go.  Code objects stay. */
void dictionary_set_epoch(struct dictionary *dictionary, uint32_t epoch);
/* Makes room: what was not used in this epoch goes, all stacks of processes with more than a quarter of
 * the budget, and the code objects that no stack is left of.  The kernel side must describe code objects
 * anew then. */
void dictionary_make_room(struct dictionary *dictionary);

struct dictionary_stats {
	size_t stacks, kernel_stacks, codes, bytes;
	uint64_t refused, unknown_code;
};
void dictionary_get_stats(const struct dictionary *dictionary, struct dictionary_stats *ret_stats);

#endif
