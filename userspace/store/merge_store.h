/* SPDX-License-Identifier: BSD-2-Clause */
/* Merges what is old in a store.  Whoever calls it has the store for himself, but for a process
 * that adds files and deletes the oldest (store/store.h). */
#ifndef STORE_MERGE_STORE_H
#define STORE_MERGE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "store/merge_file.h"
#include "store/store_names.h"

/* Does all steps.  The file's name becomes longer by milliseconds where one is taken.  Returns 0;
 * -EEXIST; -errno (-ENOSPC, -EROFS, ...): the windows are in their own files, or, after step 2, for
 * merge_step_finish(). */
int merge_step(int hour_fd, const struct merge_group *group, struct merged_file *file);

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
