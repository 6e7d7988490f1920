/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/mapping_set.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/user_quota.h"

static struct mapping file_mapping(uint64_t start, uint64_t end, uint64_t offset, uint64_t inode,
				   uint64_t time_ns)
{
	return (struct mapping){.start = start,
				.end = end,
				.offset = offset,
				.time_ns = time_ns,
				.key = {.major = 8, .inode = inode},
				.path = "/f"};
}

static struct mapping anonymous(uint64_t start, uint64_t end, uint64_t time_ns)
{
	return (struct mapping){.start = start, .end = end, .time_ns = time_ns, .path = ""};
}

static int put(struct process *process, struct mapping mapping)
{
	return mapping_set_put(process, &mapping);
}

static void expect_range(const struct process *process, size_t at, uint64_t start, uint64_t end,
			 uint64_t offset, uint64_t inode)
{
	assert_true(at < process->mapping_count);
	assert_int_equal(process->mapping[at].start, start);
	assert_int_equal(process->mapping[at].end, end);
	assert_int_equal(process->mapping[at].offset, offset);
	assert_int_equal(process->mapping[at].key.inode, inode);
}

static void mapping_set_put__splits_what_it_lands_in(void **state)
{
	struct process process = {0};

	(void)state;
	assert_int_equal(put(&process, file_mapping(0x1000, 0x9000, 0x500000, 1, 1)), 0);
	process.mapping[0].file = 77;
	assert_int_equal(put(&process, file_mapping(0x3000, 0x5000, 0, 2, 2)), 0);
	assert_int_equal(process.mapping_count, 3);
	expect_range(&process, 0, 0x1000, 0x3000, 0x500000, 1);
	expect_range(&process, 1, 0x3000, 0x5000, 0, 2);
	expect_range(&process, 2, 0x5000, 0x9000, 0x504000, 1);
	assert_int_equal(process.mapping[2].file, 77);
	mapping_set_release(&process);
}

static void mapping_set_put__trims_both_neighbours_and_replaces_between(void **state)
{
	struct process process = {0};

	(void)state;
	put(&process, file_mapping(0x1000, 0x3000, 0, 1, 1));
	put(&process, file_mapping(0x3000, 0x4000, 0, 2, 1));
	put(&process, file_mapping(0x5000, 0x8000, 0x1000, 3, 1));
	assert_int_equal(put(&process, file_mapping(0x2000, 0x6000, 0, 4, 2)), 0);
	assert_int_equal(process.mapping_count, 3);
	expect_range(&process, 0, 0x1000, 0x2000, 0, 1);
	expect_range(&process, 1, 0x2000, 0x6000, 0, 4);
	expect_range(&process, 2, 0x6000, 0x8000, 0x2000, 3);
	mapping_set_release(&process);
}

static void mapping_set_put__adjacent_files_stay_apart_and_anonymous_merge(void **state)
{
	struct process process = {0};

	(void)state;
	put(&process, file_mapping(0x1000, 0x2000, 0, 1, 1));
	put(&process, file_mapping(0x2000, 0x3000, 0x1000, 1, 1));
	assert_int_equal(process.mapping_count, 2);
	put(&process, anonymous(0x3000, 0x4000, 1));
	put(&process, anonymous(0x5000, 0x6000, 1));
	assert_int_equal(process.mapping_count, 4);
	put(&process, anonymous(0x4000, 0x5000, 2));
	assert_int_equal(process.mapping_count, 3);
	assert_int_equal(process.mapping[2].start, 0x3000);
	assert_int_equal(process.mapping[2].end, 0x6000);
	mapping_set_release(&process);
}

static void mapping_set_put__what_is_there_changes_only_its_time(void **state)
{
	struct process process = {0};

	(void)state;
	put(&process, file_mapping(0x1000, 0x9000, 0x1000, 1, 5));
	put(&process, anonymous(0x10000, 0x20000, 5));
	process.mappings_changed = false;
	assert_int_equal(put(&process, file_mapping(0x2000, 0x3000, 0x2000, 1, 9)), 0);
	assert_int_equal(put(&process, anonymous(0x11000, 0x12000, 9)), 0);
	assert_false(process.mappings_changed);
	assert_int_equal(process.mapping_count, 2);
	assert_int_equal(process.mapping[0].time_ns, 9);
	/* The same file at another offset is something else. */
	assert_int_equal(put(&process, file_mapping(0x2000, 0x3000, 0x5000, 1, 9)), 0);
	assert_true(process.mappings_changed);
	assert_int_equal(process.mapping_count, 4);
	mapping_set_release(&process);
}

