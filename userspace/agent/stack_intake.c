/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/stack_intake.h"

#include "attach/kernel_side.h"
#include "drain/ring.h"

int stack_intake_serve(const struct stack_intake *intake, const struct slice *slice)
{
	int more, left;

	/* What users send from here on counts anew. */
	kernel_side_config(intake->kernel)->ring_turn++;
	left = ring_consume_slice(intake->ring, slice);
	if (left < 0)
		return left;
	more = incomplete_counts_step(intake->incomplete, slice);
	return left || more;
}

int stack_intake_end(const struct stack_intake *intake, const struct slice *slice)
{
	int err = ring_consume(intake->ring);

	if (!err && incomplete_counts_step(intake->incomplete, slice))
		incomplete_counts_leave_out(intake->incomplete);
	return err;
}

void stack_intake_give_tokens(const struct stack_intake *intake, int64_t tokens)
{
	volatile struct pp_config *config = kernel_side_config(intake->kernel);

	config->incomplete_tokens = tokens;
	config->tokens_kept = tokens / 2;
	config->token_round++;
}
