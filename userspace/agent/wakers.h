/* SPDX-License-Identifier: BSD-2-Clause */
/* --wakers: shows for each wait the stack of the thread that ended it.  The waker's stack stands
 * upside down above the waiter's, so that both meet at the wake-up. */
#ifndef AGENT_WAKERS_H
#define AGENT_WAKERS_H

struct samples;
struct wakes;

/* Adds the waits of a window that has ended, with their wakers, to the profiles.  Returns 0;
 * -ENOMEM; -errno. */
int wakers_add(const struct samples *samples, const struct wakes *wakes);

#endif
