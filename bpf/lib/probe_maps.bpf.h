/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps of the probes' object alone; probe.bpf.c defines them (and alone sets PP_PROBE_MAP). */
#ifndef BPF_LIB_PROBE_MAPS_H
#define BPF_LIB_PROBE_MAPS_H

#include "lib/maps.bpf.h"

#include <pyprofd/probe.h>

#ifndef PP_PROBE_MAP
#define PP_PROBE_MAP extern
#endif

/* By the cookie of the link that was hit (agent). */
struct sites_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PP_SITES_MAX);
	__type(key, __u32);
	__type(value, struct pp_site);
};
PP_PROBE_MAP struct sites_map sites SEC(".maps");

struct hits_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PP_PROBES_MAX);
	__type(key, __u32);
	__type(value, struct pp_hits);
};
PP_PROBE_MAP struct hits_map hits SEC(".maps");

/* Which hits are counted (agent). */
struct gates_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PP_PROBES_MAX);
	__type(key, __u32);
	__type(value, struct pp_gate);
};
PP_PROBE_MAP struct gates_map gates SEC(".maps");

/* Which site is hit, on kernels without cookies (before 5.15): one value a CPU, written by the stub
 * that jumps to on_probe (userspace/attach/probe_links.h). */
struct site_now_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
};
PP_PROBE_MAP struct site_now_map site_now SEC(".maps");

/* A call that is under way: its beginning was seen. */
struct call_key {
	__u64 thread; /* pid and tgid */
	__u64 place;  /* tells calls of one thread apart: probe.bpf.c */
};
struct call {
	__u64 began_ns;
	__u64 inner_ns;		 /* of calls inside that have ended, of the same probe */
	__u64 name;		 /* imports: address of the module's name */
	__u64 scale;		 /* struct pp_gate */
	__u64 user;		 /* who answers for the thread */
	struct pp_count_key key; /* under which its end is counted */
};
/* Threads may end in mid-call: the oldest go, and their ends count as unmatched. */
struct calls_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PP_PROBE_CALLS_MAX);
	__type(key, struct call_key);
	__type(value, struct call);
};
PP_PROBE_MAP struct calls_map calls SEC(".maps");

/* A struct call does not fit on BPF's stack beside its key.  One a slot of `scratch`, whose claim
 * covers it (agent: size). */
struct call_scratch_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PP_WALK_LEVELS);
	__type(key, __u32);
	__type(value, struct call);
};
PP_PROBE_MAP struct call_scratch_map call_scratch SEC(".maps");

#endif
