/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the mapping of an address of the current process while a page fault there is handled.  No
 * lock is taken: bpf_find_vma() (5.17) has to try for one, which a writer that waits makes fail. */
#ifndef BPF_LIB_FIND_MAPPING_H
#define BPF_LIB_FIND_MAPPING_H

#include "lib/maps.bpf.h"

/* A reference to a node has its type in bits 3 to 6; nodes begin at multiples of 256.  That to the
 * root has bit 1 set, without which the root is an entry (include/linux/maple_tree.h,
 * lib/maple_tree.c: mte_to_node, mte_node_type, mte_mk_root). */
#define MAPLE_NODE_MASK 255ULL
#define MAPLE_ROOT_NODE 2U
#define MAPLE_TYPE(reference) ((__u32)(reference) >> 3 & 15)
#define MAPLE_ARANGE 3U /* the others have MAPLE_PIVOTS */
#define MAPLE_LEAVES 2U /* types below have entries instead of nodes */
#define MAPLE_DEPTH 12U /* of a tree of ten branches a node, with more mappings than there can be */
#define MAPLE_PIVOTS 15U /* of the widest node */
#define MAPLE_ARANGE_PIVOTS 9U

/* Returns the entry of a node under which the address is.  `pivot` has room for MAPLE_PIVOTS. */
static __always_inline __u64 maple_step(__u64 reference, __u64 address, __u64 *pivot)
{
	const bool is_arange = MAPLE_TYPE(reference) == MAPLE_ARANGE;
	const struct maple_range_64 *range = (void *)(reference & ~MAPLE_NODE_MASK);
	const struct maple_arange_64 *arange = (void *)(reference & ~MAPLE_NODE_MASK);
	const __u32 count = is_arange ? MAPLE_ARANGE_PIVOTS : MAPLE_PIVOTS;
	const void *slots = is_arange ? (const void *)arange->slot : (const void *)range->slot;
	__u64 entry = 0;
	__u32 at;

	if (bpf_probe_read_kernel(pivot, MAPLE_PIVOTS * 8,
				  is_arange ? (const void *)arange->pivot : range->pivot))
		return 0;
	/* A pivot is the last address of its slot; 0 behind the first: no more of them are used. */
	for (at = 0; at < MAPLE_PIVOTS; at++)
		if (at >= count || address <= pivot[at] || (at && !pivot[at]))
			break;
	bpf_probe_read_kernel(&entry, sizeof(entry), slots + at * 8);
	return entry;
}

/* Returns the mapping of the current process that the maple tree has for an address; 0: none.
 * Not inlined, and with external linkage: its loops are verified once, not on each path to them. */
__noinline __u64 find_in_tree(__u32 slot, __u64 address)
{
	struct task_struct *task = task_current();
	struct pp_walk *w = walk_get(slot);
	__u64 entry;

	/* What has external linkage is verified where nobody calls it, too. */
	if (!w || !bpf_core_field_exists(task->mm->mm_mt))
		return 0;
	entry = (__u64)BPF_CORE_READ(task, mm, mm_mt.ma_root);
	if (!(entry & MAPLE_ROOT_NODE))
		return entry; /* of all addresses, or none */
	for (__u32 i = 0; i < MAPLE_DEPTH && entry; i++) {
		const bool is_leaf = MAPLE_TYPE(entry) < MAPLE_LEAVES;

		entry = maple_step(entry, address, w->saved);
		if (is_leaf)
			return entry;
	}
	return 0;
}

static __always_inline bool mapping_covers(const struct vm_area_struct *mapping, __u64 address)
{
	return mapping && address >= BPF_CORE_READ(mapping, vm_start) &&
	       address < BPF_CORE_READ(mapping, vm_end);
}

/* The kernel has just looked up the address for this fault. */
static __always_inline const struct vm_area_struct *find_in_cache(struct task_struct *task,
								  __u64 address)
{
	struct task_struct___6_0 *old = (void *)task;

#pragma unroll
	for (int i = 0; i < 4; i++) {
		const struct vm_area_struct *mapping = BPF_CORE_READ(old, vmacache.vmas[i]);

		if (mapping_covers(mapping, address))
			return mapping;
	}
	return NULL;
}

/* Returns the mapping, NULL if none was found.  Overwrites the `saved` of the walk in the slot. */
static __always_inline const struct vm_area_struct *find_mapping(struct task_struct *task,
								 __u64 address, __u32 slot)
{
	const struct vm_area_struct *mapping;
	struct task_struct___6_0 *old = (void *)task;

	if (bpf_core_field_exists(old->vmacache))
		return find_in_cache(task, address);
	mapping = (const void *)find_in_tree(slot, address);
	return mapping_covers(mapping, address) ? mapping : NULL;
}

#endif
