/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of one window: those of the kernel's tables and those that the agent adds (finished
 * stacks, waits that go on), in one list.  Equal keys are one entry. */
#ifndef DRAIN_COUNTS_H
#define DRAIN_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#include <pyprofd/sample.h>
#include <pyprofd/table.h>

#include "base/index_table.h"

/* Keys of one window: each costs the agent some 5 us to name.  What is beyond is counted without its
 * stack, by process; half as many of those, and then for the machine. */
#define COUNTS_MAX 131072U

struct counted {
	struct pp_count_key key;
	struct pp_count count;
};

struct counts {
	struct counted *entry; /* owned */
	size_t count, capacity;
	struct index_table index; /* owned; entries by key */
	uint64_t bounded; /* samples and waits that lost their stacks to COUNTS_MAX */
};

void counts_release(struct counts *counts); /* safe on a zeroed one */
/* 0 or -ENOMEM. */
int counts_add(struct counts *counts, const struct pp_count_key *key, const struct pp_count *count);
/* Empties a closed table of such keys.  0; -ENOMEM; -errno. */
int counts_drain(int map_fd, struct counts *counts);
/* The half of rest[] of tables with that number; its rows are 0 then.  0 or -ENOMEM. */
int counts_drain_rest(struct pp_count *rest, uint32_t number, struct counts *counts);

#endif
