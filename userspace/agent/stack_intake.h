/* SPDX-License-Identifier: BSD-2-Clause */
/* Serves the ring `stacks`: what is whole is taken at once, what is incomplete waits in a queue.
 * The ring is emptied before any stack is completed, so that it has room for all users. */
#ifndef AGENT_STACK_INTAKE_H
#define AGENT_STACK_INTAKE_H

#include <stdint.h>

struct counts;
struct decoded_incomplete;
struct finisher;
struct incomplete_queue;
struct kernel_side;
struct ring;
struct slice;

/* ---- incomplete_counts.c: samples whose stacks are completed here (user_unwind.h), and how
 * many of them the kernel side may send ---- */

/* All are borrowed. */
struct incomplete_counts {
	const struct finisher *finisher;
	struct counts *counts; /* what the samples are added to */
	struct incomplete_queue *queue;
	uint64_t mean_ns;    /* what one of them costs; 0: unknown yet */
	uint64_t age_max_ns; /* the longest that one has waited in the queue */
	uint64_t left_out;   /* by incomplete_counts_leave_out() */
};
/* Returns the size of the queue, in bytes.  budget_bytes: --max-memory; 0: none. */
uint64_t incomplete_queue_limit(uint64_t budget_bytes, uint32_t cpus);
/* Copies a record into the queue.  Where the user's share of it is used up, the sample is counted
 * with the frames that the kernel side has walked (PP_STOP_LEFT_OUT). */
void incomplete_counts_on_record(const struct incomplete_counts *counts,
				 const struct decoded_incomplete *incomplete);
/* Completes stacks of the queue and counts their samples until the slice is over, and one at least.
 * Returns 1: the queue has more; 0: it is empty. */
int incomplete_counts_step(struct incomplete_counts *counts, const struct slice *slice);
/* Empties the queue: counts all samples with the frames that the kernel side has walked
 * (PP_STOP_LEFT_OUT). */
void incomplete_counts_leave_out(struct incomplete_counts *counts);
/* Returns how many may come in a tick: twice what one user may take, which is all of samples_per_s,
 * while they leave the agent most of its CPU. */
int64_t incomplete_counts_tokens(const struct incomplete_counts *counts, uint64_t samples_per_s,
				 uint64_t tick_ns);

/* ---- both ---- */

/* All is borrowed. */
struct stack_intake {
	const struct kernel_side *kernel;
	struct ring *ring;
	struct incomplete_counts *incomplete;
};
/* Empties the ring, and completes stacks of the queue, until the slice is over.  Returns 0: both
 * are empty; 1: the rest is for the next call; -errno. */
int stack_intake_serve(const struct stack_intake *intake, const struct slice *slice);
/* Empties both when the kernel side has ended: completes stacks until the slice is over, and counts
 * the others as they came.  Returns 0 or -errno. */
int stack_intake_end(const struct stack_intake *intake, const struct slice *slice);
/* Gives the kernel side the tokens of a tick. */
void stack_intake_give_tokens(const struct stack_intake *intake, int64_t tokens);

#endif
