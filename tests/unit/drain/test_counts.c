/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: drain/counts.c */
#include "drain/counts.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>

#include <cmocka.h>

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
		cmocka_unit_test(counts_drain__takes_all_and_leaves_the_table_empty),
		cmocka_unit_test(counts_drain__bad_descriptor_is_an_error),
	};

	return cmocka_run_group_tests_name("drain/counts", tests, NULL, NULL);
}
