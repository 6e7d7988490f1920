/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of one window in one list: those of the kernel's tables and those that the agent
 * adds (stacks finished in user space, waits that have not ended).  Counters with equal keys are
 * one entry. */
#ifndef DRAIN_COUNTS_H
#define DRAIN_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#include <pyprofd/sample.h>
#include <pyprofd/table.h>
#include <pyprofd/wait.h>

#include "base/index_table.h"

/* The most keys in one window: each costs the agent some 5 us to name.  Further counters are added
 * up without their stacks, by process, in half as many rows again; after that for the whole
 * machine. */
#define COUNTS_MAX 131072U

struct counted {
	struct pp_count_key key;
	struct pp_count count;
};

struct counts {
	struct counted *entry; /* owned */
	size_t count, capacity;
	struct index_table index; /* owned; entries by key */
	uint64_t bounded;	  /* samples and waits that lost their stacks to COUNTS_MAX */
};

void counts_release(struct counts *counts); /* a zeroed one is fine */
/* Adds to the entry of `key`.  Returns 0 or -ENOMEM. */
int counts_add(struct counts *counts, const struct pp_count_key *key, const struct pp_count *count);
/* Moves all counters of a closed kernel table to `counts`.  Returns 0; -ENOMEM; -errno. */
int counts_drain(int map_fd, struct counts *counts);
/* Moves the rows of rest[] that belong to tables of this number, and sets them to 0.  Returns 0 or
 * -ENOMEM. */
int counts_drain_rest(struct pp_count *rest, uint32_t number, struct counts *counts);
/* Takes what was not counted yet of a sum that grows.  What goes on was counted up to a window's
 * end before its own end adds the time, so `counted` may be ahead: then there is nothing new. */
static inline uint64_t counts_take_new(uint64_t now, uint64_t *counted)
{
	const uint64_t fresh = now > *counted ? now - *counted : 0;

	*counted += fresh;
	return fresh;
}

/* ---- waits by waker, from the kernel's tables of one window ---- */

#define WAKES_MAX 65536U /* in one window; further waits are counted without their wakers */

struct woken {
	struct pp_wake_key key;
	struct pp_count count;
};

struct wakes {
	struct woken *entry; /* owned */
	size_t count, capacity;
	struct index_table index; /* owned; entries by key */
};

void wakes_release(struct wakes *wakes); /* a zeroed one is fine */
/* Moves the rows of a closed table to `wakes`; equal keys are one entry.  Rows above WAKES_MAX go
 * to `counts`, with kind PP_KIND_WAKE.  Returns 0; -ENOMEM; -errno. */
int wakes_drain(int map_fd, struct wakes *wakes, struct counts *counts);

#endif
