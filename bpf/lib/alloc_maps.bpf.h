/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps of allocations.  They are in the probes' object alone. */
#ifndef BPF_LIB_ALLOC_MAPS_H
#define BPF_LIB_ALLOC_MAPS_H

#include "lib/maps.bpf.h"

#include <pyprofd/alloc.h>

/* One call of an allocator, as its first instruction shows it. */
struct alloc_call {
	__u64 thread; /* pid and tgid */
	__u64 pc, sp;
	__u64 back; /* where it returns to */
	__u64 size;
};

/* Programs of probes can be preempted, and another one of the CPU may write between two accesses:
 * then one call's bytes are not taken off, or an inner call counts as one of its own. */
struct alloc_cpu {
	__u64 left; /* bytes until the next one that is chosen */
	__u64 has_drawn;
	__u64 hits;
	struct alloc_call last;
};
struct alloc_cpus_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct alloc_cpu);
};
struct alloc_cpus_map alloc_cpus SEC(".maps");

/* A sampled call that has not returned.  Threads may end in it: the oldest go. */
struct allocating {
	struct pp_block block;
	__u64 sp;
	__u64 result_at; /* where the block's address will be stored; 0: it is returned */
	__u64 function;
};
struct allocatings_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64); /* pid and tgid */
	__type(value, struct allocating);
};
struct allocatings_map allocatings SEC(".maps");

/* Sampled blocks that are held (agent: size). */
struct blocks_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct pp_block_key);
	__type(value, struct pp_block);
};
struct blocks_map blocks SEC(".maps");

/* Bytes that were freed unseen, by stack. */
struct debts_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PP_DEBTS_MAX);
	__type(key, struct pp_debt_key);
	__type(value, __u64);
};
struct debts_map debts SEC(".maps");

/* Files with allocators in them, by their number in frames (agent). */
struct allocators_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, __u32);
};
struct allocators_map allocators SEC(".maps");

#endif
