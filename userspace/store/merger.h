/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the child that merges a store (store/merge_child.h) at work, and never waits for it. */
#ifndef STORE_MERGER_H
#define STORE_MERGER_H

#include <stdint.h>

#include "base/cleanup.h"

struct merger;
/* program: what the child is, "/proc/self/exe" for this one.  store: the path of the directory, for
 * messages; store_fd: borrowed.  Starts nothing yet.  Returns 0 or -ENOMEM. */
int merger_new(const char *program, const char *store, int store_fd, struct merger **ret_merger);
/* Kills the child. */
void merger_free(struct merger *merger);
DEFINE_OWNED(struct merger, merger)
/* Starts the child, replaces one that has ended, and tells what cannot be merged; call it once a
 * window. */
void merger_turn(struct merger *merger);

struct merger_stats {
	uint64_t starts, merged, refused; /* merged, refused: groups */
};
void merger_get_stats(const struct merger *merger, struct merger_stats *ret_stats);

#endif
