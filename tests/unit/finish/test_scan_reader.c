/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "finish/scan.h"

#define MANY 300U   /* more than one buffer holds */
#define TRIES 1000U /* as often the kernel may have passed tasks without a record */

/* ---- the iterator: what its descriptor gives, in pieces ---- */

static struct {
	const uint8_t *bytes;	       /* NULL: the descriptor's own */
	size_t size, at, first, piece; /* so many bytes at first, then at a time */
	unsigned int errors, reads;    /* errors: left, before the next piece */
	int error;
	unsigned int closed;
} iterator;

ssize_t read(int fd, void *buffer, size_t size)
{
	size_t part = iterator.at ? iterator.piece : iterator.first;

	if (!iterator.bytes)
		return syscall(SYS_read, fd, buffer, size);
	iterator.reads++;
	errno = iterator.error;
	if (iterator.errors) {
		iterator.errors--;
		return -1;
	}
	if (part > iterator.size - iterator.at)
		part = iterator.size - iterator.at;
	if (part > size)
		part = size;
	memcpy(buffer, iterator.bytes + iterator.at, part);
	iterator.at += part;
	return (ssize_t)part;
}

int close(int fd)
{
	iterator.closed++;
	return (int)syscall(SYS_close, fd);
}

static int setup(void **state)
{
	(void)state;
	memset(&iterator, 0, sizeof(iterator));
	iterator.error = EAGAIN;
	iterator.first = iterator.piece = SIZE_MAX;
	return 0;
}

/* ---- */

static struct pp_scan_record sound(uint32_t tid)
{
	return (struct pp_scan_record){.size = sizeof(struct pp_scan_record),
				       .return_count = 1,
				       .returns = {{.stack = 0x7ff0, .address = tid}},
				       .tgid = 7,
				       .tid = tid,
				       .state = 1,
				       .wait = PP_WAIT_SLEEP};
}

static struct scan_reader *open_bytes(const void *bytes, size_t size)
{
	int fd = memfd_create("scan", MFD_CLOEXEC);
	struct scan_reader *reader;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(scan_reader_new(fd, &reader), 0);
	return reader;
}

static void scan_reader_next__all_records_in_order(void **state)
{
	static struct pp_scan_record record[MANY];
	const struct pp_scan_record *got;

	(void)state;
	for (uint32_t i = 0; i < MANY; i++) {
		record[i] = sound(i + 1);
		record[i].kernel_count = i % (PP_MAX_KERNEL_FRAMES + 1);
		record[i].kernel[i % PP_MAX_KERNEL_FRAMES] = i;
	}
	OWNED(scan_reader) struct scan_reader *reader = open_bytes(record, sizeof(record));

	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(scan_reader_next(reader, &got), 1);
		assert_memory_equal(got, &record[i], sizeof(*got));
	}
	assert_int_equal(scan_reader_next(reader, &got), 0);
	assert_int_equal(scan_reader_next(reader, &got), 0);
}

/* Most records end before returns[]. */
static void scan_reader_next__short_and_long_records_follow_each_other(void **state)
{
	uint8_t bytes[2 * PP_SCAN_RECORD_SHORT + sizeof(struct pp_scan_record)];
	const struct pp_scan_record *got;
	struct pp_scan_record record;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		record = sound(i + 1);
		if (i != 1) {
			record.return_count = 0;
			record.size = PP_SCAN_RECORD_SHORT;
		}
		memcpy(bytes + i * PP_SCAN_RECORD_SHORT +
			       (i == 2) * (sizeof(record) - PP_SCAN_RECORD_SHORT),
		       &record, record.size);
	}
	OWNED(scan_reader) struct scan_reader *reader = open_bytes(bytes, sizeof(bytes));

	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(scan_reader_next(reader, &got), 1);
		assert_int_equal(got->tid, i + 1);
		assert_int_equal(got->return_count, i == 1);
		if (i == 1)
			assert_int_equal(got->returns[0].address, 2);
	}
	assert_int_equal(scan_reader_next(reader, &got), 0);
}

static void scan_reader_next__half_a_record_is_ebadmsg(void **state)
{
	const struct pp_scan_record record[2] = {sound(1), sound(2)};
	OWNED(scan_reader) struct scan_reader *reader = open_bytes(record, sizeof(record) - 8);
	const struct pp_scan_record *got;

	(void)state;
	assert_int_equal(scan_reader_next(reader, &got), 1);
	assert_int_equal(scan_reader_next(reader, &got), -EBADMSG);
}

static void assert_refused(const struct pp_scan_record *record)
{
	OWNED(scan_reader) struct scan_reader *reader = open_bytes(record, sizeof(*record));
	const struct pp_scan_record *got = NULL;

	assert_int_equal(scan_reader_next(reader, &got), -EBADMSG);
	assert_null(got);
}

