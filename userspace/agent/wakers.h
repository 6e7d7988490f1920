/* SPDX-License-Identifier: BSD-2-Clause */
/* `wakers`: shows for each wait the stack of the thread that ended it.  The waker's stack stands
 * upside down above the waiter's, so that both meet at the wake-up. */
#ifndef AGENT_WAKERS_H
#define AGENT_WAKERS_H

#include "base/cleanup.h"
#include "base/slice.h"

struct samples;
struct wakes;

/* How far the waits of one window have come. */
struct wakers_adding;
void wakers_adding_free(struct wakers_adding *adding);
DEFINE_OWNED(struct wakers_adding, wakers_adding)
/* Adds the waits of a window that has ended, with their wakers, to the profiles, until the slice is
 * over (NULL: all).  *adding is NULL before the first call, and the caller frees it; call it with
 * the same waits until it returns something else than 1: there are more.  Returns 0: all were
 * added; -ENOMEM; -errno. */
int wakers_add(const struct samples *samples, const struct wakes *wakes,
	       struct wakers_adding **adding, const struct slice *slice);

#endif
