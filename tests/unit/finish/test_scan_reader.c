/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: finish/scan_reader.c */
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "finish/scan_reader.h"

#define MANY 100U /* more than one buffer holds */

static struct pp_scan_record sound(uint32_t tid)
{
	return (struct pp_scan_record){.size = sizeof(struct pp_scan_record),
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
		record[i].kernel_count = i;
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
}

/* A pipe gives what is there: records arrive in pieces. */
static void scan_reader_next__pieces_are_joined(void **state)
{
	const struct pp_scan_record record[3] = {sound(1), sound(2), sound(3)};
	const struct pp_scan_record *got;
	struct scan_reader *reader;
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(write(fd[1], record, sizeof(record)), sizeof(record));
	close(fd[1]);
	assert_int_equal(scan_reader_new(fd[0], &reader), 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(scan_reader_next(reader, &got), 1);
		assert_int_equal(got->tid, i + 1);
	}
	assert_int_equal(scan_reader_next(reader, &got), 0);
	scan_reader_free(reader);
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
		cmocka_unit_test(scan_reader_next__all_records_in_order),
		cmocka_unit_test(scan_reader_next__half_a_record_is_ebadmsg),
		cmocka_unit_test(scan_reader_next__what_cannot_be_is_ebadmsg),
		cmocka_unit_test(scan_reader_next__pieces_are_joined),
		cmocka_unit_test(scan_reader_next__read_error_is_told),
	};

	return cmocka_run_group_tests_name("drain/scan_reader", tests, NULL, NULL);
}
