/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the fake libcuda.so.1.  Handles are pointers to these structs.  Streams, events and
 * executable graphs are never freed: work may still name them. */
#ifndef PYPROFD_FAKE_DRIVER_H
#define PYPROFD_FAKE_DRIVER_H

#include "cuda_driver.h"
#include "fake_cuda.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#pragma GCC visibility push(hidden)
#define DRIVER_DEVICES 16U
#define DRIVER_DEVICE_BYTES (80ULL << 30)
#define STREAM_QUEUE_WORKS 1024U /* a launch waits when so many are queued, as CUDA's do */
#define KERNEL_ROWS 4096U

enum api {
#define FAKE_API(name) API_##name,
#include "driver_apis.h"
#undef FAKE_API
	API_COUNT
};

enum direction { HTOD, DTOH, DTOD, PTOP, HTOH, MEMSET, DIRECTION_COUNT };

typedef _Atomic uint64_t counter;
static inline uint64_t add(counter *total, uint64_t n)
{
	return atomic_fetch_add_explicit(total, n, memory_order_relaxed) + n;
}
static inline uint64_t get(const counter *total)
{
	return atomic_load_explicit(total, memory_order_relaxed);
}

struct api_row {
	counter calls, errors, captured, executed, bytes, captured_bytes, wait_ns;
	_Atomic bool is_special; /* an error or a delay is set */
	_Atomic int next_error;
	_Atomic unsigned int errors_left;
	counter delay_ns;
};

struct copy_row {
	counter count, bytes, captured_count, captured_bytes, in_graphs;
};

struct kernel_row {
	char name[256];
	counter duration_ns;
	_Atomic unsigned int param_count;
	_Atomic bool spins; /* as many ns as its first parameter says, not duration_ns */
	counter calls, captured, executed, in_graphs, threads, ns;
	struct kernel_row *next; /* of its bucket */
};

/* ------------------------------------------------ truth.c: all counters */

struct interval_list {
	pthread_mutex_t lock;
	counter since_ns; /* 0: none is open */
	struct fake_cuda_interval *row;
	size_t count, room;
};

struct truth {
	struct api_row api[API_COUNT];
	struct copy_row copy[DIRECTION_COUNT];
	counter checksum, live_bytes, peak_bytes, live_host_bytes, outstanding, dirty_streams;
	counter queue_full, graph_launches;
	struct interval_list drained, proven;
	struct kernel_row *bucket[KERNEL_ROWS];
	pthread_mutex_t kernel_lock;
	counter copy_latency_ns, copy_bytes_per_us, default_kernel_ns;
};
extern struct truth truth;

struct kernel_row *truth_kernel(const char *name); /* made when there is none; NULL: no memory */
uint64_t truth_copy_ns(uint64_t bytes);
void interval_close(struct interval_list *list);
void interval_open(struct interval_list *list, const counter *must_be_0);
static inline void interval_end(struct interval_list *list)
{
	if (__builtin_expect(atomic_load(&list->since_ns) != 0, 0))
		interval_close(list);
}
void truth_zero(void);
void truth_at_exit(void);
void handles_print(FILE *file); /* driver_module.c: handles and their names, for the JSON */

void memory_print(FILE *file); /* driver_memory.c: live memory, for the JSON */
struct context;
void memory_drop(const struct context *context); /* the context ends */

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
void sleep_until(uint64_t ns);

/* ------------------------------------------------ driver_state.c: init, devices, contexts */

enum driver_state { DRIVER_NEW, DRIVER_READY, DRIVER_FORKED };

struct context {
	CUdevice device;
	unsigned int physical; /* device before CUDA_VISIBLE_DEVICES */
	unsigned int users;
	_Atomic unsigned int flags; /* cuDevicePrimaryCtxSetFlags(), of which CU_CTX_SCHED_SPIN */
	struct stream *legacy;
};

struct driver {
	_Atomic enum driver_state state;
	unsigned int device_count;
	struct context device[DRIVER_DEVICES];
	struct stream *_Atomic streams; /* all that there ever were */
};
extern struct driver driver;

