/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps of exact lines alone. */
#ifndef BPF_LIB_LINE_MAPS_H
#define BPF_LIB_LINE_MAPS_H

#include "lib/maps.bpf.h"

#include <pyprofd/lines.h>

struct line_target_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pp_line_target);
};
struct line_target_map line_target SEC(".maps");

/* By the process and the addresses of names: whether lines of the function count. */
struct line_functions_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PP_LINE_FUNCTIONS_MAX);
	__type(key, __u64);
	__type(value, __u32);
};
struct line_functions_map line_functions SEC(".maps");

struct line_rows_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PP_LINE_ROWS_MAX);
	__type(key, __u64);
	__type(value, struct pp_line_row);
};
struct line_rows_map line_rows SEC(".maps");

struct line_threads_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PP_LINE_THREADS_MAX);
	__type(key, __u32);
	__type(value, struct pp_line_thread);
};
struct line_threads_map line_threads SEC(".maps");

struct line_runs_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PP_LINE_THREADS_MAX);
	__type(key, struct pp_line_run_key);
	__type(value, struct pp_line_run);
};
struct line_runs_map line_runs SEC(".maps");

struct line_costs_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pp_line_costs);
};
struct line_costs_map line_costs SEC(".maps");

struct line_sums_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pp_line_sums);
};
struct line_sums_map line_sums SEC(".maps");

#endif
