/* SPDX-License-Identifier: BSD-2-Clause */
/* The live socket in the agent's loop: dumps are jobs, one at a time, in steps of some ms; who watches is
 * served at the ends of windows (top.h).
 * NULL is fine for all functions but live_open().  docs/design/0008-live-socket.md. */
#ifndef AGENT_LIVE_H
#define AGENT_LIVE_H

#include "base/cleanup.h"

struct agent;
struct live;

/* Nothing, when the options ask for no socket, or the default one cannot be had (which is logged); else
 * agent->top is there, too.  0; -errno: the path that was given is no good, a line was logged. */
int live_open(struct agent *agent, struct live **ret_live);
void live_free(struct live *live);
DEFINE_OWNED(struct live, live)

int live_fd(const struct live *live); /* readable: live_serve() */
/* Takes requests, sends replies, closes who is late; never waits. */
void live_serve(struct live *live);
/* Goes on with the job, if its next step is due.  Call it as often as you like. */
void live_step(struct live *live);
/* In how many ms the next step is due, or longest_ms if that is earlier. */
int live_timeout_ms(const struct live *live, int longest_ms);
/* After each change of the dictionary's epoch, and when it was emptied. */
void live_refresh(struct live *live);

#endif
