/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits by waker: what the kernel's table of one window holds. */
#ifndef DRAIN_WAKES_H
#define DRAIN_WAKES_H

#include <stddef.h>

#include <pyprofd/sample.h>
#include <pyprofd/wake.h>

struct woken {
	struct pp_wake_key key;
	struct pp_count count;
};

struct wakes {
	struct woken *entry; /* owned */
	size_t count, capacity;
};

void wakes_release(struct wakes *wakes); /* safe on a zeroed one */
/* Empties the closed table and appends all.  0; -ENOMEM; -errno. */
int wakes_drain(int map_fd, struct wakes *wakes);

#endif
