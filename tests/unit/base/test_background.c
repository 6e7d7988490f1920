/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether the thread runs is what the test says: a thread that lacks the CPU cannot be made at
 * will. */
#include "base/background.h"

#include <cmocka.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/task.h"

#define LIMIT_NS (300 * NS_PER_MS)
#define LONG_NS (20 * NS_PER_SEC) /* for what comes at once */
#define LOOP_NICE 17

/* ---- the scheduler ---- */

static unsigned int looks;
static unsigned int runs_until; /* looks that find the thread running */
static pid_t looked_at;
static bool is_under_mutex; /* at a look: the thread would seem to sleep */

static struct background background;

bool task_is_running(pid_t tid)
{
	looked_at = tid;
	if (pthread_mutex_trylock(&background.mutex))
		is_under_mutex = true;
	else
		pthread_mutex_unlock(&background.mutex);
	return looks++ < runs_until;
}

/* ---- the thread ---- */

static struct thread {
	bool may_begin, has_begun, may_change, has_changed, may_end; /* the mutex guards them */
	int nice;
	pid_t tid;
} thread;

static void await(const bool *flag)
{
	while (!*flag)
		pthread_cond_wait(&background.has_changed, &background.mutex);
}

static void set(bool *flag)
{
	pthread_mutex_lock(&background.mutex);
	*flag = true;
	pthread_cond_broadcast(&background.has_changed);
	pthread_mutex_unlock(&background.mutex);
}

static void *run(void *context)
{
	assert_ptr_equal(context, &thread);
	pthread_mutex_lock(&background.mutex);
	await(&thread.may_begin);
	pthread_mutex_unlock(&background.mutex);

	background_begin(&background);
	thread.tid = gettid();
	thread.has_begun = true;
	pthread_cond_broadcast(&background.has_changed);
	await(&thread.may_change);
	thread.nice = getpriority(PRIO_PROCESS, 0);
	thread.has_changed = true;
	pthread_cond_broadcast(&background.has_changed);
	await(&thread.may_end);
	pthread_mutex_unlock(&background.mutex);
	return NULL;
}

static int setup(void **state)
{
	(void)state;
	thread = (struct thread){};
	looks = runs_until = 0;
	is_under_mutex = false;
	background_init(&background);
	return background_start(&background, run, &thread);
}

static void await_begin(void)
{
	pthread_mutex_lock(&background.mutex);
	thread.may_begin = true;
	pthread_cond_broadcast(&background.has_changed);
	await(&thread.has_begun);
	pthread_mutex_unlock(&background.mutex);
}

static int teardown(void **state)
{
	(void)state;
	set(&thread.may_begin);
	set(&thread.may_change);
	set(&thread.may_end);
	pthread_join(background.thread, NULL);
	background_destroy(&background);
	return 0;
}

/* Waits as a loop does.  Returns for how long. */
static uint64_t wait_ns(uint64_t limit_ns, bool *ret_has_changed)
{
	const uint64_t begun_ns = mono_ns();
	struct background_patience patience;

	pthread_mutex_lock(&background.mutex);
	background_hurry(&background, limit_ns, &patience);
	while (!thread.has_changed && background_wait(&background, &patience))
		;
	*ret_has_changed = thread.has_changed;
	pthread_mutex_unlock(&background.mutex);
	assert_false(is_under_mutex);
	return mono_ns() - begun_ns;
}

/* ---- */

static void wait__thread_that_sleeps_is_given_up_at_the_limit(void **state)
{
	bool has_changed;
	uint64_t waited_ns;

	(void)state;
	await_begin();
	waited_ns = wait_ns(LIMIT_NS, &has_changed);
	assert_false(has_changed);
	assert_true(waited_ns >= LIMIT_NS);
	assert_true(waited_ns < BACKGROUND_LIMITS_MAX * LIMIT_NS);
	assert_true(looks > 1); /* not only when the limit is over */
	assert_int_equal(looked_at, thread.tid);
}

/* Also when it sleeps at the moment when the limit is over. */
static void wait__thread_that_ran_lately_has_the_limit_once_more(void **state)
{
	bool has_changed;
	uint64_t waited_ns;

	(void)state;
	await_begin();
	/* Each look comes after a thirtieth of the limit at least. */
	runs_until = 15;
	waited_ns = wait_ns(LIMIT_NS, &has_changed);
	assert_false(has_changed);
	assert_true(waited_ns >= LIMIT_NS * 3 / 2 - NS_PER_MS);
}

