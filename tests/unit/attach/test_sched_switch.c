/* SPDX-License-Identifier: BSD-2-Clause */
/* The tracepoint as three generations of kernels declare it, in BTF that is built here. */
#include "attach/tracepoints.h"

#include "tracepoint_fixture.h"

#define NAME "btf_trace_sched_switch"

static void state__is_told_as_the_last_argument(void **state)
{
	struct kernel *kernel = *state;
	int word = btf__add_typedef(kernel->btf, "u32", kernel->word);

	declare(kernel, NAME, (int[]){kernel->flag, kernel->task, kernel->task, word}, 4);
	assert_true(sched_switch_tells_state(kernel->btf));
}

static void state__is_not_told_before_5_18(void **state)
{
	struct kernel *kernel = *state;

	declare(kernel, NAME, (int[]){kernel->flag, kernel->task, kernel->task}, 3);
	assert_false(sched_switch_tells_state(kernel->btf));
}

/* Of a kernel to come: nobody knows what its arguments are. */
static void state__is_not_told_by_more_arguments(void **state)
{
	struct kernel *kernel = *state;

	declare(kernel, NAME,
		(int[]){kernel->flag, kernel->task, kernel->task, kernel->word, kernel->word}, 5);
	assert_false(sched_switch_tells_state(kernel->btf));
}

static void state__in_another_place_or_size_is_not_read(void **state)
{
	struct kernel *kernel = *state;

	declare(kernel, NAME, (int[]){kernel->flag, kernel->word, kernel->task, kernel->task}, 4);
	assert_false(sched_switch_tells_state(kernel->btf));
}

static void state__that_is_wider_is_not_read(void **state)
{
	struct kernel *kernel = *state;

	declare(kernel, NAME, (int[]){kernel->flag, kernel->task, kernel->task, kernel->wide}, 4);
	assert_false(sched_switch_tells_state(kernel->btf));
}

static void tracepoint__that_is_not_there_tells_nothing(void **state)
{
	assert_false(sched_switch_tells_state(((struct kernel *)*state)->btf));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_kernel(state__is_told_as_the_last_argument),
		with_kernel(state__is_not_told_before_5_18),
		with_kernel(state__is_not_told_by_more_arguments),
		with_kernel(state__in_another_place_or_size_is_not_read),
		with_kernel(state__that_is_wider_is_not_read),
		with_kernel(tracepoint__that_is_not_there_tells_nothing),
	};

	return cmocka_run_group_tests_name("attach/sched_switch", tests, NULL, NULL);
}
