/* SPDX-License-Identifier: BSD-2-Clause */
/* The mappings of a process: process->mapping, sorted by start, no overlaps.  The array is shared
 * after a fork until one side changes: it is copied before a write.  Part of process_table, which
 * sees to the paths (they must outlive the set). */
#ifndef DISCOVER_MAPPING_SET_H
#define DISCOVER_MAPPING_SET_H

#include "discover/process.h"

#define MAPPING_SET_MAX 4096U /* executable mappings of one process */

/* Adds a mapping in the place of what it overlaps; neighbours are trimmed or split.  Where a newer
 * mapping (by time_ns) is in the way, that one stays and the rest is added; time_ns 0 replaces all.
 * What is there already changes nothing but its time.  Adjacent anonymous ones merge.
 * Sets process->mappings_changed.  Returns 0; -EINVAL: start >= end; -ENOSPC: MAPPING_SET_MAX;
 * -ENOMEM. */
int mapping_set_put(struct process *process, const struct mapping *mapping);

/* Drops mappings older than cut_ns.  Those with time_ns 0 are of read_ns.  0 or -ENOMEM. */
int mapping_set_drop_older(struct process *process, uint64_t cut_ns, uint64_t read_ns);

/* Gives `to`, which has none, the mappings of `from` with time_ns <= newest_ns.  0 or -ENOMEM. */
int mapping_set_share(struct process *to, const struct process *from, uint64_t newest_ns);

void mapping_set_release(struct process *process);

/* The set's memory, divided among those that share it. */
size_t mapping_set_memory_bytes(const struct process *process);

/* A number to mark an array with, so that a visitor of many processes sees a shared one once. */
uint32_t *mapping_set_mark(struct process *process); /* NULL without mappings */

#endif
