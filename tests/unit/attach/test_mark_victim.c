/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: attach/mark_victim.c attach/tracepoint_type.c */
/* The tracepoint as two generations of kernels declare it, in BTF that is built here. */
#include "attach/mark_victim.h"

#include <bpf/btf.h>
#include <cmocka.h>

struct kernel {
	struct btf *btf;
	int pid, uid, wide, task, nothing; /* ids of types */
};

static int setup(void **state)
{
	static struct kernel kernel;
	int task;

	kernel.btf = btf__new_empty();
	assert_non_null(kernel.btf);
	kernel.pid = btf__add_int(kernel.btf, "int", 4, BTF_INT_SIGNED);
	kernel.uid = btf__add_int(kernel.btf, "unsigned int", 4, 0);
	kernel.wide = btf__add_int(kernel.btf, "unsigned long", 8, 0);
	task = btf__add_struct(kernel.btf, "task_struct", 64);
	kernel.task = btf__add_ptr(kernel.btf, task);
	kernel.nothing = btf__add_ptr(kernel.btf, 0);
	*state = &kernel;
	return 0;
}

static int teardown(void **state)
{
	btf__free(((struct kernel *)*state)->btf);
	return 0;
}

static void declare(struct kernel *kernel, const int *type, int count)
{
	int function = btf__add_func_proto(kernel->btf, 0);

	assert_int_equal(btf__add_func_param(kernel->btf, NULL, kernel->nothing), 0);
	for (int i = 0; i < count; i++)
		assert_int_equal(btf__add_func_param(kernel->btf, NULL, type[i]), 0);
	assert_true(btf__add_typedef(kernel->btf, "btf_trace_mark_victim",
				     btf__add_ptr(kernel->btf, function)) > 0);
}

static void victim__is_a_thread_id_up_to_6_8(void **state)
{
	struct kernel *kernel = *state;

	declare(kernel, (int[]){kernel->pid}, 1);
	assert_int_equal(mark_victim_arguments(kernel->btf), MARK_VICTIM_PID);
}

static void victim__is_a_task_since_6_9(void **state)
{
	struct kernel *kernel = *state;
	int uid = btf__add_typedef(kernel->btf, "uid_t", kernel->uid);

	declare(kernel, (int[]){kernel->task, uid}, 2);
	assert_int_equal(mark_victim_arguments(kernel->btf), MARK_VICTIM_TASK);
}

static void victim__of_a_backport_without_the_user_is_not_known(void **state)
{
	struct kernel *kernel = *state;

	declare(kernel, (int[]){kernel->task}, 1);
	assert_int_equal(mark_victim_arguments(kernel->btf), MARK_VICTIM_NONE);
}

static void victim__that_is_wider_is_not_known(void **state)
{
	struct kernel *kernel = *state;

	declare(kernel, (int[]){kernel->wide}, 1);
	assert_int_equal(mark_victim_arguments(kernel->btf), MARK_VICTIM_NONE);
}

static void victim__with_other_arguments_is_not_known(void **state)
{
	struct kernel *kernel = *state;

	declare(kernel, (int[]){kernel->pid, kernel->uid}, 2);
	assert_int_equal(mark_victim_arguments(kernel->btf), MARK_VICTIM_NONE);
}

static void tracepoint__that_is_not_there_tells_nothing(void **state)
{
	assert_int_equal(mark_victim_arguments(((struct kernel *)*state)->btf), MARK_VICTIM_NONE);
}

#define btf_test(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		btf_test(victim__is_a_thread_id_up_to_6_8),
		btf_test(victim__is_a_task_since_6_9),
		btf_test(victim__of_a_backport_without_the_user_is_not_known),
		btf_test(victim__that_is_wider_is_not_known),
		btf_test(victim__with_other_arguments_is_not_known),
		btf_test(tracepoint__that_is_not_there_tells_nothing),
	};

	return cmocka_run_group_tests_name("attach/mark_victim", tests, NULL, NULL);
}
