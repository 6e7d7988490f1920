/* SPDX-License-Identifier: BSD-2-Clause */
/* When the agent sweeps, and what swept threads add to each window for as long as they sleep: first at
 * the start, in steps beside the first samples; again when processes pass the filters that did not. */
#ifndef AGENT_SWEEPS_H
#define AGENT_SWEEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "drain/counts.h"
#include "drain/thread_slots.h"
#include "finish/sweep.h"

struct agent;
struct sweeps;

/* NULL is fine for all functions but sweeps_new(): nothing is swept then. */
int sweeps_new(struct agent *agent, struct sweeps **ret_sweeps);
void sweeps_free(struct sweeps *sweeps);
DEFINE_OWNED(struct sweeps, sweeps)

/* The switches' program runs: threads that sleep now do so since agent->started_ns at least. */
void sweeps_start(struct sweeps *sweeps);
/* A process is wanted that was not: its threads may sleep already. */
void sweeps_want(struct sweeps *sweeps);

/* Goes on for some ms, if a sweep goes on and its next step is due.  Call it as often as you like. */
void sweeps_step(struct sweeps *sweeps);
/* In how many ms the next step is due, or longest_ms if that is earlier. */
int sweeps_timeout_ms(const struct sweeps *sweeps, int longest_ms);

/* A thread that a finished sweep has found and that is not known to have moved.  NULL. */
const struct swept *sweeps_find(const struct sweeps *sweeps, uint32_t tid);

/* What swept threads slept in a window that has ended: into its counters and the agent's ledger.  A
 * sweep that goes on is hurried first, within a bound.  0; -ENOMEM. */
int sweeps_collect(struct sweeps *sweeps, const struct slots_window *window, struct counts *counts);
/* After each change of the dictionary's epoch, and when it was emptied. */
void sweeps_refresh(struct sweeps *sweeps);

/* Threads of which a time or a stack is missing. */
uint64_t sweeps_lost(const struct sweeps *sweeps);

#endif
