/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides how many entries the BPF maps have, by the machine's CPUs and by what is asked for. */
#ifndef ATTACH_MAP_SIZES_H
#define ATTACH_MAP_SIZES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number of windows after which the kernel side sends every stack once more, and unused ones
 * are dropped. */
#define EPOCH_WINDOWS 6U

struct map_sizes_options {
	uint32_t cpu_count;    /* possible CPUs: their numbers are below this */
	uint32_t online_count; /* tables are sized for these: a guest may have 8 of 240 online */
	uint32_t hz;	       /* samples per second and CPU */
	uint64_t interval_ns;  /* of a window */
	/* of all maps; 0: depends on the number of CPUs, 40 MiB for up to 4 */
	uint64_t budget_bytes;
	uint64_t later_bytes; /* for maps of objects that may be loaded later */
	bool waits;	      /* threads and waits are followed */
	bool events; /* others than samples are counted, whose rows are with those of waits */
};

/* Entries, unless they are bytes. */
struct map_sizes {
	uint32_t counts, waits, wakes, coarse; /* each of a pair of tables */
	uint32_t sent, codes;
	uint32_t stacks_bytes, timeline_bytes; /* of rings: powers of two */
	uint32_t processes;		       /* and contexts */
	uint32_t threads;		       /* a power of two; 1 without waits */
	uint32_t places;     /* of CPUs in `scratch`: those online, and some that may come */
	uint32_t map_chunks; /* of map_sets */
};
void map_sizes_compute(const struct map_sizes_options *options, struct map_sizes *ret_sizes);

/* Returns how many shards the rows of unwind information have: half of the budget, or what the
 * other maps leave of the default, within bounds.  others_bytes: of all maps but the rows. */
uint32_t map_sizes_row_shards(const struct map_sizes_options *options, uint64_t others_bytes);

/* place[CPU] is 1 + the CPU's place; 0: none.  CPUs keep their places; a CPU that came online gets
 * a free one, or that of a CPU that is offline.  Returns 0; -ENOSPC: not enough for all, earlier
 * CPUs keep theirs; -ENOMEM. */
int cpu_places_assign(volatile uint64_t *place, uint32_t cpu_count, uint32_t place_count,
		      const uint32_t *online, size_t online_count);

struct bpf_map;

/* Returns what the kernel will account for the map, or up to 12 KiB more; 0: the map will not be
 * created.  Entries that take memory only when they are made (BPF_F_NO_PREALLOC) are not in it.
 * `cpu_count`: possible CPUs, each of which has a part of a per-CPU map.
 * Sources: kernel/bpf/hashtab.c, arraymap.c and ringbuf.c (their map_mem_usage). */
uint64_t map_bytes(const struct bpf_map *map, uint32_t cpu_count);

#endif
