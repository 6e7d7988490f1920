/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: timeline/trace_writer.c base/background.c base/io.c base/running.c */
/* A disk that stands still is a pipe that nobody reads. */
#include "timeline/trace_writer.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define LONG_NS (20 * NS_PER_SEC) /* for what comes at once */
#define SHORT_NS (20 * NS_PER_MS) /* for what does not come */
#define BLOCK_BYTES (1U << 20)	  /* more than the pipe has room for */

static int ends[2];

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
	};

	return cmocka_run_group_tests_name("timeline/trace_writer", tests, ignore_sigpipe, NULL);
}
