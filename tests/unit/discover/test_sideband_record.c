/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/sideband.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

/* clang-format off */
/* Records in the layout of perf_event.h, byte by byte (little-endian), a field a line. */
static const uint8_t inode_record[] = {
	10, 0, 0, 0, 2, 0, 104, 0,
	0xd2, 4, 0, 0, 0xd3, 4, 0, 0,
	0, 0x10, 0x40, 0, 0, 0, 0, 0,
	0, 0x20, 0, 0, 0, 0, 0, 0,
	0, 0x10, 0, 0, 0, 0, 0, 0,
	8, 0, 0, 0, 1, 0, 0, 0,				  /* major 8, minor 1 */
	0x39, 0x30, 0, 0, 0, 0, 0, 0,			  /* inode 12345 */
	7, 0, 0, 0, 0, 0, 0, 0,				  /* generation 7 */
	5, 0, 0, 0, 2, 0, 0, 0,
	'/', 'a', ' ', '(', 'd', 'e', 'l', 'e', 't', 'e', 'd', ')', 0, 0, 0, 0,
	0xd2, 4, 0, 0, 0xd3, 4, 0, 0,
	0x15, 0xcd, 0x5b, 7, 0, 0, 0, 0,
};

static const uint8_t lost_record[] = {
	2, 0, 0, 0, 0, 0, 40, 0,
	9, 0, 0, 0, 0, 0, 0, 0,
	17, 0, 0, 0, 0, 0, 0, 0,
	0xd2, 4, 0, 0, 0xd2, 4, 0, 0,
	0x15, 0xcd, 0x5b, 7, 0, 0, 0, 0,
};

/* clang-format on */

static void sideband_record_parse__mapping_with_inode_of_a_deleted_file(void **state)
{
	static struct sideband_record record;

	(void)state;
	assert_int_equal(sideband_record_parse(inode_record, sizeof(inode_record), &record), 0);
	assert_int_equal(record.kind, SIDEBAND_MAPPING);
	assert_int_equal(record.mapping.key.major, 8);
	assert_int_equal(record.mapping.key.minor, 1);
	assert_int_equal(record.mapping.key.inode, 12345);
	assert_int_equal(record.mapping.key.inode_generation, 7);
	assert_string_equal(record.mapping.path, "/a");
}

/* The bit is another profiler's, who asked for build-ids; the record is ours. */
static void sideband_record_parse__build_id_bit_changes_nothing(void **state)
{
	static struct sideband_record record;
	uint8_t bytes[sizeof(inode_record)];

	(void)state;
	memcpy(bytes, inode_record, sizeof(bytes));
	bytes[5] |= PERF_RECORD_MISC_MMAP_BUILD_ID >> 8;
	assert_int_equal(sideband_record_parse(bytes, sizeof(bytes), &record), 0);
	assert_int_equal(record.kind, SIDEBAND_MAPPING);
	assert_int_equal(record.mapping.key.inode, 12345);
}

static void sideband_record_parse__memory_without_a_file(void **state)
{
	static struct sideband_record record;
	uint8_t bytes[sizeof(inode_record)];

	(void)state;
	memcpy(bytes, inode_record, sizeof(bytes));
	memset(bytes + 40, 0, 24);
	memcpy(bytes + 72, "//anon\0\0\0\0\0\0\0\0\0", 16);
	assert_int_equal(sideband_record_parse(bytes, sizeof(bytes), &record), 0);
	assert_string_equal(record.mapping.path, "");
	assert_int_equal(record.mapping.offset, 0);
	memcpy(bytes + 72, "[vdso]\0", 8);
	assert_int_equal(sideband_record_parse(bytes, sizeof(bytes), &record), 0);
	assert_string_equal(record.mapping.path, "[vdso]");
}

static void sideband_record_parse__lost(void **state)
{
	static struct sideband_record record;

	(void)state;
	assert_int_equal(sideband_record_parse(lost_record, sizeof(lost_record), &record), 0);
	assert_int_equal(record.kind, SIDEBAND_LOST);
	assert_int_equal(record.lost_count, 17);
}

static int parse_changed(size_t at, uint8_t value)
{
	static struct sideband_record record;
	uint8_t bytes[sizeof(inode_record)];

	memcpy(bytes, inode_record, sizeof(bytes));
	bytes[at] = value;
	return sideband_record_parse(bytes, sizeof(bytes), &record);
}

static void sideband_record_parse__lies_are_refused(void **state)
{
	(void)state;
	assert_int_equal(parse_changed(6, 96), -EBADMSG); /* another size than it has */
	assert_int_equal(parse_changed(25, 0), -EBADMSG); /* no bytes */
	assert_int_equal(parse_changed(31, 0xff), 0);	  /* far up, but no wrap */
	assert_int_equal(parse_changed(0, 99), 0);	  /* a type of the future */
}

static void sideband_record_parse__any_cut_is_refused(void **state)
{
	static struct sideband_record record;
	uint8_t bytes[sizeof(inode_record)];

	(void)state;
	memcpy(bytes, inode_record, sizeof(bytes));
	for (uint8_t size = 0; size < 88; size++) {
		bytes[6] = size;
		assert_int_equal(sideband_record_parse(bytes, size, &record), -EBADMSG);
	}
	assert_int_equal(sideband_record_time(bytes, 23), 0);
	/* A name without its NUL ends with the record. */
	memset(bytes + 72, 'x', 16);
	bytes[6] = sizeof(bytes);
	assert_int_equal(sideband_record_parse(bytes, sizeof(bytes), &record), 0);
	assert_string_equal(record.mapping.path, "xxxxxxxxxxxxxxxx");
}

static void sideband_record_parse__mapping_not_for_execution_is_other(void **state)
{
	static struct sideband_record record;
	uint8_t bytes[sizeof(inode_record)];

	(void)state;
	memcpy(bytes, inode_record, sizeof(bytes));
	bytes[64] = 3;
	assert_int_equal(sideband_record_parse(bytes, sizeof(bytes), &record), 0);
	assert_int_equal(record.kind, SIDEBAND_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sideband_record_parse__build_id_bit_changes_nothing),
		cmocka_unit_test(sideband_record_parse__mapping_with_inode_of_a_deleted_file),
		cmocka_unit_test(sideband_record_parse__memory_without_a_file),
		cmocka_unit_test(sideband_record_parse__lost),
		cmocka_unit_test(sideband_record_parse__lies_are_refused),
		cmocka_unit_test(sideband_record_parse__any_cut_is_refused),
		cmocka_unit_test(sideband_record_parse__mapping_not_for_execution_is_other),
	};

	return cmocka_run_group_tests_name("discover/sideband_record", tests, NULL, NULL);
}
