/* SPDX-License-Identifier: BSD-2-Clause */
/* Who ends waits: --wakers. */
#ifndef AGENT_WAKERS_H
#define AGENT_WAKERS_H

struct agent;
struct wakes;

/* Waits of a window that has ended, with who ended them, into its profile.  0; -ENOMEM; -errno. */
int wakers_close(struct agent *agent, const struct wakes *wakes);

#endif
