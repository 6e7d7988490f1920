/* SPDX-License-Identifier: BSD-2-Clause */
/* Merges what is old in a store.  Whoever calls it has the store for himself, but for a process
 * that adds files and deletes the oldest (store/store.h). */
#ifndef STORE_MERGE_STORE_H
#define STORE_MERGE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store_query.h"

/* ---- which files become one: those of the windows that begin in the same five minutes, an hour
 * after these are over (docs/design/profiles.md) ---- */

#define MERGE_SLOT_MS 300000U
#define MERGE_AFTER_MS 3600000U
/* Of one file; with the comments of so many windows it stays below PPROF_MAX_COMMENTS. */
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

/* ---- a pass over the store ---- */

#define MERGE_REFUSED_MAX 256U

/* Groups that could not be merged, so that they are tried once. */
struct merge_refused {
	struct {
		uint64_t start_ms;
		char kind[STORE_KIND_CHARS];
	} group[MERGE_REFUSED_MAX];
	size_t count; /* of all; the last MERGE_REFUSED_MAX are known */
};

struct merge_pass {
	/* Called before each group, and its result afterwards; its name is that of its first
	 * window.  May be NULL. */
	void (*begins)(void *context, const struct store_file *first);
	void (*done)(void *context, const struct store_file *first, int err);
	void *context;
	struct merge_refused *refused;
};

/* Finishes what was begun, and merges all that is old enough at now_ms (since 1970) below a
 * directory.  What cannot be merged stays as it is.  Returns 0; -errno: of listing the store;
 * -ENOSPC, -EDQUOT, -EROFS, -EIO: the disk takes nothing, and the pass has ended there. */
int merge_store(const char *directory, uint64_t now_ms, const struct merge_pass *pass);
/* Notes that a group cannot be merged. */
void merge_refuse(struct merge_refused *refused, const char *kind, uint64_t start_ms);

#endif
