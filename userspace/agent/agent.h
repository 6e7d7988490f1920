/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent: owns every stage, starts and stops them in the order of the data.  One thread does all;
 * the files of this folder are its parts:
 *   agent.c    start, end                loop.c   what wakes it
 *   process_watch.c  processes come, change and go
 *   miss_counts.c  samples whose stacks finish/ completes, with what finishing.c lends it
 *   naming.c   where symbolize/ gets names from
 *   window.c   counters -> profiles      waits.c   slots of threads -> counters, ledger
 *   profiles.c kinds of profiles         output.c  profile -> disk
 *   coverage.c CPU time as the scheduler has it
 *   tables.c   when the kernel's tables are swapped
 *   labels.c   labels of a sample        switch_frames.c  frames that it begins with
 *   wakers.c   who ends waits
 *   timeline.c records -> a trace file   stack_texts.c  its stacks as text
 *   sweeps.c   threads that sleep since before the start (finish/sweep.c finds them)
 *   live.c     clients of the live socket      dump.c  all stacks of this moment
 *   top.c      clients that get every window */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/output.h"
#include "agent/process_list.h"
#include "agent/profiles.h"
#include "agent/progress.h"
#include "attach/cpu_events.h"
#include "attach/file_table.h"
#include "attach/image_table.h"
#include "attach/kernel_side.h"
#include "base/intern.h"
#include "discover/process_table.h"
#include "discover/sideband.h"
#include "discover/target.h"
#include "drain/counts.h"
#include "drain/dictionary.h"
#include "drain/ring.h"
#include "drain/wakes.h"
#include "finish/finisher.h"
#include "ledger/ledger.h"
#include "options/options.h"
#include "unwind/row_store.h"

struct coverage;
struct live;
struct miss_python;
struct naming;
struct process_python;
struct sweeps;
struct thread_names;
struct timeline;
struct top;
struct stack_texts;

struct event_batch {
	struct pp_event *event; /* owned */
	size_t count, capacity;
};

struct agent {
	const struct options *options;
	uint64_t started_ns; /* CLOCK_MONOTONIC, first sample possible */

	/* tables */
	struct kernel_side *kernel;
	struct row_store *rows;
	struct file_table *files;
	struct image_table *images;
	struct process_table *processes;
	struct target_filter filter;
	bool is_filtered;
	struct sideband *sideband;
	struct event_batch events;
	struct process_list changed;	/* to publish */
	struct process_list unverified; /* interpreters not initialised yet */
	bool must_rescan;		/* a record was lost */

	/* samples */
	struct cpu_events *cpu_events;
	struct ring *stacks_ring, *events_ring;
	struct dictionary *dictionary;
	uint32_t epoch;
	uint64_t refused; /* by the dictionary, when room was made last */
	uint32_t online_cpus; /* at the start */
	bool lacks_cpus;      /* told: more are online than there is memory for */
	struct miss_python *miss_python;
	struct finisher finisher; /* of the tables above */
	uint64_t miss_mean_ns; /* that a missed stack costs; 0: not known yet */
	struct counts finished; /* of the open window, as its next one: what does not lie in its tables */
	struct wakes woken;
	uint64_t bounded;     /* PP_LOSS_ROWS_BOUNDED */
	struct thread_names *thread_names;
	struct naming *naming;

	/* the window */
	uint32_t window;
	uint64_t window_started_ns, window_started_wall_ns;
	uint64_t profile_started_ns, profile_started_wall_ns; /* of its first window */
	uint64_t paused_ns; /* the kernel side has stopped: the last window's end; 0: it runs */
	uint32_t windows_closed;
	struct intern *strings;	 /* of the profile */
	struct profiles profiles; /* closed between windows of a directory */
	uint32_t profile_serial; /* of the profile: what is cached for one ends with it */
	struct output *output;
	struct ledger *ledger; /* NULL: waits are not captured, and neither are the next ones */
	struct ledger_check *ledger_check;
	struct ledger_sums *profile_ledger, *run_ledger;
	uint64_t torn_threads; /* PP_LOSS_THREADS_TORN */
	uint64_t stray_threads; /* of PP_LOSS_SWITCHES_UNSEEN */
	struct coverage *coverage; /* NULL before the first sample */
	struct timeline *timeline; /* NULL: none is written */
	struct sweeps *sweeps; /* as well */
	struct live *live;     /* NULL: there is no socket */
	struct top *top;       /* as well */

	struct summary summary;
	struct summary facts_told; /* the summary at the last window_facts_add() */
	struct summary facts_watched; /* ... that clients got */
	struct progress progress;
	bool is_ending;
};

/* Runs until the end that the options or a signal give; returns the exit status. */
int agent_run(const struct options *options);

#endif
