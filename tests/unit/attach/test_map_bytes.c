/* SPDX-License-Identifier: BSD-2-Clause */
/* libbpf's maps are stand-ins. */
#include "attach/map_sizes.h"

#include <bpf/libbpf.h>
#include <cmocka.h>
#include <stdbool.h>

#define OWN_BYTES 12288U /* what each map takes beside its entries, at most */

struct bpf_map {
	enum bpf_map_type type;
	uint32_t entries, key_bytes, value_bytes;
	bool is_absent;
	uint32_t flags;
};

uint32_t bpf_map__max_entries(const struct bpf_map *map)
{
	return map->entries;
}

uint32_t bpf_map__key_size(const struct bpf_map *map)
{
	return map->key_bytes;
}

uint32_t bpf_map__value_size(const struct bpf_map *map)
{
	return map->value_bytes;
}

enum bpf_map_type bpf_map__type(const struct bpf_map *map)
{
	return map->type;
}

uint32_t bpf_map__map_flags(const struct bpf_map *map)
{
	return map->flags;
}

bool bpf_map__autocreate(const struct bpf_map *map)
{
	return !map->is_absent;
}

static void map_bytes__of_arrays_and_rings_are_their_entries(void **state)
{
	const struct bpf_map array = {BPF_MAP_TYPE_ARRAY, 100, 4, 24, false, 0};
	const struct bpf_map odd = {BPF_MAP_TYPE_ARRAY, 100, 4, 17, false, 0};
	const struct bpf_map ring = {BPF_MAP_TYPE_RINGBUF, 1 << 20, 0, 0, false, 0};

	(void)state;
	assert_int_equal(map_bytes(&array, 8), OWN_BYTES + 2400);
	assert_int_equal(map_bytes(&odd, 8), OWN_BYTES + 2400); /* whole words */
	assert_int_equal(map_bytes(&ring, 8), OWN_BYTES + (1 << 20));
}

static void map_bytes__of_a_per_cpu_array_are_a_part_for_each_cpu_and_its_pointer(void **state)
{
	const struct bpf_map map = {BPF_MAP_TYPE_PERCPU_ARRAY, 10, 4, 12, false, 0};

	(void)state;
	assert_int_equal(map_bytes(&map, 1), OWN_BYTES + 10 * (8 + 16));
	assert_int_equal(map_bytes(&map, 8), OWN_BYTES + 10 * (8 + 8 * 16));
}

/* struct htab_elem is 48 bytes, struct bucket 16; there are as many buckets as elements, rounded up
 * to a power of two. */
static void map_bytes__of_a_hash_are_elements_spare_ones_and_buckets(void **state)
{
	struct bpf_map map = {BPF_MAP_TYPE_HASH, 1000, 4, 20, false, 0};

	(void)state;
	assert_int_equal(map_bytes(&map, 8), OWN_BYTES + (1000 + 8) * (48 + 8 + 24) + 1024 * 16);
	map.entries = 1024;
	assert_int_equal(map_bytes(&map, 8), OWN_BYTES + (1024 + 8) * (48 + 8 + 24) + 1024 * 16);
	map.entries = 1025;
	assert_int_equal(map_bytes(&map, 8), OWN_BYTES + (1025 + 8) * (48 + 8 + 24) + 2048 * 16);
	map.type = BPF_MAP_TYPE_LRU_HASH; /* has none to spare */
	assert_int_equal(map_bytes(&map, 8), OWN_BYTES + 1025 * (48 + 8 + 24) + 2048 * 16);
	map.entries = 1;
	assert_int_equal(map_bytes(&map, 8), OWN_BYTES + (48 + 8 + 24) + 16);
}

static void map_bytes__of_a_hash_whose_elements_come_later_are_its_buckets(void **state)
{
	const struct bpf_map map = {BPF_MAP_TYPE_HASH, 1000, 4, 20, false, BPF_F_NO_PREALLOC};

	(void)state;
	assert_int_equal(map_bytes(&map, 8), OWN_BYTES + 1024 * 16);
}

static void map_bytes__of_a_map_that_is_not_made_are_none(void **state)
{
	const struct bpf_map map = {BPF_MAP_TYPE_ARRAY, 100, 4, 24, true, 0};

	(void)state;
	assert_int_equal(map_bytes(&map, 8), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map_bytes__of_arrays_and_rings_are_their_entries),
		cmocka_unit_test(
			map_bytes__of_a_per_cpu_array_are_a_part_for_each_cpu_and_its_pointer),
		cmocka_unit_test(map_bytes__of_a_hash_are_elements_spare_ones_and_buckets),
		cmocka_unit_test(map_bytes__of_a_hash_whose_elements_come_later_are_its_buckets),
		cmocka_unit_test(map_bytes__of_a_map_that_is_not_made_are_none),
	};

	return cmocka_run_group_tests_name("attach/map_bytes", tests, NULL, NULL);
}
