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

/* Which calls have their stacks taken: of each row of totals the first of a window, and others by
 * chance, so that a row has one in PP_CUDA_ROW_NS at most. */
#define PP_CUDA_FIRST_WALKS 4U
#define PP_CUDA_ROW_NS 40000000U
/* From one walk to the next, on average: of a process, of the machine.  What was not used is saved
 * for PP_CUDA_SAVED_NS; half of it is kept for first walks. */
#define PP_CUDA_PROCESS_NS 20000000U
#define PP_CUDA_MACHINE_NS 2000000U
#define PP_CUDA_SAVED_NS 10000000000ULL

/* What a hit of a site does. */
enum pp_cuda_does {
	PP_CUDA_CALL = 1,    /* counts */
	PP_CUDA_NAME,	     /* a handle gets a name: parameters `out` and `text` */
	PP_CUDA_ALIAS,	     /* a handle stands for another one: `out` and `ident` */
	PP_CUDA_SET_DEVICE,  /* the thread goes on with the device of parameter `ident` */
	PP_CUDA_SET_CONTEXT, /* the same with the context of that parameter */
	PP_CUDA_GET_CONTEXT, /* a context of a device: `out` and `ident` */
};

/* What a hit costs is by its function's first instruction: dear ones are stepped by the kernel.
 * Launches are probed for a part of the time where all would cost too much (--gpu-budget). */
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
};

/* Where a copy's bytes and direction are: CUDA_MEMCPY2D and CUDA_MEMCPY3D of cuda.h. */
enum pp_cuda_layout {
	PP_CUDA_LAYOUT_NONE,
	PP_CUDA_LAYOUT_2D,
	PP_CUDA_LAYOUT_3D,
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
	__u16 api; /* index in agent/cuda_functions.c: cuda_functions[] */
	__u8 does; /* enum pp_cuda_does */
	__u8 is_end;
	__u8 has_end;	  /* the end of a call is a site, too */
	__u8 waits;	  /* it returns when the device has done something */
	__u8 ident;	  /* parameter: kernel, graph, or whatever `does` says */
	__u8 bytes[2];	  /* parameters whose product is moved, set or allocated */
	__u8 bytes_shift; /* it counts elements of 1 << bytes_shift bytes */
	__u8 direction;	  /* enum pp_cuda_direction, of each call */
	__u8 kind;	  /* parameter: enum cudaMemcpyKind */
	__u8 layout;	  /* enum pp_cuda_layout of what parameter 1 points to */
	__u8 out;	  /* parameter: where a handle is stored */
	__u8 text;	  /* parameter: its name */
	__u8 hit;	  /* enum pp_cuda_hit */
};
_Static_assert(sizeof(struct pp_cuda_site) == 16, "pp_cuda_site crosses the kernel boundary");

/* What is added up apart. */
struct pp_cuda_what {
	struct pp_process_id id;
	__u64 ident; /* handle or address of a kernel or graph; 0: the call has none */
	__u16 api;
	__u8 direction; /* enum pp_cuda_direction */
	__u8 device;	/* 1 + its number; 0: not known */
	__u32 pad;
};
_Static_assert(sizeof(struct pp_cuda_what) == 24, "pp_cuda_what crosses the kernel boundary");

/* Of kernels that found no row of their own, in `ident`. */
#define PP_CUDA_IDENT_OTHERS 1U

/* Times by powers of two: the first has those below 512 ns, the last those from 2.1 s on. */
#define PP_CUDA_HISTOGRAM 24U
#define PP_CUDA_HISTOGRAM_SHIFT 8U

/* cuda_totals[id]; the id is a hash, and the detail of the counters. */
struct pp_cuda_totals {
	struct pp_cuda_what what;
	__u64 calls;
	__u64 bytes;
	__u64 host_ns; /* from call to return, of calls whose end is a site */
	__u64 wait_ns; /* of these, such that wait for the device */
	__u64 squares; /* over all walks, the sum of w * w, where each stands for w calls */
	/* ---- the kernel side's own ---- */
	__u64 walked;	     /* calls at the last walk */
	__u64 next;	     /* calls at which the next one is due */
	__u64 walked_ns;     /* when it was */
	__u32 window, first; /* in which it was, and how many first walks that window had */
	__u32 gap;	     /* calls from one walk to the next, on average */
	__u32 pad;
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
};

#endif
