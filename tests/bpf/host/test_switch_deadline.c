/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sources: drain/thread_slots.c drain/wait_shares.c drain/counts.c drain/table.c base/index_table.c */
/* A look at a wait ends soon after its deadline, however slow the memory is that it reads. */
#include "switch.h"

#define FRAME 512U /* a window of the stack has no two of them */

/* Thread one calls 100 functions deep, none of which was met before. */
static void stands_deep(void)
{
	for (uint32_t i = 1; i <= 100; i++) {
		*library_rule(i) = rule_sp(FRAME);
		put_word(one.regs.rsp + i * FRAME - 8, library_pc(i + 1));
	}
	one.regs.rip = library_pc(1);
}

static uint64_t look_takes_ns(uint64_t ns_a_copy)
{
	comes(&one, 0);
	set_time(1 * MS);
	one.task.__state = INTERRUPTIBLE;
	host->ns_a_copy = ns_a_copy;
	run_switch(false, &one, NULL);
	host->ns_a_copy = 0;
	return host->now_ns - START_NS - 1 * MS;
}

static const struct pp_miss_record *miss_sent(void)
{
	for (uint32_t i = 0; i < host->record_count; i++) {
		const struct pp_miss_record *miss = host->record[i].data;

		if (miss->record.type == PP_RECORD_MISS)
			return miss;
	}
	return NULL;
}

static void deadline__of_steps_that_are_slow_is_met(void **state)
{
	uint64_t took_ns;

	(void)state;
	stands_deep();
	took_ns = look_takes_ns(5 * US);
	assert_non_null(miss_sent());
	assert_int_equal(miss_sent()->stop, PP_STOP_MAX_TIME);
	assert_true(miss_sent()->native_count >= 4);
	/* One more step, and the piece of the stack for the agent. */
	assert_in_range(took_ns, PP_SWITCH_WALK_NS, PP_SWITCH_WALK_NS + 3 * 5 * US);
}

static void deadline__near_it_each_step_looks_at_the_clock(void **state)
{
	uint64_t took_ns;

	(void)state;
	stands_deep();
	look_takes_ns(0); /* the places are known from now on */
	comes(&one, 2 * MS);
	host_drop_records();
	one.regs.rsp += 8;
	stands_deep();
	took_ns = host->now_ns;
	host->ns_a_copy = 2 * US;
	one.task.__state = INTERRUPTIBLE;
	run_switch(false, &one, NULL);
	host->ns_a_copy = 0;
	took_ns = host->now_ns - took_ns;
	assert_non_null(miss_sent());
	assert_int_equal(miss_sent()->stop, PP_STOP_MAX_TIME);
	assert_in_range(took_ns, PP_SWITCH_WALK_NS, PP_SWITCH_WALK_NS + 4 * 2 * US);
}

static void deadline__ends_the_copy_of_a_stack_that_is_slow(void **state)
{
	uint64_t took_ns;

	(void)state;
	host->page[LIBRARY_PAGE0] = 0; /* its rows are not loaded */
	took_ns = look_takes_ns(8 * US);
	assert_non_null(miss_sent());
	assert_int_equal(miss_sent()->stop, PP_STOP_NO_ROWS);
	assert_int_equal(miss_sent()->stack_bytes % PP_STACK_COPY_CHUNK_BYTES, 0);
	assert_in_range(miss_sent()->stack_bytes, 4 * PP_STACK_COPY_CHUNK_BYTES,
			PP_STACK_COPY_BYTES / 2);
	assert_true(took_ns <= 100 * US);
}

static void deadline__leaves_a_copy_that_is_fast_whole(void **state)
{
	(void)state;
	host->page[LIBRARY_PAGE0] = 0;
	look_takes_ns(1 * US);
	assert_non_null(miss_sent());
	assert_int_equal(miss_sent()->stack_bytes, PP_STACK_COPY_BYTES);
}

#define deadline_test(test) cmocka_unit_test_setup_teardown(test, switch_setup, switch_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		deadline_test(deadline__of_steps_that_are_slow_is_met),
		deadline_test(deadline__near_it_each_step_looks_at_the_clock),
		deadline_test(deadline__ends_the_copy_of_a_stack_that_is_slow),
		deadline_test(deadline__leaves_a_copy_that_is_fast_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
