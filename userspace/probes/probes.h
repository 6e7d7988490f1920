/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes of a run: finds their places in the files that profiled processes map, and has them
 * attached (probes/probe_worker.h), in processes that start later, too.  A run without a filter has
 * one link a file for all processes; one with a filter has one a process and file, so that no other
 * program meets a breakpoint.  The loop's thread. */
#ifndef PROBES_PROBES_H
#define PROBES_PROBES_H

#include <stdbool.h>
#include <sys/types.h>

#include <pyprofd/process.h>

#include "base/cleanup.h"
#include "probes/probe_bounds.h"
#include "probes/probe_plan.h"

struct cuda_side;
struct process;
struct profiles;
struct probe_side;
struct probes;
struct services;
struct text_table;

/* *ret_probes is NULL when the run has no probes; all functions take that.  Returns 0 or
 * -ENOMEM. */
int probes_new(const struct services *services, struct probes **ret_probes);
/* NULL is ok.  Returns false when a thread goes on to use the kernel side: probe_worker_free(). */
bool probes_free(struct probes *probes);
DEFINE_OWNED(struct probes, probes)

/* Returns the probes of the run; count 0: none. */
struct probe_plan probes_plan(const struct probes *probes);

/* The names of modules that imports have as their detail. */
const struct text_table *probes_texts(const struct probes *probes);

/* Returns the object of probes, which they own, when allocations are captured; NULL: it is not
 * loaded. */
const struct probe_side *probes_allocs(struct probes *probes);

/* Returns the object of CUDA's functions, which the probes own; NULL: nothing of theirs was
 * found. */
const struct cuda_side *probes_cuda(struct probes *probes);

/* Returns how often a file or a place of code had no probe because its user's share was used up. */
uint64_t probes_refused(const struct probes *probes);
/* Adds comments to the profiles: what each probe did since the last time, and whether its sums are
 * scaled.  Returns 0 or -ENOMEM. */
int probes_describe(struct probes *probes, struct profiles *profiles);
/* What the probes cost now; zeros: there are none. */
void probes_get_now(const struct probes *probes, struct probe_bounds_now *ret_now);

/* Hits count from now on: of a process that began before, not all calls are seen. */
void probes_start(struct probes *probes, uint64_t now_ns);
/* Takes in a process whose files are known, with PP_CONTEXT_MATCHES where the run is filtered. */
void probes_see(struct probes *probes, const struct process *process);
/* Attaches what a command will have in the file that it executes, before it does so: its first
 * calls and imports are seen.  pid: its process, in which that happens. */
void probes_prepare(struct probes *probes, pid_t pid, const char *command);
/* Takes off what a process has that has ended or become another program. */
void probes_forget(struct probes *probes, struct pp_process_id id);
/* Looks whether what --probe names is there, once the processes are known.  Returns 0; -ENXIO with
 * a line in the log: it is not, or cannot be attached. */
int probes_check(struct probes *probes);
/* Returns whether all is attached that was found so far. */
bool probes_are_ready(struct probes *probes);
/* Call it a few times a second: takes results, asks again where the parser's child was late, and
 * takes probes off files that are gone. */
void probes_tick(struct probes *probes);

#endif
