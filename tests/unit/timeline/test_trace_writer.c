/* SPDX-License-Identifier: BSD-2-Clause */
/* A disk that stands still is a pipe that nobody reads. */
#include "timeline/trace_file.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define LONG_NS (20 * NS_PER_SEC) /* for what comes at once */
#define SHORT_NS (20 * NS_PER_MS) /* for what does not come */
#define FROZEN_MAX_S 5
#define LOOP_NICE 17	       /* lower than the thread's: anybody may have that */
#define BLOCK_BYTES (1U << 20) /* more than the pipe has room for */

static int ends[2];

/* ---- a file system whose close() takes as long as the test wants ---- */

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t has_changed;
	bool is_frozen, is_closed;
	int err, nice;
} file_system = {.mutex = PTHREAD_MUTEX_INITIALIZER, .has_changed = PTHREAD_COND_INITIALIZER};

static void freeze(bool is_frozen)
{
	pthread_mutex_lock(&file_system.mutex);
	file_system.is_frozen = is_frozen;
	pthread_cond_broadcast(&file_system.has_changed);
	pthread_mutex_unlock(&file_system.mutex);
}

/* Not for ever: who waits for it all the time shall fail, not hang. */
static int close_file(int fd)
{
	struct timespec until;
	int err = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += FROZEN_MAX_S;
	pthread_mutex_lock(&file_system.mutex);
	while (file_system.is_frozen && !err)
		err = pthread_cond_timedwait(&file_system.has_changed, &file_system.mutex, &until);
	err = file_system.err;
	file_system.nice = getpriority(PRIO_PROCESS, 0);
	file_system.is_closed = true;
	pthread_cond_broadcast(&file_system.has_changed);
	pthread_mutex_unlock(&file_system.mutex);
	(void)syscall(SYS_close, fd);
	errno = err;
	return err ? -1 : 0;
}

int close(int fd)
{
	return fd == ends[1] ? close_file(fd) : (int)syscall(SYS_close, fd);
}

/* ---- */

static struct trace_writer *open_it(void)
{
	struct trace_writer *writer;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(trace_writer_new(ends[1], false, &writer), 0);
	return writer;
}

/* Reads to the end; returns how many bytes came, which all were `c`. */
static size_t read_all(char c)
{
	static char bytes[BLOCK_BYTES];
	size_t size = 0;
	ssize_t got;

	while ((got = read(ends[0], bytes, sizeof(bytes))) > 0) {
		for (ssize_t i = 0; i < got; i++)
			assert_int_equal(bytes[i], c);
		size += (size_t)got;
	}
	return size;
}

static void put__does_not_wait_for_the_disk_and_is_bounded(void **state)
{
	OWNED_MEM char *block = malloc(BLOCK_BYTES);
	struct trace_writer *writer = open_it();
	size_t count = 0;
	int err;

	(void)state;
	assert_non_null(block);
	memset(block, 'x', BLOCK_BYTES);
	while (!(err = trace_writer_put(writer, block, BLOCK_BYTES, Z_NO_FLUSH)))
		count++;
	assert_int_equal(err, -ENOBUFS);
	assert_int_equal(count, TRACE_WAITING_BYTES / BLOCK_BYTES);
	/* The end has room. */
	assert_int_equal(trace_writer_put(writer, "x", 1, Z_FINISH), 0);
	assert_int_equal(trace_writer_end(writer, SHORT_NS), -ETIMEDOUT);
	assert_int_equal(read_all('x'), count * BLOCK_BYTES + 1);
	assert_int_equal(trace_writer_end(writer, LONG_NS), 0);
	trace_writer_free(writer);
	close(ends[0]);
}

static void free__does_not_wait_and_drops_what_waits(void **state)
{
	OWNED_MEM char *block = malloc(BLOCK_BYTES);
	struct trace_writer *writer = open_it();
	size_t size;

	(void)state;
	assert_non_null(block);
	memset(block, 'x', BLOCK_BYTES);
	for (int i = 0; i < 3; i++)
		assert_int_equal(trace_writer_put(writer, block, BLOCK_BYTES, Z_NO_FLUSH), 0);
	trace_writer_free(writer);
	size = read_all('x');
	/* The thread may not have begun, or be in the midst of the first; it ends the file. */
	assert_true(!size || size == BLOCK_BYTES);
	close(ends[0]);
}

