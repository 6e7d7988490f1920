/* SPDX-License-Identifier: BSD-2-Clause */
/* A disk that takes as long as the test wants, and profiles that are as large as it says. */
#include "store/writer.h"

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define LONG_NS (20 * NS_PER_SEC) /* for what comes at once */
#define SHORT_NS (20 * NS_PER_MS) /* for what does not come */
#define WRITES_MAX 64U
#define LOOP_NICE 17 /* lower than the thread's: anybody may have that */

struct profile {
	size_t bytes;
};

static int profiles; /* that are not freed */

void profile_free(struct profile *profile)
{
	if (profile)
		__atomic_fetch_sub(&profiles, 1, __ATOMIC_SEQ_CST);
	free(profile);
}

size_t profile_bytes(const struct profile *profile)
{
	return profile->bytes;
}

/* ---- the disk ---- */

struct disk {
	pthread_mutex_t mutex;
	pthread_cond_t has_changed;
	bool is_frozen, is_in_write;
	uint64_t computes_ns; /* in a write */
	int err;
	uint64_t written[WRITES_MAX]; /* starts */
	size_t count;
	pthread_t writer;
	int nice;
	bool hears_signals;
};
static struct disk disk;

static int write_window(void *context, const struct writer_window *window)
{
	sigset_t blocked;
	int err;

	assert_ptr_equal(context, &disk);
	pthread_mutex_lock(&disk.mutex);
	disk.writer = pthread_self();
	disk.nice = getpriority(PRIO_PROCESS, 0);
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	disk.hears_signals = !sigismember(&blocked, SIGTERM) || !sigismember(&blocked, SIGHUP);
	disk.is_in_write = true;
	pthread_cond_broadcast(&disk.has_changed);
	while (disk.is_frozen)
		pthread_cond_wait(&disk.has_changed, &disk.mutex);
	for (const uint64_t until_ns = mono_ns() + disk.computes_ns; mono_ns() < until_ns;)
		;
	disk.is_in_write = false;
	disk.written[disk.count++ % WRITES_MAX] = window->start_wall_ns;
	pthread_cond_broadcast(&disk.has_changed);
	err = disk.err;
	pthread_mutex_unlock(&disk.mutex);
	return err;
}

static void freeze(bool is_frozen)
{
	pthread_mutex_lock(&disk.mutex);
	disk.is_frozen = is_frozen;
	pthread_cond_broadcast(&disk.has_changed);
	pthread_mutex_unlock(&disk.mutex);
}

static void await_write(void)
{
	pthread_mutex_lock(&disk.mutex);
	while (!disk.is_in_write)
		pthread_cond_wait(&disk.has_changed, &disk.mutex);
	pthread_mutex_unlock(&disk.mutex);
}

/* ---- */

static struct writer *writer;

static struct writer_window window_of(uint64_t start, size_t count, size_t bytes)
{
	struct writer_window window = {.start_wall_ns = start};

	assert_int_equal(intern_new(&window.strings), 0);
	for (size_t i = 0; i < count; i++) {
		window.profile[i] = calloc(1, sizeof(*window.profile[i]));
		assert_non_null(window.profile[i]);
		window.profile[i]->bytes = bytes;
		__atomic_fetch_add(&profiles, 1, __ATOMIC_SEQ_CST);
	}
	return window;
}

static size_t put(uint64_t start, size_t count, size_t bytes)
{
	struct writer_window window = window_of(start, count, bytes);
	const size_t dropped = writer_put(writer, &window);

	assert_null(window.strings);
	assert_null(window.profile[0]);
	return dropped;
}

static int wait_for(uint64_t ns)
{
	return writer_wait(writer, ns);
}

static int setup(void **state)
{
	(void)state;
	disk = (struct disk){.mutex = PTHREAD_MUTEX_INITIALIZER,
			     .has_changed = PTHREAD_COND_INITIALIZER};
	return writer_new(write_window, &disk, &writer);
}

static int teardown(void **state)
{
	(void)state;
	freeze(false);
	return !writer_free(writer, LONG_NS) || profiles;
}

