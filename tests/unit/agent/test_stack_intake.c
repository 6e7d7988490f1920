/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring and the queue are stand-ins that write down when they are served. */
#include "agent/stack_intake.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include <pyprofd/config.h>

#include "attach/kernel_side.h"
#include "base/slice.h"
#include "drain/ring.h"

static struct pp_config config;
static struct incomplete_counts incomplete;
static const struct stack_intake intake = {.incomplete = &incomplete};
static char calls[64];
static int ring_has, queue_has; /* what they return */
static uint32_t turn_then;	/* when the ring was read */

volatile struct pp_config *kernel_side_config(const struct kernel_side *side)
{
	(void)side;
	return &config;
}

int ring_consume_slice(struct ring *ring, const struct slice *slice)
{
	(void)ring, (void)slice;
	turn_then = config.ring_turn;
	strcat(calls, "ring ");
	return ring_has;
}

int incomplete_counts_step(struct incomplete_counts *counts, const struct slice *slice)
{
	assert_ptr_equal(counts, &incomplete);
	(void)slice;
	strcat(calls, "queue ");
	return queue_has;
}

int ring_consume(struct ring *ring)
{
	(void)ring;
	strcat(calls, "all ");
	return ring_has;
}

void incomplete_counts_leave_out(struct incomplete_counts *counts)
{
	assert_ptr_equal(counts, &incomplete);
	strcat(calls, "leave out ");
}

static int setup(void **state)
{
	(void)state;
	calls[0] = '\0';
	ring_has = queue_has = 0;
	config = (struct pp_config){.ring_turn = 7, .token_round = 3};
	return 0;
}

static void serve__empties_the_ring_before_any_stack_is_completed(void **state)
{
	(void)state;
	assert_int_equal(stack_intake_serve(&intake, NULL), 0);
	assert_string_equal(calls, "ring queue ");
	/* A user's share begins anew before: what comes meanwhile counts. */
	assert_int_equal(turn_then, 8);
	assert_int_equal(config.ring_turn, 8);
}

static void serve__says_whether_more_is_left(void **state)
{
	(void)state;
	ring_has = 1;
	assert_int_equal(stack_intake_serve(&intake, NULL), 1);
	ring_has = 0;
	queue_has = 1;
	assert_int_equal(stack_intake_serve(&intake, NULL), 1);
	ring_has = -EIO;
	assert_int_equal(stack_intake_serve(&intake, NULL), -EIO);
}

static void end__leaves_out_what_there_is_no_time_for(void **state)
{
	const struct slice slice = {};

	(void)state;
	assert_int_equal(stack_intake_end(&intake, &slice), 0);
	assert_string_equal(calls, "all queue ");
	queue_has = 1;
	assert_int_equal(stack_intake_end(&intake, &slice), 0);
	assert_string_equal(calls, "all queue all queue leave out ");
	ring_has = -EIO;
	assert_int_equal(stack_intake_end(&intake, &slice), -EIO);
	assert_string_equal(calls, "all queue all queue leave out all ");
}

static void give_tokens__begins_a_round(void **state)
{
	(void)state;
	stack_intake_give_tokens(&intake, 99);
	assert_int_equal(config.incomplete_tokens, 99);
	assert_int_equal(config.token_round, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(serve__empties_the_ring_before_any_stack_is_completed,
				       setup),
		cmocka_unit_test_setup(serve__says_whether_more_is_left, setup),
		cmocka_unit_test_setup(end__leaves_out_what_there_is_no_time_for, setup),
		cmocka_unit_test_setup(give_tokens__begins_a_round, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
