/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/task.h"

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define LONG_NS (20 * NS_PER_SEC) /* for what comes at once */

static bool becomes(pid_t tid, bool wanted)
{
	const uint64_t until_ns = mono_ns() + LONG_NS;

	while (task_is_running(tid) != wanted)
		if (mono_ns() > until_ns)
			return false;
	return true;
}

struct task {
	pid_t tid;
	int is_over;
	int ends[2];
};

static void *spin(void *context)
{
	struct task *task = context;

	__atomic_store_n(&task->tid, gettid(), __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&task->is_over, __ATOMIC_SEQ_CST))
		;
	return NULL;
}

static void *sleep_on(void *context)
{
	struct task *task = context;
	char c;

	__atomic_store_n(&task->tid, gettid(), __ATOMIC_SEQ_CST);
	return read(task->ends[0], &c, 1) == 1 ? task : NULL;
}

static pthread_t start(struct task *task, void *(*run)(void *context))
{
	pthread_t thread;

	assert_int_equal(pipe(task->ends), 0);
	assert_int_equal(pthread_create(&thread, NULL, run, task), 0);
	while (!__atomic_load_n(&task->tid, __ATOMIC_SEQ_CST))
		sched_yield();
	return thread;
}

static void end(struct task *task, pthread_t thread)
{
	__atomic_store_n(&task->is_over, 1, __ATOMIC_SEQ_CST);
	assert_int_equal(write(task->ends[1], "x", 1), 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	close(task->ends[0]);
	close(task->ends[1]);
}

/* A thread is told apart from the others of its process, whose main thread runs all the time. */
static void is_running__thread_that_computes_does(void **state)
{
	struct task spinner = {}, sleeper = {};
	pthread_t spins = start(&spinner, spin), sleeps = start(&sleeper, sleep_on);

	(void)state;
	assert_true(task_is_running(getpid()));
	assert_true(task_is_running(spinner.tid));
	assert_true(becomes(sleeper.tid, false));
	end(&spinner, spins);
	end(&sleeper, sleeps);
}

/* A name cannot pretend. */
static void is_running__name_is_not_the_state(void **state)
{
	int ends[2], status;
	pid_t child;
	char c;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		prctl(PR_SET_NAME, "x) R y");
		if (write(ends[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ends[0], &c, 1), 1);
	assert_true(becomes(child, false));
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_false(task_is_running(child));
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_running__thread_that_computes_does),
		cmocka_unit_test(is_running__name_is_not_the_state),
	};

	return cmocka_run_group_tests_name("base/task", tests, NULL, NULL);
}
