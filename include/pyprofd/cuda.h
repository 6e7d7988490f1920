/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What programs have the GPU do, as both sides know it.  The kernel side adds up calls in
 * cuda_totals[]: no call makes an event to user space.  Some calls have their stacks taken; their
 * counters (PP_KIND_CUDA) say how a window's totals are divided among stacks (docs/gpu.md). */
#ifndef PYPROFD_CUDA_H
#define PYPROFD_CUDA_H

#include <linux/types.h>
#include <pyprofd/process.h>

#define PP_CUDA_TOTALS_MAX 16384U  /* that are kept at a time */
#define PP_CUDA_NAMES_MAX 16384U   /* handles with names; the oldest go */
#define PP_CUDA_CALLS_MAX 8192U	   /* calls under way whose end is wanted */
#define PP_CUDA_THREADS_MAX 4096U  /* whose device is known; the oldest go */
#define PP_CUDA_CONTEXTS_MAX 1024U /* contexts of the driver whose device is known */
#define PP_CUDA_OBJECTS_MAX 8192U  /* graphs and captures that are known; the oldest go */
/* Rows of totals that are kept for [other kernels]. */
#define PP_CUDA_TOTALS_KEPT (PP_CUDA_TOTALS_MAX / 8)
/* Of a user's processes so many may be new in a pp_config.token_round: others' must not be pushed
 * out of their table faster than they come back. */
#define PP_CUDA_PROCESSES_NEW 64U
#define PP_CUDA_BATCH_MAX 32U	  /* copies of a batch whose sizes are read */
#define PP_CUDA_BLOCKS_MAX 16384U /* allocations that are not freed */
#define PP_CUDA_ENDED_MAX 256U	  /* contexts that ended in a window */

/* Every call has its stack taken as long as there is no more than one in these times on average: of
 * a process (some 1 % of a CPU), of a user who is not root, of the machine.  What was not used is
 * saved for PP_CUDA_SAVED_NS.  Beyond it some calls stand for others (bpf/lib/cuda_walks.bpf.h).
 * Allocations of the device's memory have as much of their own: one that has no stack is in the
 * stack PP_STACK_OTHERS until it is freed. */
#define PP_CUDA_PROCESS_NS 1000000U
#define PP_CUDA_USER_NS 500000U
#define PP_CUDA_MACHINE_NS 250000U
#define PP_CUDA_SAVED_NS 5000000000ULL

/* What a hit of a site does. */
enum pp_cuda_does {
	PP_CUDA_CALL = 1,     /* counts */
	PP_CUDA_NAME,	      /* a handle gets a name: parameters `out` and `text` */
	PP_CUDA_ALIAS,	      /* a handle stands for another one: `out` and `ident` */
	PP_CUDA_SET_DEVICE,   /* the thread goes on with the device of parameter `ident` */
	PP_CUDA_SET_CONTEXT,  /* the same with the context of that parameter */
	PP_CUDA_PUSH_CONTEXT, /* the same, until it goes back to the one before */
	PP_CUDA_POP_CONTEXT,
	PP_CUDA_GET_CONTEXT,  /* a context of a device: `out` and `ident` */
	PP_CUDA_MAKE_CONTEXT, /* the same, and the thread goes on with it */
	/* What is put into a stream from here on is recorded, not run: `stream`.  At the end
	 * parameter `out` gets the graph. */
	PP_CUDA_BEGIN_CAPTURE,
	PP_CUDA_END_CAPTURE,
	/* Event `ident` takes the capture of a stream to others that wait for it. */
	PP_CUDA_RECORD_EVENT,
	PP_CUDA_AWAIT_EVENT,
	PP_CUDA_MAKE_GRAPH,   /* an empty one: `out` */
	PP_CUDA_COPY_GRAPH,   /* `out`, of kind `object`, does what graph `ident` does */
	PP_CUDA_UPDATE_GRAPH, /* instance `ident` does from now on what graph `text` does */
	PP_CUDA_ADD_NODE,     /* graph `ident` gets a `node` */
	PP_CUDA_FORGET,	      /* `ident`, of kind `object`, ends */
};

/* What a hit costs is by its function's first instruction: dear ones are stepped by the kernel.
 * Launches, and what is called as often, are probed for a part of the time where all would cost too
 * much (--max-slowdown). */
enum pp_cuda_hit {
	PP_CUDA_HIT_LAUNCH,
	PP_CUDA_HIT_LAUNCH_DEAR,
	PP_CUDA_HIT_OTHER,
	PP_CUDA_HIT_OTHER_DEAR,
	PP_CUDA_HITS
};
#define PP_CUDA_LAUNCHES 2U /* the kinds of hits that have a gate */