static void put__tells_of_an_error_of_earlier_bytes(void **state)
{
	struct trace_writer *writer = open_it();
	const uint64_t until_ns = mono_ns() + LONG_NS;
	int err;

	(void)state;
	close(ends[0]);
	while (!(err = trace_writer_put(writer, "x", 1, Z_NO_FLUSH)))
		assert_true(mono_ns() < until_ns);
	assert_int_equal(err, -EPIPE);
	assert_int_equal(trace_writer_put(writer, "x", 1, Z_FINISH), -EPIPE);
	assert_int_equal(trace_writer_end(writer, LONG_NS), -EPIPE);
	trace_writer_free(writer);
}

/* Of a network file system, or FUSE's: close() writes what is left. */
static void end__does_not_wait_for_a_close_that_does_not_return(void **state)
{
	struct trace_writer *writer = open_it();

	(void)state;
	freeze(true);
	assert_int_equal(trace_writer_put(writer, "x", 1, Z_FINISH), 0);
	assert_int_equal(trace_writer_end(writer, SHORT_NS), -ETIMEDOUT);
	freeze(false);
	assert_int_equal(trace_writer_end(writer, LONG_NS), 0);
	trace_writer_free(writer);
	close(ends[0]);
}

static void end__tells_of_an_error_of_close(void **state)
{
	struct trace_writer *writer = open_it();

	(void)state;
	file_system.err = EDQUOT;
	assert_int_equal(trace_writer_end(writer, LONG_NS), -EDQUOT);
	file_system.err = 0;
	trace_writer_free(writer);
	close(ends[0]);
}

/* It closes the file by itself later. */
static void free__does_not_wait_for_a_close_that_does_not_return(void **state)
{
	struct trace_writer *writer = open_it();

	(void)state;
	file_system.is_closed = false;
	freeze(true);
	assert_int_equal(trace_writer_end(writer, SHORT_NS), -ETIMEDOUT);
	trace_writer_free(writer);
	freeze(false);
	pthread_mutex_lock(&file_system.mutex);
	while (!file_system.is_closed)
		pthread_cond_wait(&file_system.has_changed, &file_system.mutex);
	pthread_mutex_unlock(&file_system.mutex);
	close(ends[0]);
}

static void *end_as_loop(void *context)
{
	assert_int_equal(setpriority(PRIO_PROCESS, 0, LOOP_NICE), 0);
	assert_int_equal(trace_writer_end(context, LONG_NS), 0);
	return NULL;
}

/* The loop has nothing else to do then. */
static void end__gives_the_thread_the_priority_of_the_loop(void **state)
{
	struct trace_writer *writer = open_it();
	pthread_t loop;

	(void)state;
	assert_int_equal(pthread_create(&loop, NULL, end_as_loop, writer), 0);
	assert_int_equal(pthread_join(loop, NULL), 0);
	assert_int_equal(file_system.nice, LOOP_NICE);
	trace_writer_free(writer);
	close(ends[0]);
}

static int ignore_sigpipe(void **state)
{
	(void)state;
	return signal(SIGPIPE, SIG_IGN) == SIG_ERR;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put__does_not_wait_for_the_disk_and_is_bounded),
		cmocka_unit_test(free__does_not_wait_and_drops_what_waits),
		cmocka_unit_test(put__tells_of_an_error_of_earlier_bytes),
		cmocka_unit_test(end__does_not_wait_for_a_close_that_does_not_return),
		cmocka_unit_test(end__tells_of_an_error_of_close),
		cmocka_unit_test(end__gives_the_thread_the_priority_of_the_loop),
		cmocka_unit_test(free__does_not_wait_for_a_close_that_does_not_return),
	};

	return cmocka_run_group_tests_name("timeline/trace_writer", tests, ignore_sigpipe, NULL);
}
