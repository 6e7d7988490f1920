/* SPDX-License-Identifier: BSD-2-Clause */
/* The code objects that are not decoded yet, by the user whose they are, each user's in the order
 * in which they came.  Users take turns.  All is constant time.  One thread. */
#ifndef DRAIN_RAW_CODES_H
#define DRAIN_RAW_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

/* Part of what holds a code object, which sets index and user, and the rest to 0. */
struct raw_code_link {
	uint32_t index; /* of the code object */
	uint32_t user;
	struct raw_code_link *prev, *next; /* prev NULL: it is in no list */
};

/* A user who has some. */
struct raw_user {
	uint32_t user;
	/* So many are asked about one by one: the child was late, or ended, at them together.  The
	 * decoder's. */
	uint32_t singles;
	bool is_put_off;
	struct raw_code_link *first;
	struct raw_user *prev, *next;
	UT_hash_handle hh;
};

/* All zeros: empty. */
struct raw_codes {
	struct raw_user *by_user;	  /* owned */
	struct raw_user *waiting, *later; /* lists of them: the next is the first; put off */
	size_t count;			  /* of code objects */
};
void raw_codes_release(struct raw_codes *codes);
/* Adds a code object, which is the last of its user's.  Returns 0 or -ENOMEM. */
int raw_codes_add(struct raw_codes *codes, struct raw_code_link *link);
/* Removes a code object, if it is there; with the last one of a user its raw_user goes. */
void raw_codes_remove(struct raw_codes *codes, struct raw_code_link *link);
/* Returns the user whose turn it is, and passes the turn on to the next; NULL: there is nobody who
 * is not put off. */
struct raw_user *raw_codes_take_turn(struct raw_codes *codes);
/* Puts a user off: it has no turn until all are recalled. */
void raw_codes_put_off(struct raw_codes *codes, struct raw_user *user);
void raw_codes_recall(struct raw_codes *codes);

#endif
