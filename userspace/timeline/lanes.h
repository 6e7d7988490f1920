/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of switches and samples -> slices of lanes.  The kernel side tells where a thread was when it
 * left the CPU, and whether it had the GIL then; what lies between is put together here (docs/gil.md says
 * what is measured and what is inferred).  One thread. */
#ifndef TIMELINE_LANES_H
#define TIMELINE_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/timeline.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "timeline/trace_sink.h"

#define LANES_MAX_THREADS 65536U
#define LANES_MAX_MARKS 256U /* samples of one run; beyond it every other one goes */

struct lanes;

/* A record with names: ids of strings. */
struct lanes_event {
	const struct pp_timeline_record *record;
	uint32_t function; /* innermost Python function, or what there is; 0: not known */
	uint32_t stack;	   /* text; 0: not known */
	bool is_python;	   /* the stack has Python frames */
};

/* Names of a thread; the strings are valid until the next call. */
struct lanes_names {
	void *context;
	void (*find)(void *context, struct pp_process_id id, uint32_t tid,
		     const char **ret_process_name, const char **ret_thread_name);
};

/* strings and sink are borrowed. */
int lanes_new(struct intern *strings, const struct trace_sink *sink,
	      const struct lanes_names *names, struct lanes **ret_lanes);
void lanes_free(struct lanes *lanes);
DEFINE_OWNED(struct lanes, lanes)

/* Records of one thread come in the order of time.  0, or what the sink says. */
int lanes_add(struct lanes *lanes, const struct lanes_event *event);
/* Slices that are still open end where they are; names that came late are told. */
int lanes_end(struct lanes *lanes);
uint64_t lanes_refused(const struct lanes *lanes); /* records of threads beyond the bound */

#endif
