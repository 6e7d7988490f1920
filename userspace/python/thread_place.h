/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the interpreters of a process keep `threading._active`: searched once, and remembered with
 * the words of memory that led there.  CPython (2.7 to 3.15) binds the name once and clears the
 * dictionary in place after a fork, but modules may be reloaded and memory may be another program's:
 * as long as all words are the same, a new search would end at the same place. */
#ifndef PYTHON_THREAD_PLACE_H
#define PYTHON_THREAD_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "python/python_info.h"
#include "python/python_objects.h"

#define THREAD_PLACE_WORDS 8U

/* One interpreter's. */
struct thread_place {
	uint64_t interpreter; /* address; 0: not looked at yet */
	uint64_t next;	      /* interpreter; 0: the last, or not known */
	uint64_t active;      /* the dictionary; 0: `threading` is not imported, or not known */
	uint64_t dict_type, str_type; /* of sys.modules and of its key "threading"; 0: not known */
	size_t word_count;	      /* 0: not known */
	struct python_word word[THREAD_PLACE_WORDS];
};

/* Whether the words are what they were: one read. */
bool thread_place_holds(const struct python_memory *memory, const struct thread_place *place);
/* Searches: about one read a module and one a global of `threading`, most of them in batches.  Sets
 * place even where it fails (it does not hold then, but `next` may be known).
 * Returns 0; -EAGAIN: `threading` is not imported (which may hold); -EFAULT; -EBADMSG; -ENOMEM;
 * -ETIME; -errno. */
int thread_place_find(const struct python_memory *memory, const struct python_info *info,
		      uint64_t interpreter, struct thread_place *place);
/* A dictionary of the type that sys.modules has.  Returns as python_dict_read(). */
int thread_place_read_dict(const struct python_memory *memory, const struct thread_place *place,
			   uint64_t address, struct python_dict_head *ret_head,
			   struct python_dict *ret_dict);

#endif
