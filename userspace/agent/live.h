/* SPDX-License-Identifier: BSD-2-Clause */
/* Serves the live socket (docs/design/live.md).  Dumps are jobs, one at a time, in
 * steps of some ms; clients that watch are served at the ends of windows (top.h).  All functions
 * but live_open() accept NULL. */
#ifndef AGENT_LIVE_H
#define AGENT_LIVE_H

#include "base/cleanup.h"

struct live;
struct services;
struct top;

/* Opens the socket that the options ask for.  *ret_live stays NULL when they ask for none, or when
 * the default one cannot be opened, which is logged.  Returns 0; -errno: the given path cannot be
 * used, and a line was logged. */
int live_open(const struct services *services, struct live **ret_live);
void live_free(struct live *live);
DEFINE_OWNED(struct live, live)

/* Who watches; NULL for NULL. */
struct top *live_top(const struct live *live);
int live_fd(const struct live *live); /* readable: call live_serve() */
/* Takes requests, sends replies, and closes connections that are late; never waits. */
void live_serve(struct live *live);
/* Continues the job, if its next step is due.  Call it as often as you like. */
void live_step(struct live *live);
/* Returns in how many ms the next step is due, or longest_ms if that is earlier. */
int live_timeout_ms(const struct live *live, int longest_ms);
/* Call it after each change of the dictionary's epoch, and when the dictionary made room. */
void live_refresh(struct live *live);

#endif
