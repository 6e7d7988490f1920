/* SPDX-License-Identifier: BSD-2-Clause */
/* Exact calls (--events calls): attaches to entry and return of Python functions in the chosen
 * processes, measures what a hit costs, and turns what the kernel side has counted into counters.
 * Ends early when it would slow a program down more than --max-slowdown allows.  The loop's
 * thread. */
#ifndef AGENT_CALLS_H
#define AGENT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/process.h>

#include "base/cleanup.h"

struct calls;
struct counts;
struct dictionary;
struct file_table;
struct kernel_side;
struct options;
struct process;
struct process_table;
struct profiles;

/* All is borrowed. */
struct calls_sources {
	const struct options *options;
	const struct kernel_side *kernel;
	struct file_table *files;
	const struct process_table *processes;
	struct dictionary *dictionary;
};

/* *ret_calls is NULL when calls are not captured; all functions take that.  Loads the programs,
 * which takes the kernel a second.  Returns 0 or -errno with a line in the log. */
int calls_new(const struct calls_sources *sources, struct calls **ret_calls);
void calls_free(struct calls *calls); /* takes all links off */
DEFINE_OWNED(struct calls, calls)

/* Takes in a process that is profiled and whose files are known. */
void calls_see(struct calls *calls, const struct process *process);
/* Takes off what a process has that has ended or become another program. */
void calls_forget(struct calls *calls, struct pp_process_id id);
/* Returns whether an interpreter was seen, with the probes or without. */
bool calls_are_known(const struct calls *calls);
/* Looks whether calls of a process can be counted, once all are known.  Returns 0; -ENXIO with a
 * line in the log: none of the interpreters has the probes, or there is no interpreter. */
int calls_check(const struct calls *calls);
/* Call it a few times a second: looks at what the hits cost, and again at files for which the child
 * that parses them was late.  Returns whether the run is to end: a program is slower than allowed,
 * which was told. */
bool calls_tick(struct calls *calls, uint64_t now_ns);
/* Adds what was counted up to the window's end.  Returns 0 or -errno. */
int calls_collect(struct calls *calls, uint64_t ended_ns, struct counts *counts);
/* Adds a comment to the profiles: what hits cost, and what could not be matched.  Returns 0 or
 * -ENOMEM. */
int calls_describe(const struct calls *calls, struct profiles *profiles);

#endif
