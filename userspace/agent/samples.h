/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns the counters of a window into samples of its profiles: stacks are looked up and named,
 * labels added (labels.c). */
#ifndef AGENT_SAMPLES_H
#define AGENT_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/slice.h"
#include "probes/probe_plan.h"

struct counts;
struct frame;
struct intern;
struct modules;
struct pp_count;
struct pp_count_key;
struct profile_sample;
struct profile_shares;
struct profiles;
struct services;
struct symbolizer;
struct tables;
struct wakers_adding;
struct wakes;
struct who;

/* What samples are made from and where they go; all is borrowed. */
struct samples {
	const struct services *services;
	struct modules *modules;
	struct tables *tables;	/* fill while counters are named */
	struct intern *strings; /* of the open profiles */
	struct profiles *profiles;
	struct profile_shares *shares; /* of the profiles, by user */
	struct probe_plan probes;
};
/* Labels a sample with the process it belongs to, which is who's, and with what its thread was
 * doing.  Returns 0 or -ENOMEM. */
int labels_add(const struct samples *samples, struct profile_sample *sample,
	       const struct pp_count_key *key, const struct who *who);

/* How far the counters of one window have come.  All zeros: not begun. */
struct samples_adding {
	struct symbolizer *symbolizer; /* owned */
	size_t noted, added;	       /* counters */
	bool is_resolved;	       /* all that was noted has names */
};
void samples_adding_release(struct samples_adding *adding);
/* Adds counters to the profiles of their kinds, the ledger, the summary, and to who watches, until
 * the slice is over (NULL: all).  Call it with the same counters until it returns something else
 * than 1: there are more.  Returns 0: all were added; -ENOMEM; -errno. */
int samples_add(const struct samples *samples, const struct counts *counts,
		struct samples_adding *adding, const struct slice *slice);

/* Adds one counter, with frames and labels, to the profiles of its kind: without its stack where
 * its user has too many.  who: its process.  Returns 0 or -ENOMEM. */
int samples_put(const struct samples *samples, const struct pp_count_key *key,
		const struct who *who, const struct pp_count *count, struct profile_sample *sample);

/* ---- wakers.c: for each wait the stack of the thread that ended it, upside down above the
 * waiter's, so that both meet at the wake-up ---- */

/* How far the waits of one window have come. */
void wakers_adding_free(struct wakers_adding *adding);
DEFINE_OWNED(struct wakers_adding, wakers_adding)
/* Adds the waits of a window that has ended, with their wakers, to the profiles, until the slice is
 * over (NULL: all).  *adding is NULL before the first call, and the caller frees it; call it with
 * the same waits until it returns something else than 1: there are more.  Returns 0: all were
 * added; -ENOMEM; -errno. */
int wakers_add(const struct samples *samples, const struct wakes *wakes,
	       struct wakers_adding **adding, const struct slice *slice);

/* ---- switch_frames.c: frames at the leaf that say no more than how the stack was taken ---- */

/* Finds __schedule() among the first frames, leaf first.  Returns false when it is not there. */
bool switch_frames_find(const struct intern *strings, const struct frame *frame, size_t count,
			size_t *ret_at);
/* Leaves out the frames above __schedule(). */
void switch_frames_drop(const struct intern *strings, struct profile_sample *sample);

/* Takes the frames of a program on a tracepoint, and of what called it, off the leaf end. */
void switch_frames_drop_tracepoint(const struct intern *strings, struct profile_sample *sample);

/* Takes the interpreter's own frames off the leaf end of a stack that one of its probes has taken:
 * the line that caused the event is the leaf then. */
void switch_frames_drop_interpreter(struct profile_sample *sample);

#endif
