/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns records of switches and samples into slices of lanes.  The kernel side records where a
 * thread was at its switch-out, and whether it held the GIL then; the time in between is
 * reconstructed here (docs/gil.md says what is measured and what is inferred).  One thread. */
#ifndef TIMELINE_LANES_H
#define TIMELINE_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/timeline.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "timeline/trace_sink.h"

#define LANES_MAX_THREADS 65536U
/* samples of one run on the CPU; above it every second one is dropped */
#define LANES_MAX_MARKS 256U

struct lanes;

/* A record and the ids of its names in `strings`. */
struct lanes_event {
	const struct pp_timeline_record *record;
	/* innermost Python function, or the innermost of any kind; 0: not known */
	uint32_t function;
	uint32_t stack;	   /* text; 0: not known */
	bool is_python;	   /* the stack has Python frames */
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
