/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses which windows of a store are kept (store/keep.h), and lists their files by kind. */
#ifndef STORE_KEEP_PLAN_H
#define STORE_KEEP_PLAN_H

#include "store/merge_plan.h"
#include "store/store_query.h"

struct keep_plan {
	struct store_listing listing; /* what follows points into it */
	const char **kind;	      /* owned; as each is kept: what tells most of memory first */
	size_t kind_count;
	struct merge_window *window; /* owned; by start, then by duration; has_file is not set */
	size_t window_count;
	/* owned; by kind and window: which entry of the listing; SIZE_MAX: it has no file */
	size_t *file;
};

/* Lists the windows of a store that overlap a time, the last KEEP_WINDOWS_MAX of them: one that is
 * longer than that time counts whole.  Files of several windows are left out: merging leaves them
 * alone for an hour (store/merge_plan.h).  Returns 0, also when there are none; -ENOMEM; -errno of
 * store_list(). */
int keep_plan_make(const char *directory, uint64_t from_ms, uint64_t until_ms,
		   struct keep_plan *ret_plan);
void keep_plan_release(struct keep_plan *plan);
/* Returns the path of a window's file of one kind, which it must have. */
const char *keep_plan_path(const struct keep_plan *plan, size_t kind, size_t window);
/* Returns the windows, with has_file set for one kind; on the heap.  NULL without memory. */
struct merge_window *keep_plan_windows(const struct keep_plan *plan, size_t kind);
/* Return when the first window begins and the last one ends; there must be one. */
uint64_t keep_plan_from_ms(const struct keep_plan *plan);
uint64_t keep_plan_to_ms(const struct keep_plan *plan);

#endif
