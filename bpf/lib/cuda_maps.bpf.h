/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps of CUDA's object alone. */
#ifndef BPF_LIB_CUDA_MAPS_H
#define BPF_LIB_CUDA_MAPS_H

#include "lib/maps.bpf.h"

#include <pyprofd/cuda.h>
#include <pyprofd/probe.h>

/* By the cookie of the link that was hit (agent). */
MAP(cuda_sites, ARRAY, PP_SITES_MAX, __u32, struct pp_site);

/* As site_now of lib/probe.bpf.h. */
MAP(cuda_site_now, PERCPU_ARRAY, 1, __u32, __u32);

/* By id.  The agent removes those of ended processes. */
MAP(cuda_totals, HASH, PP_CUDA_TOTALS_MAX, __u64, struct pp_cuda_totals);

/* What all processes share: one value. */
struct cuda_machine {
	__u64 walks_until_ns;  /* lib/cuda_walks.bpf.h: walk_take() */
	__u64 blocks_until_ns; /* the same of walks of allocations */
	__u32 changes;	       /* of what struct cuda_process says behind `generation` */
	__u32 pad;
};
MAP(cuda_machine, ARRAY, 1, __u32, struct cuda_machine);

/* How many rows cuda_totals has: one value, which the agent writes when it has removed some. */
MAP(cuda_rows, ARRAY, 1, __u32, __u64);

/* How many rows of a process that goes on the agent has removed. */
MAP(cuda_removed, HASH, 1024, struct pp_process_id, __u64);

/* By tgid. */
struct cuda_process {
	__u64 walks_until_ns;
	__u64 blocks_until_ns; /* the same of walks of allocations: lib/cuda_memory.bpf.h */
	__u64 totals;	       /* rows that it has had made */
	__u32 generation;      /* whose all but the first is */
	__u32 captures;	       /* that have begun and not ended */
	__u32 life;	       /* struct pp_cuda_what */
	__u32 user;	       /* who answers for it */
};
MAP(cuda_processes, LRU_HASH, 1024, __u32, struct cuda_process);

/* By pid and tgid: what is looked up once for many calls. */
struct cuda_thread {
	struct pp_cuda_hits hits; /* first: the agent reads them */
	__u32 changes;		  /* struct pp_config: process_changes, at that moment */
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
	__u64 timed_ns; /* since when its hit is timed; 0: it is not */
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
MAP(cuda_threads, LRU_HASH, PP_CUDA_THREADS_MAX, __u64, struct cuda_thread);

/* Of launches, by enum pp_cuda_hit. */
MAP(cuda_gates, ARRAY, PP_CUDA_LAUNCHES, __u32, struct pp_gate);

/* Of each process: the round that its last synchronisation has begun (pyprofd/cuda.h).  Processes
 * with one hash share it, which costs them look-ups. */
#define CUDA_ROUNDS 256U
MAP(cuda_rounds, ARRAY, CUDA_ROUNDS, __u32, __u64);

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
MAP(cuda_streams, HASH, PP_GPU_PROCESSES_MAX, struct pp_process_id, struct cuda_streams);

/* A new one of these, which is too large for the stack. */
MAP(cuda_no_streams, ARRAY, 1, __u32, struct cuda_streams);

/* Rows of cuda_streams that are being taken, those of launchers behind those of streams: only one
 * CPU can insert the entry. */
struct cuda_claim {
	__u32 tgid, row;
};
MAP(cuda_claims, HASH, 256, struct cuda_claim, __u32);

/* tgid -> generation of processes that began when their library had all its probes (agent). */
MAP(cuda_wholes, HASH, 4 * PP_GPU_PROCESSES_MAX, __u32, __u32);

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
MAP(cuda_calls, LRU_HASH, PP_CUDA_CALLS_MAX, struct cuda_call_key, struct cuda_call);

/* By handle. */
MAP(cuda_names, LRU_HASH, PP_CUDA_NAMES_MAX, struct pp_cuda_handle, struct pp_cuda_name);

/* Devices of the driver's contexts, as struct pp_cuda_what has them. */
MAP(cuda_contexts, LRU_HASH, PP_CUDA_CONTEXTS_MAX, struct pp_cuda_handle, __u32);

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
MAP(cuda_objects, LRU_HASH, PP_CUDA_OBJECTS_MAX, struct cuda_object_key, struct cuda_object);

/* The device's memory that is allocated. */
MAP(cuda_blocks, HASH, PP_CUDA_BLOCKS_MAX, struct pp_cuda_block_key, struct pp_cuda_block);

MAP(cuda_block_counts, ARRAY, PP_CUDA_BLOCK_COUNTS, __u32, __u64);

/* When contexts ended (include/pyprofd/cuda.h).  The agent removes what it has read. */
MAP(cuda_ended, HASH, PP_CUDA_ENDED_MAX, struct pp_cuda_handle, __u64);

#endif