/* Hits of a thread, since its first one; they wrap around. */
struct pp_cuda_hits {
	__u32 of[PP_CUDA_HITS];
	__u32 timed, pad; /* of these, such that were timed: those whose stack was not taken */
	__u64 ns;	  /* that our program took for them; the trap's own time is not in it */
};

/* What a call adds to a graph. */
enum pp_cuda_node {
	PP_CUDA_NODE_NONE, /* it is not recorded */
	PP_CUDA_NODE_KERNEL,
	PP_CUDA_NODE_COPY,
	PP_CUDA_NODE_OTHER,    /* which neither launches nor copies */
	PP_CUDA_NODE_INSTANCE, /* all of an instance: parameter `ident` */
	PP_CUDA_NODE_GRAPH,    /* all of a graph: parameter `text` */
	PP_CUDA_NODE_BY_LAYOUT,
	PP_CUDA_NODE_UNKNOWN,
};

/* What a call that returns without an error has waited for: everything that was queued there when
 * it began. */
enum pp_cuda_sync {
	PP_CUDA_SYNC_NONE,    /* something else, as an event or a copy */
	PP_CUDA_SYNC_STREAM,  /* parameter `stream` */
	PP_CUDA_SYNC_CONTEXT, /* the thread's, or parameter `context` */
};

/* Of pp_cuda_site.queues: unless a copy is known to go to the host's memory. */
#define PP_CUDA_QUEUES_TO_DEVICE 2U

/* What a handle is, beside a kernel's. */
enum pp_cuda_object {
	PP_CUDA_OBJECT_STREAM = 1,
	PP_CUDA_OBJECT_EVENT,
	PP_CUDA_OBJECT_CAPTURE, /* a number of our own */
	PP_CUDA_OBJECT_GRAPH,
	PP_CUDA_OBJECT_INSTANCE, /* CUgraphExec */
	PP_CUDA_OBJECT_MODULE,	 /* that was unloaded; CUlibrary, too, and CUcontext */
	PP_CUDA_OBJECT_CONTEXT,	 /* of a name: it ends with the thread's context */
	PP_CUDA_OBJECT_DEVICE,	 /* its number; without `ident` the thread's */
	/* Of calls: parameter `out` gets the address of `bytes`, or parameter `text` is one that is
	 * freed.  MEMORY: the device's; PHYSICAL: a handle of it (cuMemCreate). */
	PP_CUDA_OBJECT_MEMORY,
	PP_CUDA_OBJECT_PHYSICAL,
};

/* What a parameter points to that says how many bytes a call is about. */
enum pp_cuda_layout {
	PP_CUDA_LAYOUT_NONE,
	PP_CUDA_LAYOUT_2D,	   /* cuda.h: CUDA_MEMCPY2D */
	PP_CUDA_LAYOUT_3D,	   /* CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER */
	PP_CUDA_LAYOUT_RUNTIME_3D, /* driver_types.h: cudaMemcpy3DParms */
	PP_CUDA_LAYOUT_FILL,	   /* CUDA_MEMSET_NODE_PARAMS, cudaMemsetParams */
	PP_CUDA_LAYOUT_NODE,	   /* CUgraphNodeParams, cudaGraphNodeParams */
	PP_CUDA_LAYOUT_BATCH,	   /* an array of sizes; parameter bytes[1]: how many */
	/* None: parameter bytes[0] is how many elements there are, bytes[1] of which type (nccl.h:
	 * ncclDataType_t). */
	PP_CUDA_LAYOUT_ELEMENTS,
};

/* X(id, label).  Those from HTOH to UNIFIED are 1 + enum cudaMemcpyKind. */
#define PP_CUDA_DIRECTIONS(X)                                                                      \
	X(NONE, "")                                                                                \
	X(HTOH, "HtoH")                                                                            \
	X(HTOD, "HtoD")                                                                            \
	X(DTOH, "DtoH")                                                                            \
	X(DTOD, "DtoD")                                                                            \
	X(UNIFIED, "unified") /* the driver tells it by the addresses */                           \
	X(PEER, "peer")
#define PP_ENUM_CUDA_DIRECTION(id, label) PP_CUDA_##id,
enum pp_cuda_direction { PP_CUDA_DIRECTIONS(PP_ENUM_CUDA_DIRECTION) PP_CUDA_DIRECTION_COUNT };