static void mapping_set_put__an_older_record_goes_around_newer_ones(void **state)
{
	struct process process = {0};

	(void)state;
	put(&process, file_mapping(0x2000, 0x3000, 0, 2, 20));
	put(&process, file_mapping(0x5000, 0x6000, 0, 3, 20));
	assert_int_equal(put(&process, file_mapping(0x1000, 0x7000, 0x10000, 1, 10)), 0);
	assert_int_equal(process.mapping_count, 5);
	expect_range(&process, 0, 0x1000, 0x2000, 0x10000, 1);
	expect_range(&process, 1, 0x2000, 0x3000, 0, 2);
	expect_range(&process, 2, 0x3000, 0x5000, 0x12000, 1);
	expect_range(&process, 3, 0x5000, 0x6000, 0, 3);
	expect_range(&process, 4, 0x6000, 0x7000, 0x15000, 1);
	mapping_set_release(&process);
}

static void mapping_set_put__empty_range_is_einval_and_full_is_enospc(void **state)
{
	struct process process = {0};

	(void)state;
	assert_int_equal(put(&process, file_mapping(0x1000, 0x1000, 0, 1, 1)), -EINVAL);
	assert_int_equal(put(&process, file_mapping(0x2000, 0x1000, 0, 1, 1)), -EINVAL);
	for (uint64_t i = 1; i <= MAPPING_SET_MAX; i++)
		assert_int_equal(
			put(&process, file_mapping(i * 0x2000, i * 0x2000 + 0x1000, 0, i, 1)), 0);
	assert_int_equal(put(&process, file_mapping(0x100000000, 0x100001000, 0, 1, 1)), -ENOSPC);
	assert_int_equal(process.mapping_count, MAPPING_SET_MAX);
	/* In the place of another it still fits. */
	assert_int_equal(put(&process, file_mapping(0x2000, 0x3000, 0, 99999, 2)), 0);
	mapping_set_release(&process);
}

static void mapping_set_put__ends_of_the_address_space(void **state)
{
	struct process process = {0};

	(void)state;
	assert_int_equal(put(&process, anonymous(0, 0x1000, 1)), 0);
	assert_int_equal(put(&process, anonymous(UINT64_MAX - 0xfff, UINT64_MAX, 1)), 0);
	assert_int_equal(put(&process, file_mapping(0, UINT64_MAX, 0, 1, 2)), 0);
	assert_int_equal(process.mapping_count, 1);
	mapping_set_release(&process);
}

static void mapping_set_drop_older__read_ones_count_as_of_the_reading(void **state)
{
	struct process process = {0};

	(void)state;
	put(&process, file_mapping(0x1000, 0x2000, 0, 1, 5));
	put(&process, file_mapping(0x2000, 0x3000, 0, 2, 0));
	put(&process, file_mapping(0x3000, 0x4000, 0, 3, 15));
	process.mappings_changed = false;
	assert_int_equal(mapping_set_drop_older(&process, 4, 12), 0);
	assert_false(process.mappings_changed);
	assert_int_equal(mapping_set_drop_older(&process, 10, 12), 0);
	assert_true(process.mappings_changed);
	assert_int_equal(process.mapping_count, 2);
	assert_int_equal(mapping_set_drop_older(&process, 13, 12), 0);
	assert_int_equal(process.mapping_count, 1);
	expect_range(&process, 0, 0x3000, 0x4000, 0, 3);
	assert_int_equal(mapping_set_drop_older(&process, 100, 12), 0);
	assert_int_equal(process.mapping_count, 0);
	mapping_set_release(&process);
}

static void mapping_set_share__a_change_of_one_does_not_show_in_the_other(void **state)
{
	struct process parent = {0}, child = {0}, grandchild = {0};

	(void)state;
	put(&parent, file_mapping(0x1000, 0x2000, 0, 1, 5));
	put(&parent, file_mapping(0x3000, 0x4000, 0, 2, 6));
	assert_int_equal(mapping_set_share(&child, &parent, 6), 0);
	assert_int_equal(mapping_set_share(&grandchild, &child, 6), 0);
	assert_ptr_equal(child.mapping, parent.mapping);
	assert_true(child.mappings_changed);

	put(&child, file_mapping(0x1000, 0x1800, 0, 9, 7));
	assert_int_equal(child.mapping_count, 3);
	assert_int_equal(parent.mapping_count, 2);
	expect_range(&parent, 0, 0x1000, 0x2000, 0, 1);
	assert_int_equal(mapping_set_drop_older(&grandchild, 6, 0), 0);
	assert_int_equal(grandchild.mapping_count, 1);
	assert_int_equal(parent.mapping_count, 2);
	mapping_set_release(&parent);
	expect_range(&grandchild, 0, 0x3000, 0x4000, 0, 2);
	mapping_set_release(&child);
	mapping_set_release(&grandchild);
}

