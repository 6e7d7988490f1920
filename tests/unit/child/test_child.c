/* SPDX-License-Identifier: BSD-2-Clause */
/* When a child is started again; starting, killing and awaiting are fakes in this file. */
#include "child/worker.h"

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define PID 4711

static int spawn_error;
static unsigned int kills, awaited;
static pid_t wait_result;

int child_spawn(enum child_kind kind, const struct child_start *start, pid_t *ret_pid)
{
	(void)kind;
	(void)start;
	if (spawn_error)
		return spawn_error;
	*ret_pid = PID;
	return 0;
}

int kill(pid_t pid, int sig)
{
	assert_int_equal(pid, PID);
	assert_int_equal(sig, SIGKILL);
	kills++;
	return 0;
}

pid_t waitpid(pid_t pid, int *status, int options)
{
	assert_int_equal(pid, PID);
	assert_int_equal(options, WNOHANG);
	if (status)
		*status = 7;
	awaited++;
	return wait_result;
}

static struct child child;
static const struct child_start nothing;

static int setup(void **state)
{
	(void)state;
	spawn_error = 0;
	kills = awaited = 0;
	wait_result = PID;
	child_init(&child, CHILD_SERVER); /* steady after 60 s, pauses of 1 to 60 s */
	return 0;
}

/* Starts one that ends by itself after so long. */
static void run_for(uint64_t *now_ns, uint64_t ns)
{
	int status = 0;

	assert_true(child_is_due(&child, *now_ns));
	assert_int_equal(child_start(&child, &nothing, *now_ns), 0);
	assert_false(child_is_due(&child, *now_ns));
	*now_ns += ns;
	assert_true(child_has_ended(&child, &status));
	assert_int_equal(status, 7);
	child_rest(&child, *now_ns);
}

static uint64_t pause_ns(uint64_t now_ns)
{
	assert_false(child_is_due(&child, child.start_after_ns - 1));
	assert_true(child_is_due(&child, child.start_after_ns));
	return child.start_after_ns - now_ns;
}

static void child_rest__pauses_double_up_to_a_bound(void **state)
{
	static const uint64_t seconds[] = {1, 2, 4, 8, 16, 32, 60, 60};
	uint64_t now_ns = 100 * NS_PER_SEC;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(seconds); i++) {
		run_for(&now_ns, NS_PER_SEC);
		assert_int_equal(pause_ns(now_ns), seconds[i] * NS_PER_SEC);
		now_ns = child.start_after_ns;
	}
}

static void child_rest__steady_one_begins_anew(void **state)
{
	uint64_t now_ns = 100 * NS_PER_SEC;

	(void)state;
	for (int i = 0; i < 3; i++) {
		run_for(&now_ns, 0);
		now_ns = child.start_after_ns;
	}
	run_for(&now_ns, 60 * NS_PER_SEC - 1);
	assert_int_equal(pause_ns(now_ns), 8 * NS_PER_SEC);
	now_ns = child.start_after_ns;
	run_for(&now_ns, 60 * NS_PER_SEC);
	assert_int_equal(pause_ns(now_ns), NS_PER_SEC);
}

/* A policy without a steady time. */
static void child_rest__where_none_is_steady_pauses_only_grow(void **state)
{
	uint64_t now_ns = 100 * NS_PER_SEC;

	(void)state;
	child_init(&child, CHILD_STORE);
	for (uint64_t i = 0; i < 10; i++) {
		run_for(&now_ns, 3600 * NS_PER_SEC);
		now_ns = child.start_after_ns;
	}
	run_for(&now_ns, 3600 * NS_PER_SEC);
	assert_int_equal(pause_ns(now_ns), 600 * NS_PER_SEC);
}

static void child_rest__long_and_forgiven(void **state)
{
	uint64_t now_ns = 100 * NS_PER_SEC;

	(void)state;
	run_for(&now_ns, 0);
	child_rest_long(&child, now_ns);
	assert_int_equal(pause_ns(now_ns), 60 * NS_PER_SEC);
	child_forgive(&child);
	assert_true(child_is_due(&child, now_ns));
	run_for(&now_ns, 0);
	assert_int_equal(pause_ns(now_ns), NS_PER_SEC);
}

static void child_start__that_fails_is_no_child(void **state)
{
	(void)state;
	spawn_error = -ENOENT;
	assert_int_equal(child_start(&child, &nothing, 5), -ENOENT);
	assert_int_equal(child.pid, 0);
	assert_false(child_has_ended(&child, NULL));
	assert_int_equal(child_cpu_ns(&child), 0);
	child_release(&child);
	assert_int_equal(kills, 0);
	assert_int_equal(awaited, 0);
}

static void child_kill__kills_once_and_waits_for_nothing(void **state)
{
	(void)state;
	wait_result = 0;
	assert_int_equal(child_start(&child, &nothing, 5), 0);
	child_kill(&child);
	child_kill(&child);
	assert_int_equal(kills, 1);
	assert_false(child_has_ended(&child, NULL));
	assert_int_equal(child.pid, PID);
	child_release(&child);
	assert_int_equal(kills, 1);
	assert_int_equal(child.pid, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(child_rest__pauses_double_up_to_a_bound, setup),
		cmocka_unit_test_setup(child_rest__steady_one_begins_anew, setup),
		cmocka_unit_test_setup(child_rest__where_none_is_steady_pauses_only_grow, setup),
		cmocka_unit_test_setup(child_rest__long_and_forgiven, setup),
		cmocka_unit_test_setup(child_start__that_fails_is_no_child, setup),
		cmocka_unit_test_setup(child_kill__kills_once_and_waits_for_nothing, setup),
	};

	return cmocka_run_group_tests_name("child/child", tests, NULL, NULL);
}
