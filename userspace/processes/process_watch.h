/* SPDX-License-Identifier: BSD-2-Clause */
/* Follows processes as they start, change and end: takes what the kernel side and the side-band
 * report into the tables of processes and process contexts. */
#ifndef PROCESSES_PROCESS_WATCH_H
#define PROCESSES_PROCESS_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/process.h>
#include <pyprofd/stops.h>

struct context_table;
struct kernel_side;
struct options;
struct process;
struct process_table;
struct process_watch;
struct ring;
struct sideband;
struct slice;
struct target_filter;

/* All is borrowed. */
struct process_watch_sources {
	const struct options *options;
	struct kernel_side *kernel;
	struct context_table *contexts;
	struct process_table *processes;
	struct sideband *sideband;
	const struct target_filter *filter; /* NULL: all processes are profiled */
	uint32_t online_cpus;		    /* when the maps were made */
	/* The files of a live process that matches are known, for the first time or again.  is_new:
	 * it did not match before, and its threads may sleep already.  NULL: nobody wants to know.
	 * */
	void (*on_files)(void *context, const struct process *process, bool is_new);
	/* A process has ended or become another program.  NULL, too. */
	void (*on_end)(void *context, struct pp_process_id id);
	/* The kernel ends a process that matches the filter, for want of memory; it still runs for
	 * a moment.  NULL: nobody wants to know. */
	void (*on_victim)(void *context, struct process *process, uint64_t time_ns);
	void *context;
};
/* Opens the events ring.  Returns 0 or -errno. */
int process_watch_new(const struct process_watch_sources *sources,
		      struct process_watch **ret_watch);
/* Also releases all process contexts. */
void process_watch_free(struct process_watch *watch);

/* Reads /proc; the kernel side is attached already. */
int process_watch_start(struct process_watch *watch);
/* The events ring: readable when process_watch_follow() has something to do, and so is the
 * side-band. */
const struct ring *process_watch_ring(const struct process_watch *watch);
/* Sets processes_refused and mappings_refused, and adds to records_bad. */
void process_watch_count(const struct process_watch *watch, uint64_t loss[PP_LOSS_COUNT]);
/* Takes in what the events ring and the side-band hold.  What changed is queued, to be published.
 * Returns 0 or -errno. */
int process_watch_take_in(struct process_watch *watch);
/* Takes in, and publishes for a slice of time, so that the loop serves all others in between.
 * Returns 0 or -errno. */
int process_watch_follow(struct process_watch *watch);
/* Returns whether a call of process_watch_follow() would go on publishing, or reading /proc. */
bool process_watch_has_more(const struct process_watch *watch);
/* Queues the processes whose self-tests could not be made yet and those with files that could not
 * be examined, and reads /proc when records were lost. */
void process_watch_tick(struct process_watch *watch);
/* A record was lost: the next tick reads /proc. */
void process_watch_want_rescan(struct process_watch *watch);
/* Follows CPUs that went online or offline. */
void process_watch_follow_cpus(struct process_watch *watch);
/* Makes a process known that only a sample has shown, and publishes it before its turn in the
 * queue, as far as a slice of time allows.  Returns NULL when it is gone. */
struct process *process_watch_find(struct process_watch *watch, struct pp_process_id id);
/* Publishes a process's mappings, and tests whether its interpreter can be read.  slice may be
 * NULL.  Returns 0; -EAGAIN: the slice is over, and the next call goes on there; -errno. */
int process_watch_publish(struct process_watch *watch, struct process *process,
			  const struct slice *slice);

#endif