static void mapping_set_share__leaves_out_what_is_newer_than_the_fork(void **state)
{
	struct process parent = {0}, child = {0}, none = {0};

	(void)state;
	put(&parent, file_mapping(0x1000, 0x2000, 0, 1, 5));
	put(&parent, file_mapping(0x3000, 0x4000, 0, 2, 6));
	assert_int_equal(mapping_set_share(&child, &parent, 5), 0);
	assert_int_equal(child.mapping_count, 1);
	assert_int_equal(mapping_set_share(&none, &parent, 4), 0);
	assert_int_equal(none.mapping_count, 0);
	mapping_set_release(&parent);
	mapping_set_release(&child);
}

#define PAGES 64U

/* Against an array of pages that says for each who mapped it last. */
static void mapping_set_put__agrees_with_a_model_by_pages(void **state)
{
	uint64_t owner[PAGES], offset[PAGES];
	unsigned seed = 12345;

	(void)state;
	for (unsigned round = 0; round < 300; round++) {
		struct process process = {0};

		memset(owner, 0, sizeof(owner));
		for (uint64_t step = 1; step <= 40; step++) {
			uint64_t first = (unsigned)rand_r(&seed) % PAGES;
			uint64_t last = first + (unsigned)rand_r(&seed) % (PAGES - first);
			uint64_t file = 1 + (unsigned)rand_r(&seed) % 3;

			assert_int_equal(put(&process, file_mapping(first << 12, (last + 1) << 12,
								    0, file, step)),
					 0);
			for (uint64_t page = first; page <= last; page++) {
				owner[page] = file;
				offset[page] = (page - first) << 12;
			}
		}
		for (size_t i = 0; i + 1 < process.mapping_count; i++)
			assert_true(process.mapping[i].end <= process.mapping[i + 1].start);
		for (size_t i = 0; i < process.mapping_count; i++) {
			const struct mapping *mapping = &process.mapping[i];

			for (uint64_t at = mapping->start; at < mapping->end; at += 4096) {
				assert_int_equal(owner[at >> 12], mapping->key.inode);
				assert_int_equal(offset[at >> 12],
						 mapping->offset + at - mapping->start);
				owner[at >> 12] = 0;
			}
		}
		for (size_t page = 0; page < PAGES; page++)
			assert_int_equal(owner[page], 0);
		mapping_set_release(&process);
	}
}

/* The same records in any order give the same set. */
static void mapping_set_put__order_of_arrival_does_not_matter(void **state)
{
	unsigned seed = 99;

	(void)state;
	for (unsigned round = 0; round < 300; round++) {
		struct mapping record[12];
		struct process in_order = {0}, shuffled = {0};

		for (uint64_t i = 0; i < 12; i++) {
			uint64_t first = (unsigned)rand_r(&seed) % 32;

			record[i] = file_mapping(first << 12,
						 (first + 1 + (unsigned)rand_r(&seed) % 8) << 12,
						 i << 20, 1000 + i, i + 1);
			assert_int_equal(mapping_set_put(&in_order, &record[i]), 0);
		}
		for (unsigned i = 12; i > 0; i--) {
			unsigned pick = (unsigned)rand_r(&seed) % i;
			struct mapping taken = record[pick];

			record[pick] = record[i - 1];
			assert_int_equal(mapping_set_put(&shuffled, &taken), 0);
		}
		for (uint64_t page = 0; page < 40; page++) {
			uint64_t inode[2] = {0, 0};
			const struct process *set[2] = {&in_order, &shuffled};

			for (size_t s = 0; s < 2; s++)
				for (size_t i = 0; i < set[s]->mapping_count; i++)
					if (set[s]->mapping[i].start <= page << 12 &&
					    page << 12 < set[s]->mapping[i].end)
						inode[s] = set[s]->mapping[i].key.inode;
			assert_int_equal(inode[0], inode[1]);
		}
		mapping_set_release(&in_order);
		mapping_set_release(&shuffled);
	}
}

