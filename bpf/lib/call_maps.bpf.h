/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps of exact calls, in the object of exact calls and lines alone; calls.bpf.c defines them
 * (and alone sets PP_CALL_MAP). */
#ifndef BPF_LIB_CALL_MAPS_H
#define BPF_LIB_CALL_MAPS_H

#include "lib/maps.bpf.h"

#include <pyprofd/calls.h>

#ifndef PP_CALL_MAP
#define PP_CALL_MAP extern
#endif

/* By PP_CALL_EVENTS times the cookie of the link that was hit, and enum pp_call_event (agent). */
struct call_sites_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PP_CALL_EVENTS * PP_CALL_SITES_MAX);
	__type(key, __u32);
	__type(value, struct pp_call_site);
};
PP_CALL_MAP struct call_sites_map call_sites SEC(".maps");

struct call_nodes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PP_CALL_NODES_MAX);
	__type(key, __u64);
	__type(value, struct pp_call_node);
};
PP_CALL_MAP struct call_nodes_map call_nodes SEC(".maps");

struct call_threads_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PP_CALL_THREADS_MAX);
	__type(key, __u32);
	__type(value, struct pp_call_thread);
};
PP_CALL_MAP struct call_threads_map call_threads SEC(".maps");

struct call_costs_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pp_call_costs);
};
PP_CALL_MAP struct call_costs_map call_costs SEC(".maps");

struct call_sums_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pp_call_sums);
};
PP_CALL_MAP struct call_sums_map call_sums SEC(".maps");

#endif
