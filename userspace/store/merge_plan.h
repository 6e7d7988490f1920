/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses which files of a store become one (docs/design/profiles.md): those of the windows that
 * begin in the same five minutes, an hour after these are over. */
#ifndef STORE_MERGE_PLAN_H
#define STORE_MERGE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store_query.h"

#define MERGE_SLOT_MS 300000U
#define MERGE_AFTER_MS 3600000U
/* Of one file; with the comments of so many ledgers it stays below PPROF_MAX_COMMENTS. */
#define MERGE_WINDOWS_MAX 64U

/* A window of a group, with its file of the kind. */
struct merge_window {
	uint64_t start_ms, duration_ms; /* as in names */
	bool has_file;			/* else it has no samples of the kind, as cpu tells */
};

/* What becomes one file. */
struct merge_group {
	char kind[STORE_KIND_CHARS];
	struct merge_window window[MERGE_WINDOWS_MAX]; /* by start, then by duration */
	size_t window_count, file_count;
};

/* Entries [begin, end) of a listing: whole files of one window each, of all kinds, which begin in
 * the same five minutes and lie in the same directory. */
struct merge_slot {
	size_t begin, end;
};

/* Finds the next slot at or behind ret_slot->end that is old enough at now_ms.  The listing is
 * sorted as store_list() does.  Returns false when there is none. */
bool merge_plan_slot(const struct store_listing *listing, uint64_t now_ms,
		     struct merge_slot *ret_slot);
/* Makes the group of a kind out of the first MERGE_WINDOWS_MAX windows of a slot.  Returns false
 * when there is nothing to do: a single window, no file of the kind, or a .merging file of the same
 * five minutes, which has to be finished first. */
bool merge_plan_group(const struct store_listing *listing, const struct merge_slot *slot,
		      const char *kind, struct merge_group *ret_group);

#endif
