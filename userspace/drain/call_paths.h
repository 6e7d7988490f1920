/* SPDX-License-Identifier: BSD-2-Clause */
/* The paths of exact calls.  A node is a function at one path of calls in one thread; the kernel side
 * sends each node once an epoch, with its parent.  Counters have the node's id in place of a stack's
 * hash: before they are named, each becomes a stack of the dictionary.  Bounded: beyond
 * CALL_PATHS_MAX nodes new ones are refused and counted.  One thread. */
#ifndef DRAIN_CALL_PATHS_H
#define DRAIN_CALL_PATHS_H

#include <stdint.h>

#include <pyprofd/sample.h>

#include "base/cleanup.h"

#define CALL_PATHS_MAX (1U << 18) /* nodes, of 48 bytes */

struct dictionary;
struct call_paths;
int call_paths_new(struct call_paths **ret_paths);
void call_paths_free(struct call_paths *paths);
DEFINE_OWNED(struct call_paths, call_paths)

/* Stores a node.  Returns 0, also when it is known; -EDQUOT: no room, which is counted; -ENOMEM. */
int call_paths_add(struct call_paths *paths, const struct pp_call_record *record);
/* Gives the dictionary the stack of a node under the node's id: its Python frames, leaf to root, none
 * of which is at an instruction.  A path whose parent never came ends there and says so; of a path
 * deeper than a stack may be, frames in the middle are left out.  Returns 0; -ENOENT: there is no such
 * node; or what dictionary_add_stack() returns. */
int call_paths_give_stack(struct call_paths *paths, uint64_t node, struct dictionary *dictionary);
/* Forgets nodes that were not used in the last two epochs: neither sent, nor part of a path of which a
 * stack was made. */
void call_paths_end_epoch(struct call_paths *paths);

struct call_paths_stats {
	uint64_t nodes;
	uint64_t refused; /* nodes that found no room */
	uint64_t cut;	  /* stacks without the frames above a node that is not known */
};
void call_paths_get_stats(const struct call_paths *paths, struct call_paths_stats *ret_stats);

#endif
