/* SPDX-License-Identifier: BSD-2-Clause */
/* Allocates parts of what walks read: what was freed rests for some ticks before it is reused. */
#ifndef UNWIND_ROW_SPACE_H
#define UNWIND_ROW_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/unwind.h>

#include "base/cleanup.h"
#include "base/user_quota.h"

#define WALK_REST_TICKS 2U /* a walk that began two ticks ago is over */

/* ---- runs of entries of an array: first fit.  Entry 0 is never given out ---- */

struct index_range {
	uint32_t first, count;
	uint32_t rest_ticks; /* 0: in use; else ticks until it is free */
	uint32_t uid;	     /* of the user whose share it is part of */
};

struct index_ranges {
	struct index_range *range; /* owned; sorted, without overlaps */
	size_t count, capacity;
	uint32_t entries, rest_ticks;
	struct user_quota quota; /* entries, the resting ones included */
};

void index_ranges_init(struct index_ranges *ranges, uint32_t entries, uint32_t rest_ticks);
void index_ranges_release(struct index_ranges *ranges);
/* Allocates `count` entries for a user. Returns 0; -EDQUOT: more than his share; -ENOSPC;
 * -ENOMEM. */
int index_ranges_take(struct index_ranges *ranges, uint32_t uid, uint32_t count,
		      uint32_t *ret_first);
void index_ranges_give(struct index_ranges *ranges, uint32_t first);
/* Takes back what was given out last, and nobody has seen: it need not rest. */
void index_ranges_undo(struct index_ranges *ranges, uint32_t first);
void index_ranges_tick(struct index_ranges *ranges);
/* Returns the allocated range that contains an entry, or NULL. */
const struct index_range *index_ranges_find(const struct index_ranges *ranges, uint32_t entry);

/* ---- row space, in granules: first fit from a cursor ---- */

#define ROW_GRANULE_ROWS 64U /* 256 bytes: half of that is wasted per page on average */
#define ROW_SHARD_GRANULES (PP_ROW_SHARD_ROWS / ROW_GRANULE_ROWS)
#define ROW_SHARD_WORDS (ROW_SHARD_GRANULES / 64U)

struct row_space {
	uint32_t shard_count;
	uint64_t *taken;		    /* one bit per granule: in use, or not reusable yet */
	uint64_t *resting[2];		    /* freed since the last tick; freed before that */
	uint32_t *shard_free;		    /* free granules of each shard */
	uint32_t cursor;		    /* granule where the next search begins */
	uint32_t free_count, resting_count; /* granules */
};

/* Returns how many granules that many rows take. */
static inline uint32_t row_space_granules(uint32_t rows)
{
	return (rows + ROW_GRANULE_ROWS - 1) / ROW_GRANULE_ROWS;
}

int row_space_new(uint32_t shard_count, struct row_space **ret_space);
void row_space_free(struct row_space *space);
DEFINE_OWNED(struct row_space, row_space)

/* Allocates room for that many rows in one shard and returns the index of the first. -ENOSPC. */
int row_space_take(struct row_space *space, uint32_t rows, uint32_t *ret_row_start);
void row_space_give(struct row_space *space, uint32_t row_start, uint32_t rows);
void row_space_tick(struct row_space *space);

#endif
