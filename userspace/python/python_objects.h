/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects of another process's CPython: strings, integers, dictionaries, instance attributes.
 * Nothing here trusts what it reads: pointers may be stale, sizes absurd; every read and every
 * allocation is bounded, and a structure that changes while it is read gives an error or an entry
 * that is not there, never a loop. */
#ifndef PYTHON_PYTHON_OBJECTS_H
#define PYTHON_PYTHON_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <pyprofd/python.h>

#include "base/cleanup.h"
#include "base/io.h"

#define PYTHON_MAX_DICT_ENTRIES 65536U

/* Whose memory, and how its interpreter lays objects out. */
struct python_memory {
	pid_t pid;
	const struct pp_python *layout; /* borrowed */
	/* Reads that may still be made, one a started KiB (borrowed; NULL: no bound).  At 0 every read
	 * gives -ETIME, so that a hostile process costs no more than this. */
	uint32_t *reads_left;
};

/* Returns 0; -EFAULT; -ETIME; -ESRCH; -errno. */
int python_read_u64(const struct python_memory *memory, uint64_t address, uint64_t *ret_value);
/* At most PROCESS_PIECES_MAX pieces at once: all or none.  Returns the same. */
int python_read_pieces(const struct python_memory *memory, const struct process_piece *piece,
		       size_t count);

/* Characters of 1, 2 or 4 bytes (`kind`) -> UTF-8, NUL-terminated, on the heap.  Kind 1 is Latin-1;
 * is_bytes (2.7): bytes that should be UTF-8.  What has no UTF-8 form (surrogates, NUL, beyond
 * U+10FFFF, stray bytes) becomes U+FFFD.  Returns 0; -ENOMEM; -EBADMSG: no such kind
 * (of no bytes any kind is fine). */
int python_text_decode(const uint8_t *bytes, size_t size, unsigned int kind, bool is_bytes,
		       char **ret_text);
/* Length of the longest prefix of whole UTF-8 characters in at most max_bytes. */
size_t python_text_cut(const char *text, size_t max_bytes);

/* A str (2.7: PyString) where it lies. */
struct python_string {
	uint64_t data;	   /* address */
	uint64_t length;   /* characters */
	unsigned int kind; /* bytes a character: 1, 2, 4 */
};
/* Returns 0; -EBADMSG: not a compact str; -EFAULT; -errno. */
int python_string_find(const struct python_memory *memory, uint64_t address,
		       struct python_string *ret_string);
/* At most max_bytes of it, cut at a character, as UTF-8.  Returns as the two above. */
int python_string_read(const struct python_memory *memory, uint64_t address, size_t max_bytes,
		       char **ret_text);

/* An int of at most 60 bits, not negative (not 2.7).  Returns 0; -ERANGE; -EFAULT; -errno. */
int python_int_read(const struct python_memory *memory, uint64_t address, uint64_t *ret_value);

/* A word of the other process's memory, and what it held. */
struct python_word {
	uint64_t address, value;
};

struct python_dict_entry {
	uint64_t hash; /* of the key; 0 where the table has none (unicode-only tables of 3.11+) */
	uint64_t key, value;
	uint64_t value_address; /* where the value lies */
};
/* A copy of a dictionary's live entries; of the first 65,536 slots at most. */
struct python_dict {
	struct python_dict_entry *entry; /* owned */
	size_t count;
	struct python_word slots; /* used in the table, deleted ones too (2.7: none, all 0) */
};
/* The object itself, without its table. */
#define PYTHON_DICT_FIELDS 4U
struct python_dict_head {
	uint64_t address;
	uint64_t type;
	uint64_t field[PYTHON_DICT_FIELDS]; /* after the object's header: used, a version tag (up to
					     * 3.12), keys, values; 2.7: fill, used, mask, table */
};
/* Returns 0; -EFAULT; -errno. */
int python_dict_head_read(const struct python_memory *memory, uint64_t address,
			  struct python_dict_head *ret_head);
/* Returns 0; -EBADMSG: no dictionary that we know; -EFAULT; -ENOMEM; -errno. */
int python_dict_read_table(const struct python_memory *memory, const struct python_dict_head *head,
			   struct python_dict *ret_dict);
/* Both; returns the same. */
int python_dict_read(const struct python_memory *memory, uint64_t address,
		     struct python_dict *ret_dict);
/* The field that points to the table: as long as it stays, each entry is where it was read. */
struct python_word python_dict_table_word(const struct python_memory *memory,
					  const struct python_dict_head *head);
/* Words that do not all stay when a key is added.  Returns how many. */
#define PYTHON_DICT_STAMP_WORDS (PYTHON_DICT_FIELDS + 1U)
size_t python_dict_stamp(const struct python_memory *memory, const struct python_dict_head *head,
			 const struct python_dict *dict,
			 struct python_word ret_stamp[PYTHON_DICT_STAMP_WORDS]);
/* The attributes of an instance, wherever its version keeps them (__dict__, split or inline
 * values).  Returns as python_dict_read(); -ENODATA: it has none. */
int python_attributes_read(const struct python_memory *memory, uint64_t object,
			   struct python_dict *ret_dict);
void python_dict_release(struct python_dict *dict);
static inline void python_dict_release_owned(struct python_dict *dict)
{
	python_dict_release(dict);
}
#define OWNED_PYTHON_DICT CLEANUP(python_dict_release_owned)

/* A name to look up again and again: names are interned, so its address is remembered. */
struct python_key {
	const char *name; /* ASCII, at most 32 bytes */
	uint64_t address; /* of the str object last found; 0: not yet */
};
/* The entry whose key is this str.  Returns NULL when there is none. */
const struct python_dict_entry *python_dict_find(const struct python_memory *memory,
						 const struct python_dict *dict,
						 struct python_key *key);

/* Offset of the fields after the object header: 16 bytes, 32 in free-threaded builds. */
uint64_t python_header_bytes(const struct pp_python *layout);

#endif