/* A function.  Parameters count from 1 on; 0: there is none. */
struct pp_cuda_site {
	__u16 api; /* index in probes/cuda_functions.c: cuda_functions[] */
	__u8 does; /* enum pp_cuda_does */
	__u8 is_end;
	__u8 has_end;	  /* the end of a call is a site, too */
	__u8 waits;	  /* it returns when the device has done something */
	__u8 ident;	  /* parameter: kernel, graph, communicator, or whatever `does` says */
	__u8 bytes[2];	  /* parameters whose product is moved, set or allocated */
	__u8 bytes_shift; /* it counts elements of 1 << bytes_shift bytes */
	__u8 direction;	  /* enum pp_cuda_direction, of each call */
	__u8 kind;	  /* parameter: enum cudaMemcpyKind */
	__u8 layout;	  /* enum pp_cuda_layout of what parameter bytes[0] points to */
	__u8 out;	  /* parameter: where a handle is stored */
	__u8 text;	  /* parameter: its name, or whatever `does` and `node` say */
	__u8 stream;	  /* parameter */
	__u8 stream_at;	  /* the stream lies so far behind what that points to; 0: it is it */
	__u8 is_twin;	  /* stream 0 is the calling thread's own */
	__u8 node;	  /* enum pp_cuda_node */
	__u8 object;	  /* enum pp_cuda_object */
	__u8 hit;	  /* enum pp_cuda_hit */
	__u8 queues;	  /* 1: it may leave work in the stream; PP_CUDA_QUEUES_TO_DEVICE */
	__u8 syncs;	  /* enum pp_cuda_sync */
	__u8 context;	  /* parameter */
};
_Static_assert(sizeof(struct pp_cuda_site) == 24, "pp_cuda_site crosses the kernel boundary");

/* What is added up apart. */
struct pp_cuda_what {
	struct pp_process_id id;
	__u64 ident;  /* handle or address of a kernel, graph or communicator; 0: it has none */
	__u64 stream; /* handle, or PP_CUDA_STREAM_... */
	__u16 api;
	__u8 direction; /* enum pp_cuda_direction */
	__u8 device;	/* 1 + its number; 0: not known */
	/* How often handles of the process's kernels may have been given out again before. */
	__u32 life;
};
_Static_assert(sizeof(struct pp_cuda_what) == 32, "pp_cuda_what crosses the kernel boundary");

/* Numbers that are no handles: cuda.h: CU_STREAM_LEGACY, which 0 is, too, CU_STREAM_PER_THREAD. */
#define PP_CUDA_STREAM_NONE 0U /* the call has none */
#define PP_CUDA_STREAM_DEFAULT 1U
#define PP_CUDA_STREAM_PER_THREAD 2U

/* Of kernels and the like that found no row of their own, in `ident`. */
#define PP_CUDA_IDENT_OTHERS 1U

/* Times by powers of two: the first has those below 512 ns, the last those from 2.1 s on. */
#define PP_CUDA_HISTOGRAM 24U
#define PP_CUDA_HISTOGRAM_SHIFT 8U

/* cuda_totals[id]; the id is a hash, and the detail of the counters. */
struct pp_cuda_totals {
	struct pp_cuda_what what;
	__u64 name;  /* id of the kernel's text when the row was made; 0: none was known */
	__u64 calls; /* but captured ones */
	__u64 bytes;
	__u64 captured; /* calls that a graph recorded instead of running them */
	__u64 nodes;	/* kernels that launches of graphs ran, as far as they are known */
	__u64 unknown;	/* launches of graphs of which some may not be known */
	__u64 host_ns;	/* from call to return, of calls whose end is a site */
	__u64 wait_ns;	/* of these, such that wait for the device */
	__u64 squares;	/* over all walks, the sum of w * w, where each stands for w calls */
	/* ---- the kernel side's own ---- */
	__u64 next;			    /* calls at which the next walk is due; 0: at each */
	__u64 paced_ns;			    /* when the gap was set */
	__u32 gap;			    /* calls of which one is walked */
	__u32 behind;			    /* of these, calls behind the next walk */
	__u32 owed;			    /* calls for which no walk stands yet */
	__u32 walks;			    /* since the gap was set */
	__u32 window;			    /* of the last walk */
	__u32 user;			    /* whose share it takes */
	__u32 histogram[PP_CUDA_HISTOGRAM]; /* of host_ns */
};

struct pp_cuda_handle {
	struct pp_process_id id;
	__u64 handle;
};

/* cuda_names[]: what a handle is called. */
struct pp_cuda_name {
	__u64 text; /* id of a pp_text_record; 0: as the handle `of` */
	__u64 of;
	__u64 module;  /* of the kernel */
	__u64 context; /* with which the handle ends; 0: not known, or with its module alone */
	__u32 life;    /* as struct pp_cuda_what, when it was noted */
	__u32 pad;
};

/* cuda_blocks[]: an allocation that succeeded and was not freed. */
struct pp_cuda_block_key {
	__u64 address; /* or handle */
	__u32 tgid;
	__u32 object; /* enum pp_cuda_object */
};
struct pp_cuda_block {
	__u64 user_stack; /* as struct pp_count_key; PP_STACK_OTHERS: it was not taken */
	__u64 row;	  /* id of the totals of its call */
	__u64 bytes;	  /* that were asked for */
	__u64 since_ns;	  /* CLOCK_MONOTONIC; no two of one address have the same */
	__u64 context;	  /* its thread's: what cuda_ended[] has; 0: not known */
	__u32 generation, tid;
	__u32 flags;  /* enum pp_count_flag */
	__u32 device; /* as struct pp_cuda_what */
	__u32 user;   /* in whose share it counts */
	__u32 pad;
};
_Static_assert(sizeof(struct pp_cuda_block) == 64, "pp_cuda_block crosses the kernel boundary");

