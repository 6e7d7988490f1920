/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits by waker, from the kernel's tables of one window. */
#ifndef DRAIN_WAKES_H
#define DRAIN_WAKES_H

#include <stddef.h>

#include <pyprofd/sample.h>
#include <pyprofd/wait.h>

#include "base/index_table.h"
#include "drain/counts.h"

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
