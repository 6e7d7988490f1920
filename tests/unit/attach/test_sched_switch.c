/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: attach/sched_switch.c attach/tracepoint_type.c */
/* The tracepoint as three generations of kernels declare it, in BTF that is built here. */
#include "attach/sched_switch.h"

#include <bpf/btf.h>
#include <cmocka.h>

struct kernel {
	struct btf *btf;
	int flag, word, wide, task, nothing; /* ids of types */
};

static int setup(void **state)
{
	static struct kernel kernel;
	int task;

	kernel.btf = btf__new_empty();
	assert_non_null(kernel.btf);
	kernel.flag = btf__add_int(kernel.btf, "_Bool", 1, BTF_INT_BOOL);
	kernel.word = btf__add_int(kernel.btf, "unsigned int", 4, 0);
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
	assert_true(btf__add_typedef(kernel->btf, "btf_trace_sched_switch",
				     btf__add_ptr(kernel->btf, function)) > 0);
}

static void state__is_told_as_the_last_argument(void **state)
{
	struct kernel *kernel = *state;
	int word = btf__add_typedef(kernel->btf, "u32", kernel->word);

	declare(kernel, (int[]){kernel->flag, kernel->task, kernel->task, word}, 4);
	assert_true(sched_switch_tells_state(kernel->btf));
}

static void state__is_not_told_before_5_18(void **state)
{
	struct kernel *kernel = *state;

	declare(kernel, (int[]){kernel->flag, kernel->task, kernel->task}, 3);
	assert_false(sched_switch_tells_state(kernel->btf));
}

/* Of a kernel to come: nobody knows what its arguments are. */
static void state__is_not_told_by_more_arguments(void **state)
{
	struct kernel *kernel = *state;

	declare(kernel,
		(int[]){kernel->flag, kernel->task, kernel->task, kernel->word, kernel->word}, 5);
	assert_false(sched_switch_tells_state(kernel->btf));
}

static void state__in_another_place_or_size_is_not_read(void **state)
{
	struct kernel *kernel = *state;

	declare(kernel, (int[]){kernel->flag, kernel->word, kernel->task, kernel->task}, 4);
	assert_false(sched_switch_tells_state(kernel->btf));
}

static void state__that_is_wider_is_not_read(void **state)
{
	struct kernel *kernel = *state;

	declare(kernel, (int[]){kernel->flag, kernel->task, kernel->task, kernel->wide}, 4);
	assert_false(sched_switch_tells_state(kernel->btf));
}

static void tracepoint__that_is_not_there_tells_nothing(void **state)
{
	assert_false(sched_switch_tells_state(((struct kernel *)*state)->btf));
}

#define btf_test(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		btf_test(state__is_told_as_the_last_argument),
		btf_test(state__is_not_told_before_5_18),
		btf_test(state__is_not_told_by_more_arguments),
		btf_test(state__in_another_place_or_size_is_not_read),
		btf_test(state__that_is_wider_is_not_read),
		btf_test(tracepoint__that_is_not_there_tells_nothing),
	};

	return cmocka_run_group_tests_name("attach/sched_switch", tests, NULL, NULL);
}
