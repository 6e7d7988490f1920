/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds where the interpreters of a process keep `threading._active`, and remembers the words of
 * memory that led there.  CPython (2.7 to 3.15) binds the name once and clears the dictionary in
 * place after a fork.  But modules may be reloaded, and the memory may be another program's: so a
 * remembered location is used only while all of these words are unchanged, when a new search would
 * end there too. */
#ifndef PYTHON_THREAD_PLACE_H
#define PYTHON_THREAD_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "python/python_info.h"
#include "python/python_objects.h"

#define THREAD_PLACE_WORDS 8U

/* What is remembered of one interpreter. */
struct thread_place {
	uint64_t interpreter; /* address; 0: not searched yet */
	uint64_t next;	      /* the next interpreter; 0: this is the last, or not known */
	uint64_t active;      /* the dictionary; 0: `threading` is not imported, or not known */
	uint64_t dict_type, str_type; /* of sys.modules and of its key "threading"; 0: not known */
	size_t word_count;	      /* 0: not known */
	struct python_word word[THREAD_PLACE_WORDS];
};

/* Returns whether the words are unchanged.  Costs one read. */
bool thread_place_holds(const struct python_memory *memory, const struct thread_place *place);
/* Searches for `_active`, with about one read per module and one per global of `threading`, most of
 * them in batches.  Fills place even on failure: then thread_place_holds() is false, but `next` may
 * be known.
 * Returns 0; -EAGAIN: `threading` is not imported (and thread_place_holds() may be true); -EFAULT;
 * -EBADMSG; -ENOMEM; -ETIME; -errno. */
int thread_place_find(const struct python_memory *memory, const struct python_info *info,
		      uint64_t interpreter, struct thread_place *place);
/* Reads a dictionary that must have the type of sys.modules.  Returns as python_dict_read(). */
int thread_place_read_dict(const struct python_memory *memory, const struct thread_place *place,
			   uint64_t address, struct python_dict_head *ret_head,
			   struct python_dict *ret_dict);

#endif
