/* SPDX-License-Identifier: BSD-2-Clause */
/* --timeline: writes the records of the ring `timeline` into a trace file (timeline/). */
#ifndef AGENT_TIMELINE_H
#define AGENT_TIMELINE_H

struct naming;
struct process_watch;
struct services;
struct stack_intake;
struct thread_names;
struct timeline;

/* All is borrowed. */
struct timeline_sources {
	const struct services *services;
	struct process_watch *watch;
	struct thread_names *thread_names;
	const struct stack_intake *stacks; /* brings the stacks that records name */
	struct naming *naming;
};
/* *ret_timeline stays NULL when the options ask for no timeline.  Returns 0; -errno, and a line was
 * logged. */
int timeline_open(const struct timeline_sources *sources, struct timeline **ret_timeline);
void timeline_free(struct timeline *timeline);
int timeline_fd(const struct timeline *timeline); /* readable when its ring fills */
/* Writes what the ring holds into the file. */
void timeline_tick(struct timeline *timeline);
/* Writes what threads are doing at the end, and closes the file.  The kernel side has stopped.
 * Accepts NULL. */
int timeline_close(struct timeline *timeline);

#endif
