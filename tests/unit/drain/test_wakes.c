/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits by waker, of a kernel table that is an array here. */
#include "drain/counts.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "drain/table.h"

static struct pp_wake_key keys[WAKES_MAX + 3];
static uint32_t key_count;

/* Instead of drain/table.c: each key's row has one wait of 1,000 ns. */
int table_drain(int map_fd, size_t key_bytes, table_on_entry *on_row, void *context)
{
	const struct pp_count count = {.samples = 1, .weight = 1000};

	assert_int_equal(map_fd, 7);
	assert_int_equal(key_bytes, sizeof(struct pp_wake_key));
	for (uint32_t i = 0; i < key_count; i++) {
		int err = on_row(context, &keys[i], &count);

		if (err)
			return err;
	}
	return 0;
}

static void wakes_drain__equal_keys_are_one_entry(void **state)
{
	struct wakes wakes = {0};
	struct counts counts = {0};

	(void)state;
	memset(keys, 0, sizeof(keys));
	keys[0].tid = keys[2].tid = 5;
	keys[1].tid = 6;
	key_count = 3;
	assert_int_equal(wakes_drain(7, &wakes, &counts), 0);
	assert_int_equal(wakes.count, 2);
	assert_int_equal(wakes.entry[0].key.tid, 5);
	assert_int_equal(wakes.entry[0].count.samples, 2);
	assert_int_equal(wakes.entry[0].count.weight, 2000);
	assert_int_equal(wakes.entry[1].count.samples, 1);
	assert_int_equal(counts.count, 0);
	/* once more: the next window */
	wakes_release(&wakes);
	assert_int_equal(wakes.count, 0);
	key_count = 1;
	assert_int_equal(wakes_drain(7, &wakes, &counts), 0);
	assert_int_equal(wakes.count, 1);
	assert_int_equal(wakes.entry[0].count.samples, 1);
	wakes_release(&wakes);
	counts_release(&counts);
}

/* Each field of a key tells waits apart. */
static void wakes_drain__keys_that_differ_in_one_field_are_two(void **state)
{
	static const size_t offsets[] = {
		offsetof(struct pp_wake_key, user_stack),
		offsetof(struct pp_wake_key, kernel_stack),
		offsetof(struct pp_wake_key, id.tgid),
		offsetof(struct pp_wake_key, id.generation),
		offsetof(struct pp_wake_key, tid),
		offsetof(struct pp_wake_key, flags),
		offsetof(struct pp_wake_key, waker.user_stack),
		offsetof(struct pp_wake_key, waker.kernel_stack),
		offsetof(struct pp_wake_key, waker.tid),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		struct wakes wakes = {0};
		struct counts counts = {0};

		memset(keys, 0, sizeof(keys));
		((uint8_t *)&keys[1])[offsets[i]] = 1;
		key_count = 2;
		assert_int_equal(wakes_drain(7, &wakes, &counts), 0);
		assert_int_equal(wakes.count, 2);
		wakes_release(&wakes);
		counts_release(&counts);
	}
}

/* Beyond the bound a wait loses its stacks, and is counted. */
static void wakes_drain__rows_beyond_the_bound_go_to_the_counts(void **state)
{
	struct wakes wakes = {0};
	struct counts counts = {0};

	(void)state;
	memset(keys, 0, sizeof(keys));
	for (uint32_t i = 0; i < WAKES_MAX + 3; i++) {
		keys[i].user_stack = i + 1;
		keys[i].id.tgid = 70;
	}
	keys[WAKES_MAX + 2] = keys[0]; /* one that has an entry */
	key_count = WAKES_MAX + 3;
	assert_int_equal(wakes_drain(7, &wakes, &counts), 0);
	assert_int_equal(wakes.count, WAKES_MAX);
	assert_int_equal(wakes.entry[0].count.samples, 2);
	assert_int_equal(wakes.entry[WAKES_MAX - 1].key.user_stack, WAKES_MAX);
	assert_int_equal(counts.bounded, 2);
	assert_int_equal(counts.count, 1);
	assert_int_equal(counts.entry[0].key.kind, PP_KIND_WAKE);
	assert_int_equal(counts.entry[0].key.id.tgid, 70);
	assert_int_equal(counts.entry[0].count.samples, 2);
	assert_int_equal(counts.entry[0].count.weight, 2000);
	wakes_release(&wakes);
	counts_release(&counts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wakes_drain__equal_keys_are_one_entry),
		cmocka_unit_test(wakes_drain__keys_that_differ_in_one_field_are_two),
		cmocka_unit_test(wakes_drain__rows_beyond_the_bound_go_to_the_counts),
	};

	return cmocka_run_group_tests_name("drain/wakes", tests, NULL, NULL);
}
