/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of a timeline, in one of the file formats.  Every thread has three lanes; the slices
 * of one lane come in the order of time and do not overlap. */
#ifndef TIMELINE_TRACE_SINK_H
#define TIMELINE_TRACE_SINK_H

#include <stdint.h>

#include <pyprofd/process.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "timeline/trace_file.h"

enum trace_lane {
	TRACE_FUNCTION, /* the innermost Python function; instants: samples */
	TRACE_CPU,	/* on the CPU, or the reason it waits */
	TRACE_GIL,
	TRACE_LANES
};

#define TRACE_NO_CPU UINT32_MAX

struct trace_thread {
	struct pp_process_id id;
	uint32_t tid;
	uint32_t number; /* counts the threads of the file from 0 */
};

struct trace_slice {
	const struct trace_thread *thread;
	enum trace_lane lane;
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; an instant: equal */
	uint32_t name;		   /* id of a string */
	uint32_t stack;		   /* id of a string; 0: none */
	uint32_t holder_tid;	   /* of the GIL; 0: not known */
	uint32_t cpu;		   /* TRACE_NO_CPU: not on one */
};

/* The moment when recording begins, on three clocks. */
struct trace_start {
	uint64_t monotonic_ns, boottime_ns, wall_ns;
};

/* All return 0; -EFBIG: the file is full and does not contain any of this; -ENOMEM; -errno. */
struct trace_sink {
	void *context;
	/* Called before the thread's first slice, and again when its name changes. */
	int (*thread)(void *context, const struct trace_thread *thread, const char *process_name,
		      const char *thread_name);
	int (*slice)(void *context, const struct trace_slice *slice);
	int (*instant)(void *context, const struct trace_slice *slice);
	int (*end)(void *context); /* writes what the format needs at its end */
	void (*free)(void *context);
};

/* Create a sink.  file and strings are borrowed and must outlive it. */
int perfetto_sink_new(struct trace_file *file, const struct intern *strings,
		      const struct trace_start *start, struct trace_sink *ret_sink);
int chrome_sink_new(struct trace_file *file, const struct intern *strings,
		    const struct trace_start *start, struct trace_sink *ret_sink);

#endif