/* cuda_ended[]: when all memory of a context was given back, by its handle; of all of a device's,
 * by PP_CUDA_ALL_OF_DEVICE and the number that struct pp_cuda_what has. */
#define PP_CUDA_ALL_OF_DEVICE (1ULL << 63)

/* cuda_block_counts[]: how many blocks there are is ADDED - REMOVED. */
enum pp_cuda_block_count {
	PP_CUDA_BLOCKS_ADDED,	/* the kernel side: but those that it has taken out */
	PP_CUDA_BLOCKS_REMOVED, /* the agent */
	PP_CUDA_BLOCK_COUNTS
};

/* ---- label `gpu` ----
 * Whether a process has work queued on the GPU, as its own calls prove it (docs/gpu.md).  The
 * program of CUDA's functions writes it (bpf/lib/cuda_streams.bpf.h); those of samples and switches
 * read it. */

#define PP_GPU_PROCESSES_MAX 512U /* with a state of their own */
#define PP_GPU_WAITS_MAX 2048U	  /* threads inside of synchronisations at a time */
/* Of each a user other than root has such a part at most. */
#define PP_GPU_USERS 4U

/* X(id, value of the label `gpu`).  Two bits of a counter's flags (enum pp_count_flag). */
#define PP_GPUS(X)                                                                                 \
	X(UNKNOWN, "") /* there is no CUDA, or its calls do not tell */                            \
	X(QUEUED, "queued")                                                                        \
	X(DRAINED, "drained")                                                                      \
	X(WAIT, "wait") /* of a thread alone: it is inside of a synchronisation or sync copy */
#define PP_ENUM_GPU(id, label) PP_GPU_##id,
enum pp_gpu { PP_GPUS(PP_ENUM_GPU) PP_GPU_COUNT };

/* gpu_processes[tgid].  Each synchronisation that begins starts a new round of its process, from 1
 * on.  Several threads write at the same time, without locks: each value tells of itself, so that a
 * late writer leaves it too careful at worst. */
struct pp_gpu_process {
	__u32 generation; /* of the process */
	__u32 sight;	  /* struct pp_config: gpu_sight, since when its calls are seen */
	__u32 user;	  /* who answers for it */
	__u32 pad;
	__u64 marked; /* the last round in which work was queued */
	__u64 idle;   /* all that was queued in rounds before this one has ended */
	/* The same of what may have been queued before its calls were seen. */
	__u64 unsure, sure;
	__u64 since; /* CLOCK_MONOTONIC << PP_GPU_SINCE_SHIFT | enum pp_gpu, of the state */
	/* In each state, up to then.  The last is not used: verifiers before Linux 5.12 do not see
	 * that a state of two bits that is not the last is below it. */
	__u64 total_ns[PP_GPU_COUNT];
};
#define PP_GPU_SINCE_SHIFT 2

/* gpu_waits[tid] */
struct pp_gpu_wait {
	__u64 sp; /* at the function's first instruction: below it, the thread is inside */
	/* What it proves when it returns; round 0: nothing.  bpf/lib/cuda_streams.bpf.h. */
	__u64 round, stream, context;
	__u32 user; /* who answers for the thread */
	__u32 pad;
};

static __inline__ enum pp_gpu pp_gpu_of(const struct pp_gpu_process *process)
{
	const __u64 marked = *(const volatile __u64 *)&process->marked;

	if (*(const volatile __u64 *)&process->idle <= marked)
		return marked ? PP_GPU_QUEUED : PP_GPU_UNKNOWN;
	return *(const volatile __u64 *)&process->sure > *(const volatile __u64 *)&process->unsure
		       ? PP_GPU_DRAINED
		       : PP_GPU_UNKNOWN;
}

/* Ends the state that a process has: nothing is known any more.  Nobody else may write. */
static __inline__ void pp_gpu_forget(struct pp_gpu_process *process, __u64 now_ns)
{
	const __u64 since_ns = process->since >> PP_GPU_SINCE_SHIFT;
	const __u64 state = process->since & (PP_GPU_COUNT - 1);

	if (state < PP_GPU_WAIT && now_ns > since_ns)
		process->total_ns[state] += now_ns - since_ns;
	process->since = now_ns << PP_GPU_SINCE_SHIFT | PP_GPU_UNKNOWN;
	process->marked = process->idle = process->unsure = process->sure = 0;
}

#endif
