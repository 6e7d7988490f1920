/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps of CUDA's object alone. */
#ifndef BPF_LIB_CUDA_MAPS_H
#define BPF_LIB_CUDA_MAPS_H

#include "lib/maps.bpf.h"

#include <pyprofd/cuda.h>
#include <pyprofd/probe.h>

/* By the cookie of the link that was hit (agent). */
struct cuda_sites_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PP_SITES_MAX);
	__type(key, __u32);
	__type(value, struct pp_site);
};
struct cuda_sites_map cuda_sites SEC(".maps");

/* As site_now of lib/probe_maps.bpf.h. */
struct cuda_site_now_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
};
struct cuda_site_now_map cuda_site_now SEC(".maps");

/* By id.  The agent removes those of ended processes. */
struct cuda_totals_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PP_CUDA_TOTALS_MAX);
	__type(key, __u64);
	__type(value, struct pp_cuda_totals);
};
struct cuda_totals_map cuda_totals SEC(".maps");

/* What all processes share: one value. */
struct cuda_machine {
	__u64 walks_until_ns; /* lib/cuda_walks.bpf.h: walk_take() */
	__u64 blocks_until_ns; /* the same of walks of allocations */
	__u32 changes; /* of what struct cuda_process says behind `generation` */
	__u32 pad;
};
struct cuda_machine_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cuda_machine);
};
struct cuda_machine_map cuda_machine SEC(".maps");

/* By enum pp_cuda_events. */
struct cuda_events_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PP_CUDA_EVENTS);
	__type(key, __u32);
	__type(value, __u32);
};
struct cuda_events_map cuda_events SEC(".maps");

/* How many rows cuda_totals has: one value, which the agent writes when it has removed some. */
struct cuda_rows_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
};
struct cuda_rows_map cuda_rows SEC(".maps");

/* How many rows of a process that goes on the agent has removed. */
struct cuda_removed_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct pp_process_id);
	__type(value, __u64);
};
struct cuda_removed_map cuda_removed SEC(".maps");

/* By tgid. */
struct cuda_process {
	__u64 walks_until_ns;
	__u64 blocks_until_ns; /* the same of walks of allocations: lib/cuda_memory.bpf.h */
	__u64 totals;	  /* rows that it has had made */
	__u32 generation; /* whose all but the first is */
	__u32 captures;	  /* that have begun and not ended */
	__u32 life;	  /* struct pp_cuda_what */
	__u32 user;	  /* who answers for it */
};
struct cuda_processes_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct cuda_process);
};
struct cuda_processes_map cuda_processes SEC(".maps");

/* By pid and tgid: what is looked up once for many calls. */
struct cuda_thread {
	struct pp_cuda_hits hits; /* first: the agent reads them */
	__u32 changes; /* struct pp_config: process_changes, at that moment */
	__u32 generation;
	__u32 is_wanted;
	__u32 device;	/* struct pp_cuda_what */
	__u64 contexts; /* devices of contexts below the current one: a byte each, the next first */
	__u32 seen;	/* struct cuda_machine: changes, when the next two were looked up */
	__u32 captures; /* whether its process has any */
	__u32 life;
	__u32 user;
	__u32 fence; /* cuda_launch_enter() */
	__u32 pad;
	__u64 capture; /* its own, with which calls on other streams may go; 0: none */
	/* Its context, and the one that was there before a push: struct cuda_streams. */
	__u64 context, below;
	/* The stream that it has marked last, and in which round: lib/cuda_streams.bpf.h. */
	__u64 stream, round;
	/* At its last launch; 0: that has returned.  lib/cuda_launchers.bpf.h. */
	__u64 sp;
	__u64 task;	   /* address */
	__u64 began_ns;	   /* the task's start_time: a later thread may get the id */
	__u32 launcher;	   /* 1 + index among those of its process; 0: none */
	__u32 was_unknown; /* it has queued or waited before it chose a context */
};
struct cuda_threads_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PP_CUDA_THREADS_MAX);
	__type(key, __u64);
	__type(value, struct cuda_thread);
};
struct cuda_threads_map cuda_threads SEC(".maps");

/* Of launches, by enum pp_cuda_hit. */
struct cuda_gates_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PP_CUDA_LAUNCHES);
	__type(key, __u32);
	__type(value, struct pp_gate);
};
struct cuda_gates_map cuda_gates SEC(".maps");

/* Of each process: the round that its last synchronisation has begun (pyprofd/gpu.h).  Processes
 * with one hash share it, which costs them look-ups. */
#define CUDA_ROUNDS 256U
struct cuda_rounds_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CUDA_ROUNDS);
	__type(key, __u32);
	__type(value, __u64);
};
struct cuda_rounds_map cuda_rounds SEC(".maps");

/* The streams of a process that had work.  Values of `handle` and `context` that are none: see
 * lib/cuda_streams.bpf.h. */
