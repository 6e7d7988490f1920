/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/map_sizes.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/limits.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* Assigns per-CPU memory ("places") to online CPUs when there is less of it than possible CPUs. */

/* Returns 1 + a free place, 0: none.  owner: 1 + CPU, by place. */
static uint64_t find_free(volatile uint64_t *place, uint32_t place_count, const bool *is_online,
			  const uint64_t *owner)
{
	uint64_t left = 0;

	for (uint32_t i = 0; i < place_count; i++) {
		if (!owner[i])
			return i + 1;
		if (!left && !is_online[owner[i] - 1])
			left = i + 1;
	}
	if (left)
		place[owner[left - 1] - 1] = 0;
	return left;
}

int cpu_places_assign(volatile uint64_t *place, uint32_t cpu_count, uint32_t place_count,
		      const uint32_t *online, size_t online_count)
{
	OWNED_MEM bool *is_online = calloc(cpu_count, sizeof(*is_online));
	OWNED_MEM uint64_t *owner = calloc(place_count, sizeof(*owner));

	if (!is_online || !owner)
		return -ENOMEM;
	for (size_t i = 0; i < online_count; i++)
		if (online[i] < cpu_count)
			is_online[online[i]] = true;
	for (uint32_t cpu = 0; cpu < cpu_count; cpu++)
		if (place[cpu])
			owner[place[cpu] - 1] = cpu + 1;
	for (uint32_t cpu = 0; cpu < cpu_count; cpu++) {
		uint64_t found;

		if (!is_online[cpu] || place[cpu])
			continue;
		found = find_free(place, place_count, is_online, owner);
		if (!found)
			return -ENOSPC;
		owner[found - 1] = cpu + 1;
		place[cpu] = found;
	}
	return 0;
}

/* Computes how much memory a BPF map will take, before it is created. */

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

#define PROCESSES_PER_CPU 1024U
#define PROCESSES_MIN 8192U
#define PROCESSES_MAX (1U << 17)
#define COUNTS_MIN 4096U
#define COUNTS_MAX_ROWS (1U << 19)
#define WAITS_PER_CPU 4096U
#define WAITS_MIN 8192U
#define WAITS_MAX (1U << 18)
#define WAKES_MIN 8192U
#define COARSE_PER_CPU 512U
#define COARSE_MIN 1024U
#define COARSE_MAX (1U << 14)
#define SENT_PER_CPU_MIN 4096U
#define SENT_PER_CPU_MAX 16384U
#define SENT_MIN 16384U
#define SENT_MAX (1U << 20)
#define CODES_PER_CPU 4096U
#define CODES_MIN 16384U
#define CODES_MAX (1U << 18)
#define RING_BYTES_PER_CPU (512U << 10)
#define RING_BYTES_MIN (1U << 20)
#define RING_BYTES_MAX (16U << 20)
#define TIMELINE_BYTES_PER_CPU (1U << 20)
#define TIMELINE_BYTES_MIN (4U << 20)
#define TIMELINE_BYTES_MAX (32U << 20)
#define MAP_CHUNKS_MIN 2048U
#define MAP_CHUNKS_PER_CPU 1024U /* beyond SMALL_CPUS */
#define MAP_CHUNKS_MAX (1U << 17)
#define ROW_SHARDS_MIN 2U
#define ROW_SHARDS_DEFAULT_MIN 4U
#define ROW_SHARDS_DEFAULT 12U
#define ROW_SHARDS_PER_CPU 2U
#define SHARD_BYTES ((uint64_t)PP_ROW_SHARD_ROWS * sizeof(uint32_t))
#define THREADS_PER_CPU 4096U
#define THREADS_MIN 16384U
#define THREADS_MAX 131072U
/* CPUs that may come online later and are then sampled.  A walk's memory (0.23 MiB a CPU) is too
 * large for all CPUs that a hypervisor might ever add, and BPF arrays do not grow. */
#define SPARE_CPUS_MIN 4U
/* All maps together: the rows take what the others leave. */
#define SMALL_CPUS 4U
#define SMALL_BYTES (40ULL << 20)
#define BYTES_PER_CPU (10ULL << 20) /* beyond SMALL_CPUS */

static uint32_t next_pow2(uint64_t value)
{
	uint32_t power = 1;

	while (power < value && power < 1U << 31)
		power <<= 1;
	return power;
}

static uint32_t clamp(uint64_t value, uint32_t low, uint32_t high)
{
	return value < low ? low : value > high ? high : (uint32_t)value;
}

