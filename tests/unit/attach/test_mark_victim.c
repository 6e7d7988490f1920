/* SPDX-License-Identifier: BSD-2-Clause */
/* The tracepoint as two generations of kernels declare it, in BTF that is built here. */
#include "attach/tracepoints.h"

#include "tracepoint_fixture.h"

#define NAME "btf_trace_mark_victim"

static void victim__is_a_thread_id_up_to_6_8(void **state)
{
	struct kernel *kernel = *state;

	declare(kernel, NAME, (int[]){kernel->number}, 1);
	assert_int_equal(mark_victim_arguments(kernel->btf), MARK_VICTIM_PID);
}

static void victim__is_a_task_since_6_9(void **state)
{
	struct kernel *kernel = *state;
	int uid = btf__add_typedef(kernel->btf, "uid_t", kernel->word);

	declare(kernel, NAME, (int[]){kernel->task, uid}, 2);
	assert_int_equal(mark_victim_arguments(kernel->btf), MARK_VICTIM_TASK);
}

static void victim__of_a_backport_without_the_user_is_not_known(void **state)
{
	struct kernel *kernel = *state;

	declare(kernel, NAME, (int[]){kernel->task}, 1);
	assert_int_equal(mark_victim_arguments(kernel->btf), MARK_VICTIM_NONE);
}

static void victim__that_is_wider_is_not_known(void **state)
{
	struct kernel *kernel = *state;

	declare(kernel, NAME, (int[]){kernel->wide}, 1);
	assert_int_equal(mark_victim_arguments(kernel->btf), MARK_VICTIM_NONE);
}

static void victim__with_other_arguments_is_not_known(void **state)
{
	struct kernel *kernel = *state;

	declare(kernel, NAME, (int[]){kernel->number, kernel->word}, 2);
	assert_int_equal(mark_victim_arguments(kernel->btf), MARK_VICTIM_NONE);
}

static void tracepoint__that_is_not_there_tells_nothing(void **state)
{
	assert_int_equal(mark_victim_arguments(((struct kernel *)*state)->btf), MARK_VICTIM_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_kernel(victim__is_a_thread_id_up_to_6_8),
		with_kernel(victim__is_a_task_since_6_9),
		with_kernel(victim__of_a_backport_without_the_user_is_not_known),
		with_kernel(victim__that_is_wider_is_not_known),
		with_kernel(victim__with_other_arguments_is_not_known),
		with_kernel(tracepoint__that_is_not_there_tells_nothing),
	};

	return cmocka_run_group_tests_name("attach/mark_victim", tests, NULL, NULL);
}
