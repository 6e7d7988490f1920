/* SPDX-License-Identifier: BSD-2-Clause */
/* Exact calls (--events calls) and exact lines (--lines): attaches to the probes that an
 * interpreter has at its functions and lines, in the chosen processes, and turns what the kernel
 * side has counted into counters.  Ends early when it would slow a program down more than
 * --max-slowdown allows.  The loop's thread. */
#ifndef PROBES_EXACT_H
#define PROBES_EXACT_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/process.h>

#include "base/cleanup.h"

struct exact;
struct counts;
struct dictionary;
struct file_table;
struct kernel_side;
struct options;
struct process;
struct process_table;
struct profiles;

/* All is borrowed. */
struct exact_sources {
	const struct options *options;
	const struct kernel_side *kernel;
	struct file_table *files;
	const struct process_table *processes;
	struct dictionary *dictionary;
};

/* *ret_exact is NULL when neither is captured; all functions take that.  Loads the programs,
 * which takes the kernel a second.  Returns 0 or -errno with a line in the log. */
int exact_new(const struct exact_sources *sources, struct exact **ret_exact);
void exact_free(struct exact *exact); /* takes all links off */
DEFINE_OWNED(struct exact, exact)

/* Takes in a process that is profiled and whose files are known. */
void exact_see(struct exact *exact, const struct process *process);
/* Takes off what a process has that has ended or become another program; later where somebody keeps
 * the lock of its mappings. */
void exact_forget(struct exact *exact, struct pp_process_id id);
/* Returns whether an interpreter was seen, with the probes or without. */
bool exact_is_known(const struct exact *exact);
/* Looks whether a process can be counted, once all are known.  Returns 0; -ENXIO with a
 * line in the log: none of the interpreters has the probes, or there is no interpreter. */
int exact_check(const struct exact *exact);
/* Call it a few times a second: looks at what the hits cost, and again at processes that could not
 * be attached to yet, for the child that parses files was late or somebody keeps the lock of its
 * mappings (attach/mapping_locks.h).  Returns whether the run is to end: a program is slower than
 * allowed, which was told. */
bool exact_tick(struct exact *exact, uint64_t now_ns);
/* Adds what was counted up to the window's end.  Returns 0 or -errno. */
int exact_collect(struct exact *exact, uint64_t ended_ns, struct counts *counts);
/* Adds a comment to the profiles: what hits cost, and what could not be matched.  Returns 0 or
 * -ENOMEM. */
int exact_describe(const struct exact *exact, struct profiles *profiles);

#endif
