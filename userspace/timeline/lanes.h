/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns records of switches and samples into slices of lanes.  The kernel side records where a
 * thread was at its switch-out, and whether it held the GIL then; the time in between is
 * reconstructed here (docs/gil.md says what is measured and what is inferred).  One thread.
 * They go to a sink, which writes one of the file formats. */
#ifndef TIMELINE_LANES_H
#define TIMELINE_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/process.h>
#include <pyprofd/wait.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "timeline/trace_file.h"

/* Every thread has three lanes; the slices of one come in the order of time and do not overlap. */
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

#define LANES_MAX_THREADS 65536U
/* samples of one run on the CPU; above it every second one is dropped */
#define LANES_MAX_MARKS 256U

struct lanes;

/* A record and the ids of its names in `strings`. */
struct lanes_event {
	const struct pp_timeline_record *record;
	/* innermost Python function, or the innermost of any kind; 0: not known */
	uint32_t function;
	uint32_t stack; /* text; 0: not known */
	bool is_python; /* the stack has Python frames */
};

/* Finds the names of a thread; the strings are valid until the next call. */
struct lanes_names {
	void *context;
	void (*find)(void *context, struct pp_process_id id, uint32_t tid,
		     const char **ret_process_name, const char **ret_thread_name);
};

/* Creates the lanes.  strings and sink are borrowed. */
int lanes_new(struct intern *strings, const struct trace_sink *sink,
	      const struct lanes_names *names, struct lanes **ret_lanes);
void lanes_free(struct lanes *lanes);
DEFINE_OWNED(struct lanes, lanes)

/* Adds a record; the records of one thread must be in the order of time.  Returns 0, or the sink's
 * error. */
int lanes_add(struct lanes *lanes, const struct lanes_event *event);
/* Ends the slices that are still open, at the time of their last record, and writes names that came
 * late. */
int lanes_end(struct lanes *lanes);
uint64_t lanes_refused(const struct lanes *lanes); /* records of threads above LANES_MAX_THREADS */

#endif
