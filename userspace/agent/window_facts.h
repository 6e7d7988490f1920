/* SPDX-License-Identifier: BSD-2-Clause */
/* Says how a profile was taken: in one of its comments, and in the summary at the end. */
#ifndef AGENT_WINDOW_FACTS_H
#define AGENT_WINDOW_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/stops.h>

struct coverage;
struct incomplete_counts;
struct keeper;
struct output;
struct peek;
struct process_table;
struct process_watch;
struct ring;
struct row_store;
struct services;
struct summary;
struct tables;
struct user_quota;

/* Where the counters are; all is borrowed. */
struct window_facts {
	const struct services *services;
	const struct process_watch *watch;
	const struct ring *stacks_ring;
	struct row_store *rows;
	const struct incomplete_counts *incomplete;
	struct user_quota *profile_quota; /* windows/profile_shares.h */
	const struct tables *tables;
	const struct peek *peek;
	const struct output *output;
	struct keeper *keeper; /* NULL: there is no store */
	uint64_t started_ns;   /* CLOCK_MONOTONIC, of the first window */
	uint64_t bounded;      /* PP_LOSS_ROWS_BOUNDED: added to by who closes windows */
};

/* Reads what the host did before the first window: the summary and *told begin there. */
void window_facts_start(const struct window_facts *facts, struct summary *told);
/* Fills in what the summary does not count as it comes. */
void window_facts_update(const struct window_facts *facts);
/* Returns the CPU time since the start of the agent, its children that parse files and walks in the
 * kernel. */
uint64_t window_facts_cost_ns(const struct window_facts *facts);
/* Writes a comment on what changed since *told, which becomes the summary.  *ret_text is heap.
 * Returns 0 or -ENOMEM. */
int window_facts_tell(const struct window_facts *facts, struct summary *told, char **ret_text);
/* Logs once each user who has used up a share of a table, and the table. */
void window_facts_tell_quotas(const struct window_facts *facts);

/* ---- coverage ----
 *
 * How much CPU time the scheduler gave to what is profiled, as an independent measure of what the
 * profiles contain.
 *
 * For the whole machine this is user, nice and system of /proc/stat.  Those leave out interrupts
 * and what a hypervisor took; samples that hit a task in an interrupt include both, so there can be
 * more samples than this time but never fewer.  For chosen processes it is their lines of
 * /proc/PID/stat; what a process got between the last reading and its end is missing.  Where there
 * is a ledger, waits.c uses its sums instead. */

/* processes: those of this table that the filters let through; borrowed.  NULL: the whole machine.
 * Returns 0 or -ENOMEM. */
int coverage_new(const struct process_table *processes, struct coverage **ret_coverage);
void coverage_free(struct coverage *coverage);
/* Returns the CPU time since the last call, or since coverage_new(); 0 for NULL. */
uint64_t coverage_take(struct coverage *coverage);

#endif
