/* SPDX-License-Identifier: BSD-2-Clause */
/* The stacks, kernel stacks and code objects that the kernel side has sent, each once; counters
 * refer to them by hash.  Frames are packed into 8 bytes, and a budget bounds all of it.  One
 * thread. */
#ifndef DRAIN_DICTIONARY_H
#define DRAIN_DICTIONARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/sample.h>

#include "base/cleanup.h"
#include "drain/decode.h"
#include "python/python_code.h"

/* kind:3 | native: slot of the file:21, address:40 | Python: code index:29, what:32 | segment, gap:
 * count:32 */
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
	/* a frame's code object is missing: it is looked up again when the stack is sent again */
	bool lacks_code;
	uint32_t user; /* whose share it is part of */
	packed_frame frame[];
};

struct dict_kernel {
	uint64_t hash;
	uint32_t epoch;
	uint32_t count;
	uint64_t address[];
};

struct dictionary;

/* Creates a dictionary of at most max_bytes.  An entry that exceeds this budget, or the share that
 * its process or its user has of it (base/user_quota.h), is refused and counted. */
int dictionary_new(size_t max_bytes, struct dictionary **ret_dictionary);
void dictionary_set_max_bytes(struct dictionary *dictionary, size_t max_bytes);
void dictionary_free(struct dictionary *dictionary);
DEFINE_OWNED(struct dictionary, dictionary)

/* Sets a function that reads code objects which the kernel side could not read; it returns 0 and an
 * owned code, or -errno.  read_raw may be NULL.  Frames whose code object never arrived (its record
 * was lost) have code index 0. */
typedef int (*dictionary_read_raw)(void *context, struct pp_process_id id, uint8_t python,
				   uint64_t address, struct python_code **ret_code);
void dictionary_set_reader(struct dictionary *dictionary, dictionary_read_raw read_raw,
			   void *context);

/* Sets a function that finds who answers for a process; 0: root, whose processes are bounded one by
 * one.  Without it all are root's. */
typedef uint32_t (*dictionary_user_of)(void *context, struct pp_process_id id);
void dictionary_set_users(struct dictionary *dictionary, dictionary_user_of user_of, void *context);

/* Adds a stack, or marks it as used in this epoch.  Returns 0; -ENOSPC: over the budget;
 * -ENOMEM. */
int dictionary_add_stack(struct dictionary *dictionary, const struct decoded_stack *stack);
/* Gives a stack a second hash.  The kernel side names an incomplete stack by the frame at which the
 * walk ended, which differs each time.  A torn stack does not take the place of one that is not
 * torn.  *ret_again: the hash still stands for a torn stack, and another unwind of it is worth the
 * try; never after DICTIONARY_ALIAS_TRIES.  Returns 0; -ENOSPC; -ENOMEM. */
#define DICTIONARY_ALIAS_TRIES 16U
int dictionary_add_alias(struct dictionary *dictionary, uint64_t hash, uint64_t stack,
			 bool *ret_again);
int dictionary_add_kernel(struct dictionary *dictionary, const struct decoded_kernel *kernel);
/* Adds a code object and takes ownership of it, also on failure.  `id`: the process in which it was
 * seen first. */
int dictionary_add_code(struct dictionary *dictionary, struct pp_process_id id,
			struct python_code *code, uint32_t *ret_index);

/* Sets, in a bitmap of 1 << 21 bits, the bit packed_file() for each file that a stack refers to. */
void dictionary_note_files(const struct dictionary *dictionary, uint64_t *ret_named);
/* Calls `found` for each native frame that lies in a file whose bit is set in such a bitmap; equal
 * frames may come more than once. */
void dictionary_find_frames(const struct dictionary *dictionary, const uint64_t *files,
			    void (*found)(void *context, packed_frame frame), void *context);

const struct dict_stack *dictionary_find_stack(const struct dictionary *dictionary, uint64_t hash);
const struct dict_kernel *dictionary_find_kernel(const struct dictionary *dictionary,
						 uint64_t hash);
/* Find a stack and keep it for two more epochs: the stack of a thread that sleeps for long is sent
 * once. */
const struct dict_stack *dictionary_use_stack(struct dictionary *dictionary, uint64_t hash);
const struct dict_kernel *dictionary_use_kernel(struct dictionary *dictionary, uint64_t hash);
bool dictionary_knows_code(const struct dictionary *dictionary, uint64_t id);
/* Returns NULL for index 0. */
const struct python_code *dictionary_code(const struct dictionary *dictionary, uint32_t index);
/* Returns the code objects whose bytes are not decoded; they are taken off as they are decoded,
 * given up or dropped. */
struct raw_codes;
struct raw_codes *dictionary_raw_codes(struct dictionary *dictionary);
/* Gives a code object its texts, which it takes over.  Where its share has no room for its lines,
 * all are the first one.  Returns 0; -ENOSPC: there is none for its names either, it is given
 * up. */
int dictionary_decode_code(struct dictionary *dictionary, uint32_t index,
			   struct python_code_text *text);
/* Returns whether a Python frame of a stack has a code object that is not decoded. */
bool dictionary_has_raw(const struct dictionary *dictionary, const struct dict_stack *stack);
/* Gives up on decoding a code object. */
void dictionary_give_up_code(struct dictionary *dictionary, uint32_t index);

/* Returns whether this stack was refused since the epoch began.  Wrong for a few in a million. */
bool dictionary_was_refused(const struct dictionary *dictionary, uint64_t hash);

/* Starts an epoch: the kernel side sends everything once more, and entries not sent in the last two
 * epochs are dropped.  Code objects stay. */
void dictionary_set_epoch(struct dictionary *dictionary, uint32_t epoch);
/* Makes room: drops what was not used in this epoch, all stacks of processes with more than a
 * quarter of the budget, and then the code objects that no stack refers to.  The kernel side must
 * send code objects again after that. */
void dictionary_make_room(struct dictionary *dictionary);

struct dictionary_stats {
	size_t stacks, kernel_stacks, codes, bytes;
	uint64_t refused, unknown_code;
	uint64_t users_refused; /* of the refused: the user had no share left */
};
void dictionary_get_stats(const struct dictionary *dictionary, struct dictionary_stats *ret_stats);

#endif