static void scan_reader_next__what_cannot_be_is_ebadmsg(void **state)
{
	struct pp_scan_record record;

	(void)state;
	record = sound(1);
	record.size -= 8;
	assert_refused(&record);
	record = sound(0);
	assert_refused(&record);
	record = sound(1);
	record.tgid = 0;
	assert_refused(&record);
	record = sound(1);
	record.state = 0;
	assert_refused(&record);
	record = sound(1);
	record.wait = PP_WAIT_NONE;
	assert_refused(&record);
	record = sound(1);
	record.wait = PP_WAIT_COUNT;
	assert_refused(&record);
	record = sound(1);
	record.kernel_count = PP_MAX_KERNEL_FRAMES + 1;
	assert_refused(&record);
	record = sound(1);
	record.return_count = PP_MAX_RETURNS + 1;
	assert_refused(&record);
	record = sound(1);
	record.return_count = 0;
	assert_refused(&record);
}

/* Reads MANY records, which come in pieces. */
static void expect_many(size_t first, size_t piece)
{
	static struct pp_scan_record record[MANY];
	const struct pp_scan_record *got;
	struct scan_reader *reader;

	for (uint32_t i = 0; i < MANY; i++) {
		record[i] = sound(i + 1);
		record[i].kernel[i % PP_MAX_KERNEL_FRAMES] = i;
	}
	iterator.bytes = (const uint8_t *)record;
	iterator.size = sizeof(record);
	iterator.at = iterator.reads = 0;
	iterator.first = first;
	iterator.piece = piece;
	assert_int_equal(scan_reader_new(-1, &reader), 0);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(scan_reader_next(reader, &got), 1);
		assert_memory_equal(got, &record[i], sizeof(*got));
	}
	/* The end is one read, after which the kernel's last error says nothing. */
	iterator.reads = 0;
	assert_int_equal(scan_reader_next(reader, &got), 0);
	assert_int_equal(iterator.reads, 1);
	scan_reader_free(reader);
}

static void scan_reader_next__pieces_are_joined(void **state)
{
	(void)state;
	expect_many(SIZE_MAX, SIZE_MAX);
	expect_many(1, 1);
	expect_many(100, SIZE_MAX);
	expect_many(sizeof(struct pp_scan_record) + 8, SIZE_MAX);
	expect_many(sizeof(struct pp_scan_record) - 8, 3 * sizeof(struct pp_scan_record) / 2);
}

static int read_after(int error, unsigned int errors)
{
	const struct pp_scan_record record = sound(1), *got;
	struct scan_reader *reader;
	int result;

	iterator.bytes = (const uint8_t *)&record;
	iterator.size = sizeof(record);
	iterator.at = iterator.reads = 0;
	iterator.error = error;
	iterator.errors = errors;
	assert_int_equal(scan_reader_new(-1, &reader), 0);
	result = scan_reader_next(reader, &got);
	scan_reader_free(reader);
	return result;
}

static void scan_reader_next__goes_on_while_the_kernel_passes_tasks(void **state)
{
	(void)state;
	assert_int_equal(read_after(EAGAIN, 1), 1);
	assert_int_equal(read_after(EINTR, 2), 1);
	assert_int_equal(read_after(EAGAIN, TRIES - 1), 1);
	/* Not for ever. */
	assert_int_equal(read_after(EAGAIN, TRIES), -EAGAIN);
	assert_int_equal(iterator.reads, TRIES);
	assert_int_equal(read_after(EIO, 1), -EIO);
	assert_int_equal(iterator.reads, 1);
}

static void scan_reader_free__closes_the_descriptor(void **state)
{
	struct scan_reader *reader;

	(void)state;
	assert_int_equal(scan_reader_new(-1, &reader), 0);
	assert_int_equal(iterator.closed, 0);
	scan_reader_free(reader);
	assert_int_equal(iterator.closed, 1);
	scan_reader_free(NULL);
	assert_int_equal(iterator.closed, 1);
}

static void scan_reader_next__read_error_is_told(void **state)
{
	const struct pp_scan_record *got;
	struct scan_reader *reader;
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	close(fd[0]);
	assert_int_equal(scan_reader_new(fd[1], &reader), 0); /* the end that cannot be read */
	assert_int_equal(scan_reader_next(reader, &got), -EBADF);
	scan_reader_free(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(scan_reader_next__all_records_in_order, setup),
		cmocka_unit_test_setup(scan_reader_next__short_and_long_records_follow_each_other,
				       setup),
		cmocka_unit_test_setup(scan_reader_next__half_a_record_is_ebadmsg, setup),
		cmocka_unit_test_setup(scan_reader_next__what_cannot_be_is_ebadmsg, setup),
		cmocka_unit_test_setup(scan_reader_next__pieces_are_joined, setup),
		cmocka_unit_test_setup(scan_reader_next__goes_on_while_the_kernel_passes_tasks,
				       setup),
		cmocka_unit_test_setup(scan_reader_free__closes_the_descriptor, setup),
		cmocka_unit_test_setup(scan_reader_next__read_error_is_told, setup),
	};

	return cmocka_run_group_tests_name("finish/scan_reader", tests, NULL, NULL);
}
