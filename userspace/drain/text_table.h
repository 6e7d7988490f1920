/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the texts that counters refer to by an id, as names of imported modules; each comes once an
 * epoch through the ring.  Beyond TEXT_TABLE_MAX texts or TEXT_TABLE_MAX_BYTES, or a share of
 * these for one user, new ones are refused and counted.  One thread. */
#ifndef DRAIN_TEXT_TABLE_H
#define DRAIN_TEXT_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define TEXT_TABLE_MAX 16384U
#define TEXT_TABLE_MAX_BYTES (8U << 20) /* of all texts together */
/* Root is bounded by the whole alone. */
#define TEXT_TABLE_USER_MAX (TEXT_TABLE_MAX / 4)
#define TEXT_TABLE_USER_MAX_BYTES (TEXT_TABLE_MAX_BYTES / 4)
#define TEXT_TABLE_USERS 1024U /* users' numbers share a share modulo this */

struct text_table;
int text_table_new(struct text_table **ret_table);
void text_table_free(struct text_table *table);
DEFINE_OWNED(struct text_table, text_table)

/* Stores a text as base/utf8.h makes it readable.  user: who answers for the process.  Returns 0,
 * also when the id is known; -EDQUOT: there is no room, which is counted; -ENOMEM. */
int text_table_add(struct text_table *table, uint64_t id, uint32_t user, const char *bytes,
		   size_t size);
/* Returns NULL when there is none.  Valid until the next text_table_end_epoch(). */
const char *text_table_find(const struct text_table *table, uint64_t id);
/* Forgets texts that were not added in the last two epochs: the kernel side sends each again once
 * an epoch. */
void text_table_end_epoch(struct text_table *table);
uint64_t text_table_refused(const struct text_table *table);

#endif
