/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/counts.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>

#include <cmocka.h>
#include <pyprofd/wait.h>

#include "base/cleanup.h"

static void counts_add__keeps_all_in_order_across_growth(void **state)
{
	struct counts counts = {};

	(void)state;
	for (uint32_t i = 0; i < 3000; i++) {
		const struct pp_count_key key = {.user_stack = i, .tid = i % 7};
		const struct pp_count count = {.samples = i + 1, .weight = 10ULL * i};

		assert_int_equal(counts_add(&counts, &key, &count), 0);
	}
	assert_int_equal(counts.count, 3000);
	for (uint32_t i = 0; i < 3000; i++) {
		assert_int_equal(counts.entry[i].key.user_stack, i);
		assert_int_equal(counts.entry[i].key.tid, i % 7);
		assert_int_equal(counts.entry[i].count.samples, i + 1);
		assert_int_equal(counts.entry[i].count.weight, 10ULL * i);
	}
	counts_release(&counts);
	assert_int_equal(counts.count, 0);
	counts_release(&counts); /* twice is fine */
}

static void counts_add__equal_keys_are_one_entry(void **state)
{
	CLEANUP(counts_release) struct counts counts = {};

	(void)state;
	for (uint32_t i = 0; i < 9000; i++) {
		const struct pp_count_key key = {
			.user_stack = i % 1000, .kind = i / 1000 % 3, .detail = i % 2};

		assert_int_equal(counts_add(&counts, &key,
					    &(struct pp_count){.samples = 1, .weight = i}),
				 0);
	}
	assert_int_equal(counts.count, 3000);
	assert_int_equal(counts.entry[5].count.samples, 3);
	assert_int_equal(counts.entry[5].count.weight, 5 + 3005 + 6005);
	assert_int_equal(counts.bounded, 0);
}

/* Sums stay; a process' keys beyond the bound are one, and at last all processes'. */
static void counts_add__beyond_the_bound_is_counted_by_process(void **state)
{
	CLEANUP(counts_release) struct counts counts = {};
	uint64_t samples = 0, coarse = 0, rest = 0;
	const uint32_t all = 3 * COUNTS_MAX;

	(void)state;
	for (uint32_t i = 0; i < all; i++) {
		const struct pp_count_key key = {.user_stack = 2 * i + 1,
						 .id = {i, 1},
						 .kind = PP_KIND_WAIT,
						 .flags = PP_COUNT_PYTHON};

		assert_int_equal(counts_add(&counts, &key,
					    &(struct pp_count){.samples = 1, .weight = 7}),
				 0);
	}
	for (size_t i = 0; i < counts.count; i++) {
		const struct counted *entry = &counts.entry[i];

		samples += entry->count.samples;
		assert_int_equal(entry->count.weight, 7 * entry->count.samples);
		assert_int_equal(entry->key.kind, PP_KIND_WAIT);
		coarse += entry->key.user_stack == PP_STACK_OTHERS && entry->key.id.tgid;
		rest += !entry->key.id.tgid && entry->key.user_stack == PP_STACK_OTHERS;
	}
	assert_int_equal(samples, all);
	assert_int_equal(counts.count, COUNTS_MAX + COUNTS_MAX / 2 + 1);
	assert_int_equal(coarse, COUNTS_MAX / 2);
	assert_int_equal(rest, 1);
	assert_int_equal(counts.bounded, all - COUNTS_MAX);
}

static void counts_drain_rest__takes_the_rows_of_one_number(void **state)
{
	static struct pp_count rest[2 * PP_REST_ROWS];
	CLEANUP(counts_release) struct counts counts = {};
	const uint32_t flags = PP_WAIT_GIL << PP_COUNT_WAIT_SHIFT | PP_COUNT_GIL_HELD;
	const uint32_t even = pp_rest_index(PP_KIND_BLAME, flags, 6);
	const uint32_t odd = pp_rest_index(PP_KIND_BLAME, flags, 7);

	(void)state;
	rest[even] = (struct pp_count){.samples = 2, .weight = 20};
	rest[odd] = (struct pp_count){.samples = 3, .weight = 30};
	assert_int_equal(counts_drain_rest(rest, 6, &counts), 0);
	assert_int_equal(counts.count, 1);
	assert_int_equal(counts.entry[0].count.weight, 20);
	assert_int_equal(counts.entry[0].key.kind, PP_KIND_BLAME);
	assert_int_equal(counts.entry[0].key.flags, flags);
	assert_int_equal(counts.entry[0].key.user_stack, PP_STACK_OTHERS);
	assert_int_equal(rest[even].weight, 0);
	assert_int_equal(rest[odd].weight, 30);
	assert_int_equal(counts_drain_rest(rest, 7, &counts), 0);
	assert_int_equal(counts.count, 1);
	assert_int_equal(counts.entry[0].count.samples, 5);
}

static void counts_drain__bad_descriptor_is_an_error(void **state)
{
	struct counts counts = {};

	(void)state;
	assert_int_equal(counts_drain(-1, &counts), -EBADF);
	assert_int_equal(counts.count, 0);
	counts_release(&counts);
}

/* More than two batches, so that the cursor is handed on. */
static void counts_drain__takes_all_and_leaves_the_table_empty(void **state)
{
	enum { ENTRIES = 2500 };
	OWNED_FD int fd = bpf_map_create(BPF_MAP_TYPE_HASH, "counts", sizeof(struct pp_count_key),
					 sizeof(struct pp_count), 4096, NULL);
	struct pp_count_key key = {.id = {.tgid = 70}};
	struct counts counts = {};
	uint64_t samples = 0, tids = 0;

	(void)state;
	if (fd < 0) {
		printf("skipped: cannot create a BPF map (not root)\n");
		skip();
	}
	for (uint32_t i = 0; i < ENTRIES; i++) {
		const struct pp_count count = {.samples = 3, .weight = i};

		key.tid = i;
		assert_int_equal(bpf_map_update_elem(fd, &key, &count, BPF_ANY), 0);
	}
	/* What the agent counted itself stays in front. */
	key.tid = 100000;
	assert_int_equal(counts_add(&counts, &key, &(struct pp_count){.samples = 1}), 0);
	assert_int_equal(counts_drain(fd, &counts), 0);
	assert_int_equal(counts.count, ENTRIES + 1);
	assert_int_equal(counts.entry[0].key.tid, 100000);
	for (size_t i = 1; i < counts.count; i++) {
		assert_int_equal(counts.entry[i].key.tid, counts.entry[i].count.weight);
		samples += counts.entry[i].count.samples;
		tids += counts.entry[i].key.tid;
	}
	assert_int_equal(samples, 3 * ENTRIES);
	assert_int_equal(tids, ENTRIES * (ENTRIES - 1) / 2);
	assert_int_equal(bpf_map_get_next_key(fd, NULL, &key), -ENOENT);
	counts_release(&counts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_add__keeps_all_in_order_across_growth),
		cmocka_unit_test(counts_add__equal_keys_are_one_entry),
		cmocka_unit_test(counts_add__beyond_the_bound_is_counted_by_process),
		cmocka_unit_test(counts_drain_rest__takes_the_rows_of_one_number),
		cmocka_unit_test(counts_drain__takes_all_and_leaves_the_table_empty),
		cmocka_unit_test(counts_drain__bad_descriptor_is_an_error),
	};

	return cmocka_run_group_tests_name("drain/counts", tests, NULL, NULL);
}
