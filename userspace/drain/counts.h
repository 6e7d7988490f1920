/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of one window: those of the kernel's table and those that the agent adds (finished
 * stacks), in one list. */
#ifndef DRAIN_COUNTS_H
#define DRAIN_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#include <pyprofd/sample.h>

struct counted {
	struct pp_count_key key;
	struct pp_count count;
};

struct counts {
	struct counted *entry; /* owned */
	size_t count, capacity;
};

void counts_release(struct counts *counts); /* safe on a zeroed one */
int counts_add(struct counts *counts, const struct pp_count_key *key, const struct pp_count *count);
/* Empties the closed table (batch calls, one by one where the kernel refuses them) and appends all.
 * 0; -ENOMEM; -errno. */
int counts_drain(int map_fd, struct counts *counts);

#endif
