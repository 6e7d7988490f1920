/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables that are read and not emptied.  The kernel's hash is a stand-in: entry i has key i and
 * value 3 * i. */
#include "drain/table.h"

#include <bpf/bpf.h>
#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define TABLE_FD 9
#define ENTRIES_MAX 5000U

static struct {
	uint32_t entries;
	int batch_error; /* of the batch that begins at error_from */
	uint32_t error_from;
	uint32_t gone; /* key of an entry that goes while it is read; 0: none */
} hash;

static struct {
	uint32_t seen[ENTRIES_MAX];
	uint32_t told;
	int answer; /* to key 7 */
} reader;

int bpf_map_lookup_batch(int fd, void *in, void *out, void *keys, void *values, __u32 *count,
			 const struct bpf_map_batch_opts *options)
{
	uint32_t at = in ? *(uint32_t *)in : 0, room = *count;

	(void)options;
	assert_int_equal(fd, TABLE_FD);
	*count = 0;
	if (hash.batch_error && at == hash.error_from)
		return hash.batch_error;
	for (; *count < room && at < hash.entries; at++, ++*count) {
		((uint64_t *)keys)[*count] = at;
		((uint32_t *)values)[*count] = 3 * at;
	}
	*(uint32_t *)out = at;
	return at < hash.entries ? 0 : -ENOENT;
}

int bpf_map_get_next_key(int fd, const void *key, void *next)
{
	const uint64_t at = key ? *(const uint64_t *)key + 1 : 0;

	assert_int_equal(fd, TABLE_FD);
	if (at >= hash.entries)
		return -ENOENT;
	*(uint64_t *)next = at;
	return 0;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	const uint64_t at = *(const uint64_t *)key;

	assert_int_equal(fd, TABLE_FD);
	if (at && at == hash.gone)
		return -ENOENT;
	*(uint32_t *)value = (uint32_t)(3 * at);
	return 0;
}

static int on_entry(void *context, const void *key, const void *value)
{
	const uint64_t at = *(const uint64_t *)key;

	assert_ptr_equal(context, &reader);
	assert_true(at < ENTRIES_MAX);
	assert_int_equal(*(const uint32_t *)value, 3 * at);
	reader.seen[at]++;
	reader.told++;
	return at == 7 ? reader.answer : 0;
}

static int read_all(uint32_t entries)
{
	memset(&reader, 0, sizeof(reader));
	hash.entries = entries;
	return table_read(TABLE_FD, sizeof(uint64_t), sizeof(uint32_t), on_entry, &reader);
}

static void table_read__tells_each_entry_once(void **state)
{
	static const uint32_t entries[] = {0, 1, 1023, 1024, 1025, ENTRIES_MAX};

	(void)state;
	memset(&hash, 0, sizeof(hash));
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		assert_int_equal(read_all(entries[i]), 0);
		assert_int_equal(reader.told, entries[i]);
		for (uint32_t k = 0; k < entries[i]; k++)
			assert_int_equal(reader.seen[k], 1);
	}
}

/* A kernel without batches, or a bucket that is larger than one, also behind others. */
static void table_read__goes_one_by_one_where_batches_fail(void **state)
{
	(void)state;
	memset(&hash, 0, sizeof(hash));
	hash.batch_error = -ENOSPC;
	assert_int_equal(read_all(ENTRIES_MAX), 0);
	assert_int_equal(reader.told, ENTRIES_MAX);
	hash.error_from = 2048;
	assert_int_equal(read_all(ENTRIES_MAX), 0);
	for (uint32_t k = 0; k < ENTRIES_MAX; k++)
		assert_true(reader.seen[k] >= 1);
}

static void table_read__entry_that_goes_meanwhile_is_left_out(void **state)
{
	(void)state;
	memset(&hash, 0, sizeof(hash));
	hash.batch_error = -EINVAL;
	hash.gone = 5;
	assert_int_equal(read_all(10), 0);
	assert_int_equal(reader.told, 9);
	assert_int_equal(reader.seen[5], 0);
}

static void table_read__error_of_an_entry_ends_it(void **state)
{
	(void)state;
	memset(&hash, 0, sizeof(hash));
	for (int singly = 0; singly < 2; singly++) {
		hash.batch_error = singly ? -EINVAL : 0;
		memset(&reader, 0, sizeof(reader));
		reader.answer = -ENOMEM;
		hash.entries = 100;
		assert_int_equal(table_read(TABLE_FD, sizeof(uint64_t), sizeof(uint32_t), on_entry,
					    &reader),
				 -ENOMEM);
		assert_int_equal(reader.told, 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_read__tells_each_entry_once),
		cmocka_unit_test(table_read__goes_one_by_one_where_batches_fail),
		cmocka_unit_test(table_read__entry_that_goes_meanwhile_is_left_out),
		cmocka_unit_test(table_read__error_of_an_entry_ends_it),
	};

	return cmocka_run_group_tests_name("drain/table_read", tests, NULL, NULL);
}
