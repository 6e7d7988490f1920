/* SPDX-License-Identifier: BSD-2-Clause */
/* All stages of the agent, and how they are wired: who borrows what.  Only main.c, stages.c and
 * loop.c use this struct; every other file of this directory gets what it needs by a struct of its
 * own.
 *
 *   process_watch.c  processes start, change, end    who.c       the process of a counter
 *   stack_intake.c   the ring of stacks              incomplete_counts.c  what finish/ completes
 *   window.c         collects what was counted       tables.c    swaps the kernel's tables, epochs
 *   sources.c        what makes counters: the table of all sources (source.h), and of these
 *     waits.c        slots of threads, the ledger    scans.c    threads asleep since the start
 *     resident.c     resident memory of processes    memory_watch.c  what touches memory
 *     probes.c       places of code that are probed  held.c     allocations not freed
 *     exact.c        all calls, or all lines         cuda.c     what programs have GPUs do
 *     gauges.c       GPUs' gauges, by a child
 *   samples.c        counters -> samples             wakers.c    who ended waits
 *   naming.c         names for symbolize/            modules.c   modules of the profiles
 *   labels.c         labels of a sample              thread_names.c, switch_frames.c
 *   identities.c     who processes are, for labels
 *   profiles.c       kinds of profiles               profile_shares.c  what a user may add
 *   window_facts.c   how a profile was taken
 *   timeline.c       records -> a trace file         stack_texts.c  its stacks as text
 *   live.c           clients of the live socket      dump.c      all stacks of this moment
 *   top.c            clients that get every window   progress.c  what the terminal shows */
#ifndef AGENT_STAGES_H
#define AGENT_STAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/progress.h"
#include "agent/rate.h"
#include "agent/stack_intake.h"
#include "agent/tables.h"
#include "agent/window.h"
#include "agent/window_facts.h"
#include "discover/target.h"
#include "finish/user_unwind.h"
#include "probes/probes.h"
#include "windows/profile_shares.h"
#include "windows/profiles.h"
#include "windows/source.h"

struct agent {
	const struct options *options;
	/* What many stages use, owned but for foreign; set as it is opened. */
	struct services services;

	/* What is known of the machine and its processes. */
	struct row_store *rows;
	struct target_filter filter;
	struct sideband *sideband;
	struct process_watch *watch;

	struct perf_opener *opener; /* borrowed; NULL: the agent opens perf events itself */
	struct peek *peek; /* borrowed; reads other processes' memory. NULL: nobody else does */

	uint64_t users_next_ns; /* when it is read again which ids users own */

	/* What samples bring. */
	struct cpu_events *cpu_events;
	struct rate rate;
	struct ring *stacks_ring;
	struct epochs epochs;
	struct unwind_python *unwind_python;
	struct finisher finisher;
	struct incomplete_queue *incomplete_queue;
	struct incomplete_counts incomplete;
	struct stack_intake stacks;
	struct sources sources;

	/* What becomes of it. */
	uint64_t started_ns; /* CLOCK_MONOTONIC, first sample possible; 0: none yet */
	struct tables tables;
	struct modules *modules;
	struct profiles profiles;     /* closed between the windows of a store */
	struct profile_shares shares; /* of the profiles */
	struct samples samples;
	struct coverage *coverage; /* NULL: no sample yet, or the ledger is used */
	struct window_facts facts;
	struct window window;
	struct output *output;
	struct keeper *keeper;	   /* of output; NULL: there is no store */
	struct timeline *timeline; /* NULL: none is written */
	struct live *live;	   /* NULL: there is no socket */

	struct summary summary;
	struct progress progress;
	bool is_ending;
};

/* Opens all stages but sampling, and prints a line when one fails.  Returns 0 or -errno;
 * stages_release() either way. */
int stages_open(struct agent *agent);
int stages_open_sampling(struct agent *agent);
/* Reads again which ids users own, when that is due. */
void stages_follow_users(struct agent *agent, uint64_t now_ns);
/* Begins the first window: samples count from now on.  Returns 0 or -errno. */
int stages_start_window(struct agent *agent);
/* Returns how many incomplete stacks may come in a tick. */
int64_t stages_miss_tokens(const struct agent *agent, uint64_t tick_ns);
void stages_release(struct agent *agent);

#endif
