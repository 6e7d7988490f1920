/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads objects of another process's CPython: strings, integers, dictionaries, instance attributes.
 * What is read is not trusted: pointers may be stale, sizes absurd.  Every read and every
 * allocation is bounded; a structure that changes while it is read gives an error or a missing
 * entry, never a loop. */
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

/* The process whose memory is read, and the object layout of its interpreter. */
struct python_memory {
	pid_t pid;
	const struct pp_python *layout; /* borrowed */
	/* How many more reads are allowed, where each started KiB counts as one (borrowed; NULL: no
	 * bound).  At 0 every read gives -ETIME, which bounds the cost of a hostile process. */
	uint32_t *reads_left;
};

/* Reads one word.  Returns 0; -EFAULT; -ETIME; -ESRCH; -errno. */
int python_read_u64(const struct python_memory *memory, uint64_t address, uint64_t *ret_value);
/* Reads at most PROCESS_PIECES_MAX pieces at once, all or none.  Returns as python_read_u64(). */
int python_read_pieces(const struct python_memory *memory, const struct process_piece *piece,
		       size_t count);

/* Converts characters of 1, 2 or 4 bytes (`kind`) to UTF-8, NUL-terminated, on the heap.  Kind 1 is
 * Latin-1; is_bytes (2.7): bytes that should be UTF-8.  What has no UTF-8 form (surrogates, NUL,
 * above U+10FFFF, stray bytes) becomes U+FFFD.  An empty text may have any kind.  Returns 0;
 * -ENOMEM; -EBADMSG: no such kind. */
int python_text_decode(const uint8_t *bytes, size_t size, unsigned int kind, bool is_bytes,
		       char **ret_text);
/* Returns the length of the longest prefix of whole UTF-8 characters in at most max_bytes. */
size_t python_text_cut(const char *text, size_t max_bytes);

/* The location of a str (2.7: PyString) in the other process. */
struct python_string {
	uint64_t data;	   /* address */
	uint64_t length;   /* characters */
	unsigned int kind; /* bytes a character: 1, 2, 4 */
};
/* Locates a str.  Returns 0; -EBADMSG: not a compact str; -EFAULT; -errno. */
int python_string_find(const struct python_memory *memory, uint64_t address,
		       struct python_string *ret_string);
/* Reads a str as UTF-8, at most max_bytes, cut after a whole character.  Returns as
 * python_string_find() and python_text_decode(). */
int python_string_read(const struct python_memory *memory, uint64_t address, size_t max_bytes,
		       char **ret_text);

/* Reads an int of at most 60 bits, not negative (not 2.7).  Returns 0; -ERANGE; -EFAULT; -errno. */
int python_int_read(const struct python_memory *memory, uint64_t address, uint64_t *ret_value);

/* A word of the other process's memory and the value that it had. */
struct python_word {
	uint64_t address, value;
};

struct python_dict_entry {
	uint64_t hash; /* of the key; 0 where the table has none (unicode-only tables of 3.11+) */
	uint64_t key, value;
	uint64_t value_address; /* address of the value's pointer */
};
/* A copy of a dictionary's live entries, from at most its first 65,536 slots. */
struct python_dict {
	struct python_dict_entry *entry; /* owned */
	size_t count;
	/* number of used slots, deleted ones included (2.7: has none, all 0) */
	struct python_word slots;
};
/* The dictionary object itself, without its table. */
#define PYTHON_DICT_FIELDS 4U
struct python_dict_head {
	uint64_t address;
	uint64_t type;
	uint64_t field[PYTHON_DICT_FIELDS]; /* after the object's header: used, a version tag (up to
					     * 3.12), keys, values; 2.7: fill, used, mask, table */
};
/* Reads the object at `address`.  Returns 0; -EFAULT; -errno. */
int python_dict_head_read(const struct python_memory *memory, uint64_t address,
			  struct python_dict_head *ret_head);
/* Reads the table of a dictionary.  Returns 0; -EBADMSG: not a dictionary of a form that we know;
 * -EFAULT; -ENOMEM; -errno. */
int python_dict_read_table(const struct python_memory *memory, const struct python_dict_head *head,
			   struct python_dict *ret_dict);
/* Reads head and table.  Returns as python_dict_read_table(). */
int python_dict_read(const struct python_memory *memory, uint64_t address,
		     struct python_dict *ret_dict);
/* Returns the field that points to the table: while it has the same value, each entry stays at the
 * address where it was read. */
struct python_word python_dict_table_word(const struct python_memory *memory,
					  const struct python_dict_head *head);
/* Returns the words of which at least one changes when a key is added, and their number. */
#define PYTHON_DICT_STAMP_WORDS (PYTHON_DICT_FIELDS + 1U)
size_t python_dict_stamp(const struct python_memory *memory, const struct python_dict_head *head,
			 const struct python_dict *dict,
			 struct python_word ret_stamp[PYTHON_DICT_STAMP_WORDS]);
/* Reads the attributes of an instance, wherever its version keeps them (__dict__, split or inline
 * values).  Returns as python_dict_read(); -ENODATA: the instance has none. */
int python_attributes_read(const struct python_memory *memory, uint64_t object,
			   struct python_dict *ret_dict);
void python_dict_release(struct python_dict *dict);
static inline void python_dict_release_owned(struct python_dict *dict)
{
	python_dict_release(dict);
}
#define OWNED_PYTHON_DICT CLEANUP(python_dict_release_owned)

/* A name that is looked up repeatedly.  Names are interned, so the address of its str is
 * remembered. */
struct python_key {
	const char *name; /* ASCII, at most 32 bytes */
	uint64_t address; /* of the str object found last; 0: not found yet */
};
/* Finds the entry whose key is this name.  Returns NULL when there is none. */
const struct python_dict_entry *python_dict_find(const struct python_memory *memory,
						 const struct python_dict *dict,
						 struct python_key *key);

/* Returns the offset of the fields after the object header: 16 bytes, 32 in free-threaded
 * builds. */
uint64_t python_header_bytes(const struct pp_python *layout);

#endif