/* Returns a power of two between two others. */
static uint32_t clamp_pow2(uint64_t value, uint32_t low, uint32_t high)
{
	return next_pow2(clamp(value, low, high));
}

/* Returns the CPUs above SMALL_CPUS. */
static uint64_t more_cpus(const struct map_sizes_options *options)
{
	return options->online_count > SMALL_CPUS ? options->online_count - SMALL_CPUS : 0;
}

/* Each sample makes at most one row, and half a window of samples fits.  The number of waits is not
 * bounded: when an open table is half full the agent closes it, and the other half has room for
 * what comes before that. */
static void size_tables(const struct map_sizes_options *options, uint64_t samples,
			struct map_sizes *sizes)
{
	const uint64_t cpus = options->online_count;
	const uint32_t waits = clamp_pow2(cpus * WAITS_PER_CPU, WAITS_MIN, WAITS_MAX);

	sizes->counts = clamp_pow2(samples / 2, COUNTS_MIN, COUNTS_MAX_ROWS);
	sizes->waits = options->waits || options->events ? waits : 1;
	sizes->wakes = clamp(waits / 2, WAKES_MIN, WAITS_MAX);
	sizes->coarse = clamp_pow2(cpus * COARSE_PER_CPU, COARSE_MIN, COARSE_MAX);
}

static void size_stacks(const struct map_sizes_options *options, uint64_t samples,
			struct map_sizes *sizes)
{
	const uint64_t cpus = options->online_count;
	const uint32_t sent_min = clamp(cpus * SENT_PER_CPU_MIN, SENT_MIN, SENT_MAX);
	const uint32_t sent_max = clamp(cpus * SENT_PER_CPU_MAX, SENT_MIN, SENT_MAX);

	sizes->sent = clamp(samples * EPOCH_WINDOWS, sent_min, sent_max);
	sizes->codes = clamp(cpus * CODES_PER_CPU, CODES_MIN, CODES_MAX);
	sizes->stacks_bytes = clamp_pow2(cpus * RING_BYTES_PER_CPU, RING_BYTES_MIN, RING_BYTES_MAX);
	sizes->timeline_bytes =
		clamp_pow2(cpus * TIMELINE_BYTES_PER_CPU, TIMELINE_BYTES_MIN, TIMELINE_BYTES_MAX);
}

static uint32_t places(const struct map_sizes_options *options)
{
	const uint64_t spare = clamp(options->online_count / 4, SPARE_CPUS_MIN, UINT32_MAX);

	return clamp(options->online_count + spare, 1, options->cpu_count);
}

void map_sizes_compute(const struct map_sizes_options *options, struct map_sizes *ret_sizes)
{
	const uint64_t cpus = options->online_count;
	const uint64_t samples = options->hz * cpus * options->interval_ns / NS_PER_SEC;

	*ret_sizes = (struct map_sizes){
		.processes = clamp_pow2(cpus * PROCESSES_PER_CPU, PROCESSES_MIN, PROCESSES_MAX),
		.threads = 1,
		.places = places(options),
		.map_chunks = clamp(MAP_CHUNKS_MIN + more_cpus(options) * MAP_CHUNKS_PER_CPU,
				    MAP_CHUNKS_MIN, MAP_CHUNKS_MAX)};
	if (options->waits)
		ret_sizes->threads = clamp_pow2(cpus * THREADS_PER_CPU, THREADS_MIN, THREADS_MAX);
	size_tables(options, samples, ret_sizes);
	size_stacks(options, samples, ret_sizes);
}

uint32_t map_sizes_row_shards(const struct map_sizes_options *options, uint64_t others_bytes)
{
	const uint32_t cpus = options->online_count;
	const uint64_t bytes = SMALL_BYTES + more_cpus(options) * BYTES_PER_CPU;
	const uint64_t most = ROW_SHARDS_DEFAULT + (cpus > 2 ? (cpus - 2) * ROW_SHARDS_PER_CPU : 0);

	if (options->budget_bytes)
		return clamp(options->budget_bytes / 2 / SHARD_BYTES, ROW_SHARDS_MIN,
			     PP_MAX_ROW_SHARDS);
	return clamp(bytes > others_bytes ? (bytes - others_bytes) / SHARD_BYTES : 0,
		     ROW_SHARDS_DEFAULT_MIN, clamp(most, ROW_SHARDS_MIN, PP_MAX_ROW_SHARDS));
}
