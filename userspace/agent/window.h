/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens and closes windows.  At the end of a window all that was counted in it is collected, in the
 * order in which nothing is counted twice and nothing is missed, and becomes profiles. */
#ifndef AGENT_WINDOW_H
#define AGENT_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/progress.h"
#include "agent/samples.h"
#include "base/slice.h"
#include "drain/counts.h"
#include "windows/source.h"

struct coverage;
struct epochs;
struct live;
struct output;
struct process_watch;
struct services;
struct stack_intake;
struct wakers_adding;
struct window_facts;

enum window_end {
	WINDOW_PART,  /* the window goes on: clients want to see what was counted so far */
	WINDOW_WHOLE, /* a store's profiles are written; those of one file go on */
	WINDOW_LAST,  /* all are written */
};
/* A window that has ended, on its way into the profiles.  What its rows refer to stays until all
 * are named: ids of files and code are given up by its last stages. */
struct window_closing {
	enum window_end end;
	uint32_t stage;	 /* the next one of window.c: stages[]; 0: no window is being closed */
	uint32_t source; /* the one to go on with in a stage of all sources */
	uint64_t ended_ns, length_ns;
	uint64_t spent_ns; /* CPU time */
	int err;	   /* why its rows are not whole */
	struct counts counts;
	struct wakes wakes;
	struct source_window window; /* for the sources */
	struct samples_adding samples;
	struct wakers_adding *wakers; /* owned */
	char *comment;		      /* owned; for clients */
	bool is_told;		      /* clients: the comment was asked for */
};
struct window {
	/* Borrowed. */
	const struct services *services;
	struct samples *samples; /* strings are set when profiles are opened */
	const struct stack_intake *stacks;
	struct process_watch *watch;
	struct coverage *coverage;
	struct epochs *epochs;
	struct live *live; /* NULL: there is no socket */
	struct window_facts *facts;
	struct output *output;
	/* Its own. */
	uint64_t started_ns, started_wall_ns; /* of the open window; 0: none was opened */
	/* Of the first window of the profiles. */
	uint64_t profile_started_ns, profile_started_wall_ns;
	uint64_t paused_ns;	      /* when the kernel side stopped for good; 0: it runs */
	struct summary facts_told;    /* the summary when facts went into the profiles last */
	struct summary facts_watched; /* ... when they went to clients last */
	struct window_closing closing;
};
/* Begins the first window at started_ns, or opens the profiles of the next one.  Returns 0 or
 * -ENOMEM. */
int window_open(struct window *window, uint64_t started_ns);
/* Ends the open window: collects what was counted and begins the next one, which counts at once.
 * No other window may be closing. */
void window_cut(struct window *window, enum window_end end);
/* Goes on with the window that was cut, until the slice is over (NULL: to its end): names what was
 * counted, adds it to the profiles, and writes them.  Returns 1: there is more; 0: it is closed, or
 * none was cut; -errno: the profiles could not be written. */
int window_step(struct window *window, const struct slice *slice);
bool window_is_closing(const struct window *window);
/* Closes the open window in one go; before it, the one that is closing.  Returns 0 or -errno: the
 * profiles could not be written. */
int window_close(struct window *window, enum window_end end);
/* Returns when the open window ends whose predecessor was due at `due_ns`: an interval later.  Ends
 * that have passed meanwhile, because the agent or the machine stood still, are left out: the
 * predecessor has covered them.  *ret_missed is their number. */
uint64_t window_next_end(const struct window *window, uint64_t due_ns, uint64_t *ret_missed);
/* Forgets processes that ended some windows ago, and files that no process maps. */
void window_forget(const struct window *window);
/* Closes files that no process has mapped for a second: they keep file systems from being
 * unmounted.  Call it about once a second.  Returns whether more are to be closed: naming what is
 * in them took its time. */
bool window_close_files(const struct window *window);
/* Drops profiles that were not written. */
void window_release(struct window *window);

#endif
