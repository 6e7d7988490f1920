/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
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
	switch_in(&one, 0);
	set_time(1 * MS);
	one.task.__state = INTERRUPTIBLE;
	host->ns_a_copy = ns_a_copy;
	run_switch(false, &one, NULL);
	host->ns_a_copy = 0;
	return host->now_ns - START_NS - 1 * MS;
}

static const struct pp_incomplete_record *incomplete_sent(void)
{
	for (uint32_t i = 0; i < host->record_count; i++) {
		const struct pp_incomplete_record *incomplete = host->record[i].data;

		if (incomplete->record.type == PP_RECORD_INCOMPLETE)
			return incomplete;
	}
	return NULL;
}

static void deadline__of_steps_that_are_slow_is_met(void **state)
{
	uint64_t took_ns;

	(void)state;
	stands_deep();
	took_ns = look_takes_ns(5 * US);
	assert_non_null(incomplete_sent());
	assert_int_equal(incomplete_sent()->stop, PP_STOP_MAX_TIME);
	assert_true(incomplete_sent()->native_count >= 4);
	/* One more step, and the piece of the stack for the agent. */
	assert_in_range(took_ns, PP_SWITCH_WALK_NS, PP_SWITCH_WALK_NS + 3 * 5 * US);
}

static void deadline__near_it_each_step_looks_at_the_clock(void **state)
{
	uint64_t took_ns;

	(void)state;
	stands_deep();
	look_takes_ns(0); /* the wait sites are known from now on */
	switch_in(&one, 2 * MS);
	host_drop_records();
	one.regs.rsp += 8;
	stands_deep();
	took_ns = host->now_ns;
	host->ns_a_copy = 2 * US;
	one.task.__state = INTERRUPTIBLE;
	run_switch(false, &one, NULL);
	host->ns_a_copy = 0;
	took_ns = host->now_ns - took_ns;
	assert_non_null(incomplete_sent());
	assert_int_equal(incomplete_sent()->stop, PP_STOP_MAX_TIME);
	assert_in_range(took_ns, PP_SWITCH_WALK_NS, PP_SWITCH_WALK_NS + 4 * 2 * US);
}

static void deadline__ends_the_copy_of_a_stack_that_is_slow(void **state)
{
	uint64_t took_ns;

	(void)state;
	host->page[LIBRARY_PAGE0] = 0; /* its rows are not loaded */
	took_ns = look_takes_ns(8 * US);
	assert_non_null(incomplete_sent());
	assert_int_equal(incomplete_sent()->stop, PP_STOP_NO_ROWS);
	assert_int_equal(incomplete_sent()->stack_bytes % PP_STACK_COPY_CHUNK_BYTES, 0);
	assert_in_range(incomplete_sent()->stack_bytes, 4 * PP_STACK_COPY_CHUNK_BYTES,
			PP_STACK_COPY_BYTES / 2);
	assert_true(took_ns <= 100 * US);
}

static void deadline__of_the_user_stack_is_not_the_kernels(void **state)
{
	uint64_t took_ns;

	(void)state;
	host->ns_kernel_stack = 60 * US;
	took_ns = look_takes_ns(1 * US);
	assert_null(incomplete_sent());
	assert_true(took_ns > 60 * US);
}

static void deadline__holds_when_the_kernel_stack_is_slow_as_well(void **state)
{
	uint64_t took_ns;

	(void)state;
	stands_deep();
	host->ns_kernel_stack = 60 * US;
	took_ns = look_takes_ns(5 * US);
	assert_non_null(incomplete_sent());
	assert_int_equal(incomplete_sent()->stop, PP_STOP_MAX_TIME);
	/* Half as many steps as usual may pass before the first look at the clock. */
	assert_in_range(took_ns, 60 * US + PP_SWITCH_USER_NS,
			60 * US + PP_SWITCH_USER_NS + (PP_CLOCK_STEPS / 4) * 5 * US);
}

static void deadline__leaves_a_copy_that_is_fast_whole(void **state)
{
	(void)state;
	host->page[LIBRARY_PAGE0] = 0;
	look_takes_ns(1 * US);
	assert_non_null(incomplete_sent());
	assert_int_equal(incomplete_sent()->stack_bytes, PP_STACK_COPY_BYTES);
}

/* Returns the name of the stack of a wait in a function whose rows are not loaded, with a return
 * address and a variable above it. */
static uint64_t name_under(uint64_t above, uint32_t caller, uint64_t variable)
{
	struct pp_thread *t = slot_of(&one);
	const uint64_t at_ns = (t ? host->now_ns - START_NS : 0) + 10 * MS;

	put_word(one.regs.rsp + above, library_pc(caller));
	put_word(one.regs.rsp + 8, variable);
	if (t)
		memset(t->site, 0, sizeof(t->site));
	switch_in(&one, at_ns);
	switch_out(&one, at_ns + MS);
	return wait_site_of(&one)->user_stack;
}

static uint32_t incomplete_count(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < host->record_count; i++)
		count += ((const struct pp_incomplete_record *)host->record[i].data)->record.type ==
			 PP_RECORD_INCOMPLETE;
	return count;
}

/* The agent completes one stack of a name. */
static void incomplete__under_other_callers_has_another_name(void **state)
{
	uint64_t first;

	(void)state;
	host->config.incomplete_tokens = 100;
	host->page[LIBRARY_PAGE0] = 0;
	first = name_under(256, 2, 0);
	assert_int_equal(incomplete_count(), 1);
	assert_int_equal(name_under(256, 2, 0), first);
	assert_int_equal(incomplete_count(), 1);
	assert_int_not_equal(name_under(256, 3, 0), first);
	assert_int_equal(incomplete_count(), 2);
	assert_int_equal(name_under(256, 2, 0), first);
	/* What variables hold is no caller: a clock, a length, an address in the stack. */
	assert_int_equal(name_under(256, 2, START_NS), first);
	assert_int_equal(name_under(256, 2, 4096), first);
	assert_int_equal(name_under(256, 2, one.regs.rsp + 2048), first);
	assert_int_equal(incomplete_count(), 2);
}

static void incomplete__near_the_end_of_the_stack_has_its_callers_too(void **state)
{
	uint64_t first;

	(void)state;
	host->config.incomplete_tokens = 100;
	host->page[LIBRARY_PAGE0] = 0;
	one.regs.rsp = STACK + STACK_BYTES - 256;
	first = name_under(64, 2, 0);
	assert_int_not_equal(name_under(64, 3, 0), first);
	assert_int_equal(name_under(64, 2, 0), first);
}

#define deadline_test(test) cmocka_unit_test_setup_teardown(test, switch_setup, switch_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		deadline_test(deadline__of_steps_that_are_slow_is_met),
		deadline_test(deadline__near_it_each_step_looks_at_the_clock),
		deadline_test(deadline__ends_the_copy_of_a_stack_that_is_slow),
		deadline_test(deadline__of_the_user_stack_is_not_the_kernels),
		deadline_test(deadline__holds_when_the_kernel_stack_is_slow_as_well),
		deadline_test(deadline__leaves_a_copy_that_is_fast_whole),
		deadline_test(incomplete__under_other_callers_has_another_name),
		deadline_test(incomplete__near_the_end_of_the_stack_has_its_callers_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