static void put__is_written_in_order_by_another_thread(void **state)
{
	(void)state;
	assert_int_equal(wait_for(LONG_NS), 0); /* for nothing */
	for (uint64_t i = 1; i <= 3; i++)
		assert_int_equal(put(i, 2, 100), 0);
	assert_int_equal(wait_for(LONG_NS), 0);
	assert_int_equal(writer_waiting(writer), 0);
	assert_int_equal(disk.count, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(disk.written[i], i + 1);
	assert_int_equal(profiles, 0);
	assert_false(pthread_equal(disk.writer, pthread_self()));
	assert_false(disk.hears_signals); /* they are for the loop */
	assert_true(disk.nice >= 0);
}

/* The file system is frozen: nobody waits for it, and all is there afterwards. */
static void put__does_not_wait_for_a_disk_that_does_not_answer(void **state)
{
	uint64_t begun_ns;

	(void)state;
	freeze(true);
	assert_int_equal(put(1, 1, 100), 0);
	await_write();
	begun_ns = mono_ns();
	for (uint64_t i = 2; i <= 1 + WRITER_WINDOWS_MAX; i++)
		assert_int_equal(put(i, 4, 1 << 20), 0);
	assert_true(mono_ns() - begun_ns < LONG_NS);
	assert_int_equal(disk.count, 0);
	assert_int_equal(wait_for(SHORT_NS), -ETIMEDOUT);
	assert_int_equal(writer_waiting(writer), 1 + WRITER_WINDOWS_MAX);
	freeze(false);
	assert_int_equal(wait_for(LONG_NS), 0);
	assert_int_equal(disk.count, 1 + WRITER_WINDOWS_MAX);
	assert_int_equal(disk.written[WRITER_WINDOWS_MAX], 1 + WRITER_WINDOWS_MAX);
}

static void put__drops_the_oldest_windows_whole_when_too_many_wait(void **state)
{
	(void)state;
	freeze(true);
	put(1, 3, 100);
	await_write(); /* this one is no longer in the queue */
	for (uint64_t i = 2; i <= 1 + WRITER_WINDOWS_MAX; i++)
		assert_int_equal(put(i, 3, 100), 0);
	assert_int_equal(put(101, 3, 100), 3);
	assert_int_equal(put(102, 3, 100), 3);
	freeze(false);
	assert_int_equal(wait_for(LONG_NS), 0);
	assert_int_equal(disk.count, 1 + WRITER_WINDOWS_MAX);
	assert_int_equal(disk.written[0], 1);
	assert_int_equal(disk.written[1], 4);
	assert_int_equal(disk.written[WRITER_WINDOWS_MAX], 102);
	assert_int_equal(profiles, 0);
}

static void put__bounds_bytes_too(void **state)
{
	(void)state;
	freeze(true);
	put(1, 1, 100);
	await_write();
	assert_int_equal(put(2, 2, WRITER_BYTES_MAX / 8), 0);
	assert_int_equal(put(3, 2, WRITER_BYTES_MAX / 8), 0);
	assert_int_equal(put(4, 1, WRITER_BYTES_MAX * 5 / 8), 2);
	/* The newest is kept, however large it is. */
	assert_int_equal(put(5, 1, 2 * WRITER_BYTES_MAX), 3);
	freeze(false);
	assert_int_equal(wait_for(LONG_NS), 0);
	assert_int_equal(disk.count, 2);
	assert_int_equal(disk.written[1], 5);
}

static void wait__returns_the_error_of_the_last_window(void **state)
{
	(void)state;
	disk.err = -ENOSPC;
	put(1, 1, 100);
	assert_int_equal(wait_for(LONG_NS), -ENOSPC);
	disk.err = 0;
	put(2, 1, 100);
	assert_int_equal(wait_for(LONG_NS), 0);
}

/* It may have to share the CPU with a thousand threads. */
static void wait__does_not_give_up_a_thread_that_runs(void **state)
{
	(void)state;
	disk.computes_ns = 3 * NS_PER_SEC / 2;
	put(1, 1, 100);
	assert_int_equal(wait_for(NS_PER_SEC), 0);
	assert_int_equal(disk.count, 1);
}

static void *wait_as_loop(void *context)
{
	int *err = context;

	assert_int_equal(setpriority(PRIO_PROCESS, 0, LOOP_NICE), 0);
	*err = wait_for(SHORT_NS);
	return NULL;
}

/* The loop has nothing else to do then. */
static void wait__gives_the_thread_the_priority_of_the_loop(void **state)
{
	pthread_t loop;
	int err = 0;

	(void)state;
	freeze(true);
	put(1, 1, 100);
	await_write();
	assert_true(disk.nice < LOOP_NICE);
	assert_int_equal(pthread_create(&loop, NULL, wait_as_loop, &err), 0);
	assert_int_equal(pthread_join(loop, NULL), 0);
	assert_int_equal(err, -ETIMEDOUT);
	put(2, 1, 100);
	freeze(false);
	pthread_mutex_lock(&disk.mutex);
	while (disk.count < 2)
		pthread_cond_wait(&disk.has_changed, &disk.mutex);
	pthread_mutex_unlock(&disk.mutex);
	assert_int_equal(disk.nice, LOOP_NICE);
}

static void free__writes_what_waits(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 5; i++)
		put(i, 1, 100);
	assert_true(writer_free(writer, LONG_NS));
	assert_int_equal(disk.count, 5);
	assert_int_equal(profiles, 0);
	assert_true(writer_free(NULL, 0));
	assert_int_equal(writer_new(write_window, &disk, &writer), 0);
}

/* The process ends although the disk does not answer; what the thread uses stays. */
static void free__does_not_wait_for_ever(void **state)
{
	(void)state;
	freeze(true);
	put(1, 1, 100);
	await_write();
	put(2, 1, 100);
	assert_false(writer_free(writer, SHORT_NS));
	freeze(false);
	/* The thread writes on and ends by itself; only a test sees it. */
	for (uint64_t begun_ns = mono_ns(); mono_ns() - begun_ns < LONG_NS;) {
		pthread_mutex_lock(&disk.mutex);
		const size_t count = disk.count;
		pthread_mutex_unlock(&disk.mutex);

		if (count == 2 && !__atomic_load_n(&profiles, __ATOMIC_SEQ_CST))
			break;
		sched_yield();
	}
	assert_int_equal(disk.count, 2);
	assert_int_equal(writer_new(write_window, &disk, &writer), 0);
}

static void window_release__of_nothing(void **state)
{
	struct writer_window window = {};

	(void)state;
	writer_window_release(&window);
	assert_null(window.strings);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(put__is_written_in_order_by_another_thread),
		TEST(put__does_not_wait_for_a_disk_that_does_not_answer),
		TEST(put__drops_the_oldest_windows_whole_when_too_many_wait),
		TEST(put__bounds_bytes_too),
		TEST(wait__returns_the_error_of_the_last_window),
		TEST(wait__does_not_give_up_a_thread_that_runs),
		TEST(wait__gives_the_thread_the_priority_of_the_loop),
		TEST(free__writes_what_waits),
		TEST(free__does_not_wait_for_ever),
		TEST(window_release__of_nothing),
	};

	return cmocka_run_group_tests_name("agent/writer", tests, NULL, NULL);
}
