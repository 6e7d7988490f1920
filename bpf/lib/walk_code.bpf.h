/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What lies at an address of the user's: a mapping, an unwind rule, code behind a call. */
#ifndef BPF_LIB_WALK_CODE_H
#define BPF_LIB_WALK_CODE_H

#include "lib/frames.bpf.h"

/* Finds the unwind rule of an address: map set -> page -> row -> rule.  Both searches are
 * branch-free in the verifier's eyes: the index starts from a value it cannot know, so each step
 * has one state. */

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

/* Returns whether the address lies in known code, behind a call.  *target: what that calls; 0: that
 * is not in the code.  Inlined: the verifier allows 8 calls inside each other. */
static __always_inline bool follows_call(struct pp_walk *w, __u32 slot, __u64 address,
					 __u64 *target)
{
	__u64 code = 0;

	if (walk_find_range(slot, address - 1) || w->range.file == PP_FILE_NONE ||
	    bpf_probe_read_user(&code, PP_CALL_BYTES, (const void *)(address - PP_CALL_BYTES)) ||
	    !pp_is_call(code))
		return false;
	*target = pp_call_target(code, address);
	return true;
}

/* Sets w->leaf for a leaf without unwind information. */
#if defined(__TARGET_ARCH_arm64)
static __always_inline int walk_leaf(__u32 slot)
{
	return 0;
}
#else
__noinline int walk_leaf(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	__u64 word = 0, begin[2] = {};
	__u32 code = 0;

	if (!w || bpf_probe_read_user(&code, PP_LEAF_BYTES, (const void *)w->pc))
		return 0;
	w->leaf = pp_leaf_by_code(code);
	for (__u32 i = 0; i < 2; i++) {
		__u64 at = i ? w->fp + 8 : w->sp + 8 * (w->leaf == PP_LEAF_PUSHED), target = 0;
		bool is_return = !bpf_probe_read_user(&word, 8, (const void *)at) &&
				 follows_call(w, slot, word, &target);

		if (!i && (!is_return || w->leaf != PP_LEAF_FRAMED)) {
			if (!is_return)
				w->leaf = PP_LEAF_FRAMED;
			return 0;
		}
		begin[i] = is_return ? pp_leaf_begin(target, w->pc) : 0;
	}
	if (begin[0] == begin[1])
		w->leaf = PP_LEAF_UNSURE;
	else if (begin[0] > begin[1])
		w->leaf = PP_LEAF_BARE;
	return 0;
}
#endif

#endif