static void mapping_set_trim__leaves_the_mappings_and_what_others_share(void **state)
{
	struct process parent = {0}, child = {0};

	(void)state;
	mapping_set_trim(&parent);
	assert_null(parent.mapping);
	assert_int_equal(put(&parent, file_mapping(0x1000, 0x2000, 0, 1, 1)), 0);
	assert_int_equal(put(&parent, file_mapping(0x3000, 0x4000, 0, 2, 1)), 0);
	assert_int_equal(mapping_set_share(&child, &parent, 6), 0);
	mapping_set_trim(&parent);
	assert_true(parent.mapping_capacity > 2);
	assert_int_equal(put(&child, file_mapping(0x5000, 0x6000, 0, 3, 2)), 0);
	mapping_set_trim(&parent);
	assert_int_equal(parent.mapping_capacity, 2);
	expect_range(&parent, 0, 0x1000, 0x2000, 0, 1);
	expect_range(&parent, 1, 0x3000, 0x4000, 0, 2);
	/* A record that comes late still finds room. */
	assert_int_equal(put(&parent, file_mapping(0x7000, 0x8000, 0, 4, 3)), 0);
	expect_range(&parent, 2, 0x7000, 0x8000, 0, 4);
	expect_range(&child, 2, 0x5000, 0x6000, 0, 3);
	mapping_set_release(&parent);
	mapping_set_release(&child);
}

/* A user of many processes has as many bytes as are left to others; forks share what they have. */
static void mapping_set_put__is_of_its_users_room(void **state)
{
	struct user_quota room = {.total = 8192};
	struct process one = {.mapping_room = &room, .user = 1000, .is_user_known = true};
	struct process two = one, other = one, roots = one;
	uint64_t own;
	size_t i;

	(void)state;
	other.user = 1001;
	roots.user = 0;
	for (i = 0; !put(&one, file_mapping(i * 0x2000, i * 0x2000 + 0x1000, 0, 1, 1)); i++)
		assert_in_range(i, 0, 1000);
	assert_int_equal(one.mapping_count, i);
	assert_in_range(i, 16, 8192 / 2 / sizeof(struct mapping));
	own = room.used;
	assert_in_range(own, i * sizeof(struct mapping), 4096);
	assert_int_equal(put(&one, file_mapping(0x900000, 0x901000, 0, 1, 1)), -ENOSPC);
	assert_int_equal(one.mapping_count, i);
	/* A fork costs nothing, until it has some of its own. */
	assert_int_equal(mapping_set_share(&two, &one, 9), 0);
	assert_int_equal(room.used, own);
	assert_int_equal(put(&two, file_mapping(0x900000, 0x901000, 0, 1, 1)), -ENOSPC);
	assert_int_equal(two.mapping_count, i);
	/* Nothing of the program before is taken for the new one's. */
	two.mapping[0].time_ns = 5;
	assert_int_equal(mapping_set_drop_older(&two, 4, 1), 0);
	assert_int_equal(two.mapping_count, 1);
	mapping_set_release(&two);
	assert_int_equal(room.used, own);
	assert_int_equal(put(&other, file_mapping(0x1000, 0x2000, 0, 1, 1)), 0);
	assert_int_equal(put(&roots, file_mapping(0x1000, 0x2000, 0, 1, 1)), 0);
	mapping_set_release(&one);
	mapping_set_release(&other);
	mapping_set_trim(&roots);
	assert_in_range(room.used, 1, 512);
	mapping_set_release(&roots);
	assert_int_equal(room.used, 0);
	assert_int_equal(room.refused, 3);
	user_quota_release(&room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mapping_set_put__splits_what_it_lands_in),
		cmocka_unit_test(mapping_set_put__trims_both_neighbours_and_replaces_between),
		cmocka_unit_test(mapping_set_put__adjacent_files_stay_apart_and_anonymous_merge),
		cmocka_unit_test(mapping_set_put__what_is_there_changes_only_its_time),
		cmocka_unit_test(mapping_set_put__an_older_record_goes_around_newer_ones),
		cmocka_unit_test(mapping_set_put__empty_range_is_einval_and_full_is_enospc),
		cmocka_unit_test(mapping_set_put__ends_of_the_address_space),
		cmocka_unit_test(mapping_set_drop_older__read_ones_count_as_of_the_reading),
		cmocka_unit_test(mapping_set_share__a_change_of_one_does_not_show_in_the_other),
		cmocka_unit_test(mapping_set_share__leaves_out_what_is_newer_than_the_fork),
		cmocka_unit_test(mapping_set_trim__leaves_the_mappings_and_what_others_share),
		cmocka_unit_test(mapping_set_put__is_of_its_users_room),
		cmocka_unit_test(mapping_set_put__agrees_with_a_model_by_pages),
		cmocka_unit_test(mapping_set_put__order_of_arrival_does_not_matter),
	};

	return cmocka_run_group_tests_name("discover/mapping_set", tests, NULL, NULL);
}
