/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Exact calls.  The kernel side keeps a shadow stack of each thread: its top is a node, and a node
 * is a function at one path of calls in one thread.  Entry and return of a function add the time
 * since the thread's last event to the top, so no stack is walked at a call.  Only a thread's own
 * events change its nodes. */
#ifndef PYPROFD_CALLS_H
#define PYPROFD_CALLS_H

#include <linux/types.h>
#include <pyprofd/probe.h>
#include <pyprofd/process.h>

#define PP_CALL_NODES_MAX (1U << 17)   /* paths of calls, of all threads */
#define PP_CALL_THREADS_MAX (1U << 14) /* the one that had no event for longest gives way */
#define PP_CALL_NAME_BYTES 16U	       /* of a function's name, that tell reused memory apart */
#define PP_CALL_RESYNC_MAX 32U	       /* callers that a return may skip */
#define PP_CALL_CALLERS_MAX 256U       /* that were active when a thread is first seen */

#define PP_CALL_SITES_MAX 64U /* interpreter files, and our own that measures */

/* What the probes of an interpreter tell.  Calls need the first two; lines (lines.h) all. */
enum pp_call_event { PP_CALL_ENTRY, PP_CALL_RETURN, PP_CALL_LINE, PP_CALL_EVENTS };
#define PP_CALL_MOVES 2U /* those that change the top of a shadow stack */

/* Where a site's arguments lie: file name and name (char *), line. */
enum pp_call_argument {
	PP_CALL_ARG_FILE,
	PP_CALL_ARG_NAME,
	PP_CALL_ARG_LINE,
	PP_CALL_ARGUMENTS
};
struct pp_call_site {
	__u32 is_used;
	__u32 is_ours; /* no interpreter's: it measures what hits cost */
	struct pp_probe_arg arg[PP_CALL_ARGUMENTS];
};

/* call_nodes[], by the node's id, which is odd. */
struct pp_call_node {
	__u64 self_ns; /* in the function itself, without what hits cost */
	__u64 calls;
	__u64 parent; /* 0: nothing called it */
	__u64 code;   /* a code id */
	__u64 names;  /* hash of what the probe says of the function; 0: it has said nothing yet */
	struct pp_process_id id;
	__u32 tid;
	__u32 pad;
};

/* call_threads[], by tid. */
struct pp_call_thread {
	__u64 start_time; /* of the task: a tid is used again */
	__u64 root;	  /* what the nodes without a parent are hashed with */
	__u64 top;	  /* node; 0: outside of all functions */
	__u64 last_ns;	  /* CLOCK_MONOTONIC, of the last event */
	__u32 last;	  /* enum pp_call_event */
	__u32 lost;	  /* calls above the top that have no node */
	struct pp_process_id id;
	__u32 tid;
	__u32 pad;
};

/* call_costs[0]: what of the time between two events is the hits' own (agent). */
struct pp_call_costs {
	__u64 ns[PP_CALL_MOVES][PP_CALL_MOVES]; /* by the first event and the second */
};

/* call_sums[0], one a CPU: numbers of 64 bits and nothing else, which are added up. */
struct pp_call_sums {
	__u64 hits;
	__u64 cost_ns;	 /* taken off */
	__u64 unmatched; /* returns from a function that was not the top */
	__u64 created;	 /* nodes */
	__u64 unnoted;	 /* calls without a node: there are too many paths */
};

#endif
