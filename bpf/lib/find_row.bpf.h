/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the unwind rule of an address: map set -> page -> row -> rule.  Both searches are
 * branch-free in the verifier's eyes: the index starts from a value it cannot know, so each step
 * has one state. */
#ifndef BPF_LIB_FIND_ROW_H
#define BPF_LIB_FIND_ROW_H

#include "lib/frames.bpf.h"

#define CHUNK_MASK (PP_MAP_CHUNK_RANGES - 1)
#define CHUNK_STEPS 6U /* log2(PP_MAX_MAP_CHUNKS) */

static __always_inline struct pp_map_chunk *find_chunk(const struct pp_walk *w, __u64 pc)
{
	__u32 low = w->context.map_set - 1, high = low + w->context.map_chunks - 1;
	struct pp_map_chunk *chunk;

	for (__u32 i = 0; i < CHUNK_STEPS; i++) {
		__u32 middle;

		if (low >= high)
			break;
		middle = (low + high + 1) / 2;
		chunk = bpf_map_lookup_elem(&map_sets, &middle);
		if (!chunk)
			return 0;
		if (chunk->start[0] <= pc)
			low = middle;
		else
			high = middle - 1;
	}
	return bpf_map_lookup_elem(&map_sets, &low);
}

/* Looks up the mapping of an address into w->range.  Returns nonzero when there is none. */
__noinline int walk_find_range(__u32 slot, __u64 pc)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_map_chunk *chunk = w ? find_chunk(w, pc) : NULL;
	__u64 at;

	if (!w || !chunk)
		return 1;
	at = w->zero & CHUNK_MASK;
#pragma unroll
	for (__u32 half = PP_MAP_CHUNK_RANGES / 2; half; half >>= 1) {
		__u64 probe = at + half;

		BARRIER(probe);
		probe &= CHUNK_MASK;
		if (chunk->start[probe] <= pc)
			at = probe;
	}
	BARRIER(at);
	w->range = chunk->range[at & CHUNK_MASK];
	return 0;
}

#define ROW_MASK (PP_ROW_SHARD_ROWS - 1)

/* Returns the rule that holds at an address of a file, or 0 when its page is not loaded. */
static __always_inline struct pp_rule *find_rule(const struct pp_range *range, __u64 address)
{
	__u32 page_index = range->page0 + (__u32)(address >> PP_PAGE_SHIFT);
	__u64 *page = bpf_map_lookup_elem(&pages, &page_index), entry;
	__u32 shard_index, base, count, at, low, rule;
	struct row_shard *shard;

	if (!page)
		return 0;
	entry = *page;
	if (!(PP_PAGE_FLAGS(entry) & PP_PAGE_LOADED))
		return 0;
	if (!(PP_PAGE_FLAGS(entry) & PP_PAGE_USED_MASK))
		__sync_fetch_and_add(page, (__u64)PP_PAGE_USED << 48);
	shard_index = PP_PAGE_ROW_START(entry) >> PP_ROW_SHARD_SHIFT;
	shard = bpf_map_lookup_elem(&rows, &shard_index);
	if (!shard)
		return 0;
	base = PP_PAGE_ROW_START(entry) & ROW_MASK;
	count = PP_PAGE_ROW_COUNT(entry);
	low = address & 0xffff;
	at = base;
#pragma unroll
	for (__u32 half = 32768; half; half >>= 1) {
		__u32 probe = at + half;

		BARRIER(probe);
		probe &= ROW_MASK;
		if (probe - base < count && PP_ROW_PC_LOW(shard->row[probe]) <= low)
			at = probe;
	}
	BARRIER(at);
	at &= ROW_MASK;
	rule = PP_ROW_RULE(shard->row[at]);
	return bpf_map_lookup_elem(&rules, &rule);
}

#endif
