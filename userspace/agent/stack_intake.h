/* SPDX-License-Identifier: BSD-2-Clause */
/* Serves the ring `stacks`: what is whole is taken at once, what is incomplete waits in a queue.
 * The ring is emptied before any stack is completed, so that it has room for all users. */
#ifndef AGENT_STACK_INTAKE_H
#define AGENT_STACK_INTAKE_H

#include <stdint.h>

struct incomplete_counts;
struct kernel_side;
struct ring;
struct slice;

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
