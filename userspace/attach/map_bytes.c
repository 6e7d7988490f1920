/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/map_bytes.h"

#include <bpf/libbpf.h>

#define MAP_OWN_BYTES 12288U   /* struct bpf_map and what belongs to it, and the rest of a page */
#define HASH_ELEMENT_BYTES 48U /* struct htab_elem */
#define HASH_BUCKET_BYTES 16U  /* struct bucket, without lock debugging */

static uint64_t round_up_8(uint64_t bytes)
{
	return (bytes + 7) & ~7ULL;
}

/* Returns the bytes of the buckets: as many as elements, rounded up to a power of two. */
static uint64_t buckets_bytes(uint32_t elements)
{
	uint64_t buckets = 1;

	while (buckets < elements)
		buckets <<= 1;
	return buckets * HASH_BUCKET_BYTES;
}

uint64_t map_bytes(const struct bpf_map *map, uint32_t cpu_count)
{
	uint64_t entries = bpf_map__max_entries(map), value = round_up_8(bpf_map__value_size(map));
	uint64_t element = HASH_ELEMENT_BYTES + round_up_8(bpf_map__key_size(map)) + value;

	if (!bpf_map__autocreate(map))
		return 0;
	switch (bpf_map__type(map)) {
	case BPF_MAP_TYPE_PERCPU_ARRAY:
		return MAP_OWN_BYTES + entries * (sizeof(void *) + value * cpu_count);
	case BPF_MAP_TYPE_HASH: /* each CPU has a spare element, with which it replaces another */
		if (bpf_map__map_flags(map) & BPF_F_NO_PREALLOC)
			return MAP_OWN_BYTES + buckets_bytes((uint32_t)entries);
		return MAP_OWN_BYTES + (entries + cpu_count) * element +
		       buckets_bytes((uint32_t)entries);
	case BPF_MAP_TYPE_LRU_HASH:
		return MAP_OWN_BYTES + entries * element + buckets_bytes((uint32_t)entries);
	case BPF_MAP_TYPE_RINGBUF:
		return MAP_OWN_BYTES + entries;
	default:
		return MAP_OWN_BYTES + entries * value;
	}
}