static void wait__thread_that_lacks_the_cpu_is_awaited_for_long_not_for_ever(void **state)
{
	bool has_changed;
	uint64_t waited_ns;

	(void)state;
	await_begin();
	runs_until = UINT32_MAX;
	waited_ns = wait_ns(LIMIT_NS, &has_changed);
	assert_false(has_changed);
	assert_true(waited_ns >= BACKGROUND_LIMITS_MAX * LIMIT_NS);
	assert_true(waited_ns < LONG_NS);
}

/* A new thread that has not had the CPU yet has no number to look for. */
static void wait__thread_that_has_not_begun_lacks_the_cpu(void **state)
{
	bool has_changed;

	(void)state;
	assert_true(wait_ns(LIMIT_NS / 5, &has_changed) >= BACKGROUND_LIMITS_MAX * LIMIT_NS / 5);
	assert_false(has_changed);
	assert_int_equal(looks, 0);
}

static void wait__ends_with_the_change(void **state)
{
	bool has_changed;

	(void)state;
	await_begin();
	set(&thread.may_change);
	assert_true(wait_ns(LONG_NS, &has_changed) < LONG_NS);
	assert_true(has_changed);
}

static void wait__limit_of_nothing_is_over_at_once(void **state)
{
	bool has_changed;

	(void)state;
	await_begin();
	runs_until = UINT32_MAX;
	assert_true(wait_ns(0, &has_changed) < LONG_NS);
	assert_false(has_changed);
	assert_true(looks <= 1);
}

/* ---- priority ---- */

/* A loop whose priority is low, which anybody may have. */
static void *hurry(void *context)
{
	struct background_patience patience;

	(void)context;
	if (setpriority(PRIO_PROCESS, 0, LOOP_NICE))
		return NULL;
	pthread_mutex_lock(&background.mutex);
	background_hurry(&background, LONG_NS, &patience);
	pthread_mutex_unlock(&background.mutex);
	return &thread;
}

static void hurry_by_another_thread(void)
{
	pthread_t loop;
	void *hurried;

	assert_int_equal(pthread_create(&loop, NULL, hurry, NULL), 0);
	assert_int_equal(pthread_join(loop, &hurried), 0);
	assert_ptr_equal(hurried, &thread);
}

static int nice_of_thread(void)
{
	set(&thread.may_begin);
	set(&thread.may_change);
	pthread_mutex_lock(&background.mutex);
	await(&thread.has_changed);
	pthread_mutex_unlock(&background.mutex);
	return thread.nice;
}

static void begin__thread_runs_after_the_loop(void **state)
{
	(void)state;
	assert_true(nice_of_thread() >= 0);
	assert_true(thread.nice < LOOP_NICE);
}

static void hurry__gives_the_thread_the_priority_of_the_loop(void **state)
{
	(void)state;
	await_begin();
	hurry_by_another_thread();
	assert_int_equal(nice_of_thread(), LOOP_NICE);
}

/* At the end of a short run the thread is as new as its only work. */
static void hurry__thread_that_begins_later_has_the_priority_of_the_loop_too(void **state)
{
	(void)state;
	hurry_by_another_thread();
	assert_int_equal(nice_of_thread(), LOOP_NICE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(wait__thread_that_sleeps_is_given_up_at_the_limit),
		TEST(wait__thread_that_ran_lately_has_the_limit_once_more),
		TEST(wait__thread_that_lacks_the_cpu_is_awaited_for_long_not_for_ever),
		TEST(wait__thread_that_has_not_begun_lacks_the_cpu),
		TEST(wait__ends_with_the_change),
		TEST(wait__limit_of_nothing_is_over_at_once),
		TEST(begin__thread_runs_after_the_loop),
		TEST(hurry__gives_the_thread_the_priority_of_the_loop),
		TEST(hurry__thread_that_begins_later_has_the_priority_of_the_loop_too),
	};

	return cmocka_run_group_tests_name("base/background", tests, NULL, NULL);
}
