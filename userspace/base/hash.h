/* SPDX-License-Identifier: BSD-2-Clause */
/* What hash tables of <uthash.h> have in common here: entries are on the heap, by a key that is one
 * of their fields. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdlib.h>

#ifndef HASH_NONFATAL_OOM
#define HASH_NONFATAL_OOM 1
#endif
#include <uthash.h>

/* Returns the entry whose `field` has this key, an lvalue of the field's type, and makes one that
 * is zero otherwise where there is none; NULL: there is no memory. */
#define HASH_GET(head, field, field_key)                                                           \
	({                                                                                         \
		__typeof__(head) got_;                                                             \
                                                                                                   \
		HASH_FIND(hh, head, &(field_key), sizeof(got_->field), got_);                      \
		if (!got_ && (got_ = calloc(1, sizeof(*got_)))) {                                  \
			got_->field = (field_key);                                                 \
			HASH_ADD(hh, head, field, sizeof(got_->field), got_);                      \
			if (!got_->hh.tbl) { /* HASH_NONFATAL_OOM: it was not added */             \
				free(got_);                                                        \
				got_ = NULL;                                                       \
			}                                                                          \
		}                                                                                  \
		got_;                                                                              \
	})

/* Frees an entry of a table. */
#define HASH_DROP(head, entry)                                                                     \
	do {                                                                                       \
		HASH_DEL(head, entry);                                                             \
		free(entry);                                                                       \
	} while (0)

/* Frees all entries. */
#define HASH_DROP_ALL(head)                                                                        \
	do {                                                                                       \
		__typeof__(head) entry_, next_;                                                    \
                                                                                                   \
		HASH_ITER (hh, head, entry_, next_)                                                \
			HASH_DROP(head, entry_);                                                   \
	} while (0)

#endif
