/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps of the object of exact calls alone. */
#ifndef BPF_LIB_CALL_MAPS_H
#define BPF_LIB_CALL_MAPS_H

#include "lib/maps.bpf.h"

#include <pyprofd/calls.h>
#include <pyprofd/probe.h>

/* By twice the cookie of the link that was hit, and enum pp_call_event (agent). */
struct call_sites_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * PP_CALL_SITES_MAX);
	__type(key, __u32);
	__type(value, struct pp_call_site);
};
struct call_sites_map call_sites SEC(".maps");

struct call_nodes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PP_CALL_NODES_MAX);
	__type(key, __u64);
	__type(value, struct pp_call_node);
};
struct call_nodes_map call_nodes SEC(".maps");

struct call_threads_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PP_CALL_THREADS_MAX);
	__type(key, __u32);
	__type(value, struct pp_call_thread);
};
struct call_threads_map call_threads SEC(".maps");

struct call_costs_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pp_call_costs);
};
struct call_costs_map call_costs SEC(".maps");

struct call_sums_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pp_call_sums);
};
struct call_sums_map call_sums SEC(".maps");

#endif