CUresult api_refuse(enum api api);
static inline CUresult api_enter(enum api api)
{
	struct api_row *row = &truth.api[api];

	add(&row->calls, 1);
	if (__builtin_expect(atomic_load_explicit(&driver.state, memory_order_acquire) !=
					     DRIVER_READY ||
				     atomic_load_explicit(&row->is_special, memory_order_relaxed),
			     0))
		return api_refuse(api);
	return CUDA_SUCCESS;
}
static inline CUresult api_fail(enum api api, CUresult error)
{
	add(&truth.api[api].errors, 1);
	return error;
}
struct context *context_current(void); /* NULL: none */
CUresult context_push(struct context *context);

/* ------------------------------------------------ driver_stream.c: queues and their workers */

enum work_kind { WORK_KERNEL, WORK_COPY, WORK_GRAPH, WORK_WAIT };

struct work {
	enum work_kind kind;
	enum api api;
	bool is_sync; /* its caller waits: it neither makes the stream dirty nor ends an interval */
	enum direction direction;
	struct kernel_row *kernel;
	uint64_t duration_ns, bytes, queued_ns;
	struct graph_exec *exec;
	struct stream *awaited; /* of a WORK_WAIT: until its work number awaited_number is done */
	uint64_t awaited_number;
	uint64_t ended_ns; /* in the stream's ring, until that comes round */
};

struct stream {
	struct context *context;
	struct stream *next;
	pthread_mutex_t lock;
	pthread_cond_t has_work, has_done;
	uint64_t queued, done; /* works that were submitted, and of them those that ended */
	struct work *ring;     /* with the worker, at the first work that takes time */
	uint64_t end_ns;       /* of the last work */
	bool is_dirty;	       /* has work since it was synchronized */
	bool is_legacy, is_gone;
	struct graph *graph; /* captures into it */
};

struct event {
	struct stream *stream;
	uint64_t number;     /* complete when so many works of the stream are */
	uint64_t begun_ns;   /* when it was recorded, if that is when it was complete; else 0 */
	struct graph *graph; /* recorded while it was captured */
};

struct stream *stream_new(struct context *context);
/* The stream of a handle; NULL: no context is current. */
struct stream *stream_find(CUstream handle, bool is_per_thread);
/* Runs, queues or captures.  May wait while the queue is full. */
__attribute__((noinline)) CUresult stream_submit(struct stream *stream, struct work *work);
/* The same, and waits for the end: a sync copy. */
CUresult stream_submit_and_wait(struct stream *stream, struct work *work);
void stream_wait(struct stream *stream, uint64_t number);
/* The same in a call of the program, on the CPU where its context is to spin. */
void stream_wait_for_caller(struct stream *stream, uint64_t number);
/* After a wait: adds it to the entry point's and begins a drained interval when there is nothing
 * left. */
void sync_end(enum api api, uint64_t began_ns);

/* ------------------------------------------------ driver_copy.c */

enum direction direction_3d(const struct cu_copy_3d *c);

/* ------------------------------------------------ driver_memory.c */

/* Device N's addresses begin N TiB above, where no host page lies. */
#define DEVICE_BASE 0x100000000000ULL
#define DEVICE_POINTER(p)                                                                          \
	((p) >= DEVICE_BASE && (p) < DEVICE_BASE + ((uint64_t)DRIVER_DEVICES << 40))

/* ------------------------------------------------ driver_graph.c */

struct graph {
	struct work *node;
	size_t count, room;
	bool is_invalid; /* its capture has gone wrong */
};
struct graph_exec {
	struct graph graph; /* its own copy of the nodes */
	uint64_t duration_ns;
};
__attribute__((noinline)) int graph_add(struct graph *graph,
					const struct work *work); /* 0 or -ENOMEM */
struct graph *graph_copy(const struct graph *graph);		  /* NULL: no memory */
/* An instance of a copy; NULL: no memory. */
struct graph_exec *graph_instance(const struct graph *graph);
void work_captured(const struct work *work);
void work_executed(const struct work *work); /* graphs: each of its nodes */

/* ------------------------------------------------ driver_module.c */

#define FUNCTION_MAGIC 0x46554e43U
struct function {
	uint32_t magic;
	bool is_kernel; /* a CUkernel, else a CUfunction */
	struct kernel_row *row;
	struct module *module;
	struct function *next; /* of the module, or of the free ones */
	struct function
		*of_device[DRIVER_DEVICES]; /* a CUkernel's functions, made when asked for */
};
#pragma GCC visibility pop

#endif