#define CUDA_STREAMS 32U
#define CUDA_LAUNCHERS 16U
struct cuda_stream {
	__u64 handle;	      /* 0: the row is free */
	__u64 context;	      /* whose kernels it has run */
	__u64 marked, synced; /* rounds: all that was queued before `synced` has ended */
};
struct cuda_streams {
	__u32 is_whole;	  /* the process' calls have been seen from the first one on */
	__u32 is_divided; /* several contexts were seen */
	__u32 has_more;	  /* threads that launch and are not listed here */
	__u32 pad;
	__u64 context; /* the only one that was seen; 0: none */
	struct cuda_stream stream[CUDA_STREAMS];
	__u32 launcher[CUDA_LAUNCHERS]; /* tid; 0: free */
};
struct cuda_streams_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PP_GPU_PROCESSES_MAX);
	__type(key, struct pp_process_id);
	__type(value, struct cuda_streams);
};
struct cuda_streams_map cuda_streams SEC(".maps");

/* A new one of these, which is too large for the stack. */
struct cuda_no_streams_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cuda_streams);
};
struct cuda_no_streams_map cuda_no_streams SEC(".maps");

/* Rows of cuda_streams that are being taken, those of launchers behind those of streams: only one
 * CPU can insert the entry. */
struct cuda_claim {
	__u32 tgid, row;
};
struct cuda_claims_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct cuda_claim);
	__type(value, __u32);
};
struct cuda_claims_map cuda_claims SEC(".maps");

/* tgid -> generation of processes that began when their library had all its probes (agent). */
struct cuda_wholes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4 * PP_GPU_PROCESSES_MAX);
	__type(key, __u32);
	__type(value, __u32);
};
struct cuda_wholes_map cuda_wholes SEC(".maps");

/* A call under way, whose end is a site.  Threads may end in it: the oldest go.  Of memory `what`
 * and `more` are those of lib/cuda_memory.bpf.h: cuda_block_begin(). */
struct cuda_call_key {
	__u64 thread; /* pid and tgid */
	__u64 sp;     /* at its first instruction */
};
struct cuda_call {
	__u64 began_ns;
	__u64 id;		 /* of its totals; of a handle: where it will be stored */
	__u64 stands_for;	 /* calls, of which it had its stack taken; 0: it had not */
	__u64 what;		 /* of a handle: its name, another handle, a device */
	__u64 more;		 /* a name's module, a capture's mode, a node's kind */
	struct pp_count_key row; /* of its stack */
};
struct cuda_calls_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PP_CUDA_CALLS_MAX);
	__type(key, struct cuda_call_key);
	__type(value, struct cuda_call);
};
struct cuda_calls_map cuda_calls SEC(".maps");

/* By handle. */
struct cuda_names_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PP_CUDA_NAMES_MAX);
	__type(key, struct pp_cuda_handle);
	__type(value, struct pp_cuda_name);
};
struct cuda_names_map cuda_names SEC(".maps");

/* Devices of the driver's contexts, as struct pp_cuda_what has them. */
struct cuda_contexts_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PP_CUDA_CONTEXTS_MAX);
	__type(key, struct pp_cuda_handle);
	__type(value, __u32);
};
struct cuda_contexts_map cuda_contexts SEC(".maps");

/* What is known of graphs, of captures of streams, and of which of these a stream or an event is
 * part (lib/cuda_graphs.bpf.h). */
struct cuda_object_key {
	struct pp_process_id id;
	__u64 handle;
	__u32 kind; /* enum pp_cuda_object */
	__u32 pad;
};
struct cuda_object {
	__u64 capture; /* of a stream or an event: its number; of a capture: the stream's handle */
	__u64 bytes;
	__u32 kernels;
	__u32 is_partial; /* it may have more than that */
	__u32 life;	  /* of a module: the process's since it was unloaded */
	__u32 adds;	  /* of a capture: to a graph that was there before */
};
struct cuda_objects_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PP_CUDA_OBJECTS_MAX);
	__type(key, struct cuda_object_key);
	__type(value, struct cuda_object);
};
struct cuda_objects_map cuda_objects SEC(".maps");

/* The device's memory that is allocated. */
struct cuda_blocks_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PP_CUDA_BLOCKS_MAX);
	__type(key, struct pp_cuda_block_key);
	__type(value, struct pp_cuda_block);
};
struct cuda_blocks_map cuda_blocks SEC(".maps");

struct cuda_block_counts_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PP_CUDA_BLOCK_COUNTS);
	__type(key, __u32);
	__type(value, __u64);
};
struct cuda_block_counts_map cuda_block_counts SEC(".maps");

/* When contexts ended (include/pyprofd/cuda.h).  The agent removes what it has read. */
struct cuda_ended_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PP_CUDA_ENDED_MAX);
	__type(key, struct pp_cuda_handle);
	__type(value, __u64);
};
struct cuda_ended_map cuda_ended SEC(".maps");

#endif
