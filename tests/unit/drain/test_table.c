/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's hash is a stand-in, which gives its rows from the last one on. */
#include "drain/table.h"

#include <bpf/bpf.h>
#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define TABLE_FD 9
#define ROWS_MAX 5000U

/* Row i has key i and i + 1 samples. */
static struct {
	uint32_t rows;	 /* what is left */
	int batch_error; /* of the batch with that many rows left, instead of rows */
	uint32_t error_from;
	int lookup_error, delete_error;
	unsigned int batches;
	uint32_t last_out;
} hash;

static struct {
	bool seen[ROWS_MAX];
	uint32_t rows;
	int answer; /* to the row of key 0 */
} told;

static void put_row(uint64_t *key, struct pp_count *count)
{
	*key = hash.rows - 1;
	*count = (struct pp_count){.samples = hash.rows};
}

int bpf_map_lookup_and_delete_batch(int fd, void *in, void *out, void *keys, void *values,
				    __u32 *count, const struct bpf_map_batch_opts *options)
{
	const uint32_t room = *count;

	(void)options;
	assert_int_equal(fd, TABLE_FD);
	assert_true(room > 0 && room <= 1024);
	/* The first begins, each later one goes on where the last one stopped. */
	if (hash.batches++)
		assert_int_equal(*(uint32_t *)in, hash.last_out);
	else
		assert_null(in);
	*count = 0;
	if (hash.batch_error && hash.rows <= hash.error_from)
		return hash.batch_error;
	for (; *count < room && hash.rows; hash.rows--, ++*count)
		put_row((uint64_t *)keys + *count, (struct pp_count *)values + *count);
	*(uint32_t *)out = hash.last_out = 1000 + hash.batches;
	return hash.rows ? 0 : -ENOENT;
}

int bpf_map_get_next_key(int fd, const void *key, void *next)
{
	struct pp_count count;

	assert_int_equal(fd, TABLE_FD);
	assert_null(key); /* the one before is deleted */
	if (!hash.rows)
		return -ENOENT;
	put_row(next, &count);
	return 0;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	uint64_t expected;

	assert_int_equal(fd, TABLE_FD);
	put_row(&expected, value);
	assert_int_equal(*(const uint64_t *)key, expected);
	return hash.lookup_error;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	assert_int_equal(fd, TABLE_FD);
	assert_int_equal(*(const uint64_t *)key, hash.rows - 1);
	if (hash.delete_error)
		return hash.delete_error;
	hash.rows--;
	return 0;
}

static int on_row(void *context, const void *key, const void *value)
{
	const struct pp_count *count = value;
	const uint64_t number = *(const uint64_t *)key;

	assert_ptr_equal(context, &told);
	assert_true(number < ROWS_MAX && !told.seen[number]);
	assert_int_equal(count->samples, number + 1);
	told.seen[number] = true;
	told.rows++;
	return number ? 0 : told.answer;
}

static int setup(void **state)
{
	(void)state;
	memset(&hash, 0, sizeof(hash));
	memset(&told, 0, sizeof(told));
	hash.rows = ROWS_MAX;
	return 0;
}

static int drain(void)
{
	return table_drain(TABLE_FD, sizeof(uint64_t), on_row, &told);
}

static void drain__tells_each_row_once(void **state)
{
	static const uint32_t rows[] = {0, 1, 1023, 1024, 1025, ROWS_MAX};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setup(state);
		hash.rows = rows[i];
		assert_int_equal(drain(), 0);
		assert_int_equal(told.rows, rows[i]);
		assert_int_equal(hash.rows, 0);
	}
}

/* A bucket that is larger than a batch, also behind others; a kernel without batches. */
static void drain__goes_row_by_row_where_batches_fail(void **state)
{
	static const int error[] = {-ENOSPC, -EINVAL, -EOPNOTSUPP};

	for (size_t i = 0; i < sizeof(error) / sizeof(error[0]); i++) {
		setup(state);
		hash.batch_error = error[i];
		hash.error_from = i ? ROWS_MAX : ROWS_MAX / 2;
		assert_int_equal(drain(), 0);
		assert_int_equal(told.rows, ROWS_MAX);
		assert_int_equal(hash.batches, i ? 1 : 4);
	}
}

static void drain__error_of_a_row_ends_it(void **state)
{
	(void)state;
	told.answer = -ENOMEM;
	assert_int_equal(drain(), -ENOMEM);
	setup(state);
	told.answer = -ENOMEM;
	hash.batch_error = -ENOSPC;
	hash.error_from = ROWS_MAX;
	assert_int_equal(drain(), -ENOMEM);
}

/* A row is told when it is out of the table, so that none counts twice. */
static void drain__row_that_stays_is_not_told(void **state)
{
	(void)state;
	hash.batch_error = -ENOSPC;
	hash.error_from = ROWS_MAX;
	hash.delete_error = -EBUSY;
	assert_int_equal(drain(), -EBUSY);
	assert_int_equal(told.rows, 0);
	hash.batches = 0;
	hash.delete_error = 0;
	hash.lookup_error = -EIO;
	assert_int_equal(drain(), -EIO);
	assert_int_equal(told.rows, 0);
	assert_int_equal(hash.rows, ROWS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(drain__tells_each_row_once, setup),
		cmocka_unit_test_setup(drain__goes_row_by_row_where_batches_fail, setup),
		cmocka_unit_test_setup(drain__error_of_a_row_ends_it, setup),
		cmocka_unit_test_setup(drain__row_that_stays_is_not_told, setup),
	};

	return cmocka_run_group_tests_name("drain/table", tests, NULL, NULL);
}
