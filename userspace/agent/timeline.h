/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of the ring `timeline` -> a trace file (timeline/). */
#ifndef AGENT_TIMELINE_H
#define AGENT_TIMELINE_H

struct agent;
struct timeline;

int timeline_open(struct agent *agent); /* nothing, when the options ask for none; prints */
void timeline_free(struct timeline *timeline);
int timeline_fd(const struct timeline *timeline); /* readable when its ring fills */
/* What the ring holds, into the file. */
void timeline_tick(struct timeline *timeline);
/* What threads do at the end; closes the file.  Nothing is recorded any more.  NULL is fine. */
int timeline_close(struct timeline *timeline);

#endif
