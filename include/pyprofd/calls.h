/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Exact calls, and below exact lines.
 *
 * Calls: the kernel side keeps a shadow stack of each thread: its top is a node, and a node is a
 * function at one path of calls in one thread.  Entry and return of a function add the time since
 * the thread's last event to the top, so no stack is walked at a call.  Only a thread's own events
 * change its nodes. */
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

/* What the probes of an interpreter tell.  Calls need the first two; lines all. */
enum pp_call_event { PP_CALL_ENTRY, PP_CALL_RETURN, PP_CALL_LINE, PP_CALL_EVENTS };
#define PP_CALL_MOVES 2U /* those that change the top of a shadow stack */

/* Where a site's arguments lie: file name and name (char *), line. */
enum pp_call_argument { PP_CALL_ARG_FILE, PP_CALL_ARG_NAME, PP_CALL_ARG_LINE, PP_CALL_ARGUMENTS };
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

/* ---- exact lines ----
 * How often each line of a chosen file or function runs, and for how long.  An interpreter's probe
 * tells when a line begins; it goes on until the next line of the same function begins in that
 * thread, or the function returns or yields.  What a line calls is in its time, as in
 * line_profiler's; an activation of the same function is not. */

#define PP_LINE_ROWS_MAX (1U << 15)	 /* lines of all processes */
#define PP_LINE_TRIES_MAX 1024U		 /* of a CPU for a row when there is no room */
#define PP_LINE_FUNCTIONS_MAX (1U << 14) /* whose names are known; others are read again */
#define PP_LINE_THREADS_MAX (1U << 13)	 /* the one that had no event for longest gives way */
#define PP_LINE_DEPTH 16U		 /* activations of one function in a thread; a power of 2 */

#define PP_LINE_PATH_BYTES 4096U /* of a file's name, with the NUL; also linux/limits.h: PATH_MAX */
#define PP_LINE_FILE_BYTES 256U
#define PP_LINE_NAME_BYTES 128U
/* line_target[0]: the functions whose lines count (agent). */
struct pp_line_target {
	__u32 file_bytes; /* without a NUL, below PP_LINE_FILE_BYTES */
	__u32 name_bytes; /* as above; 0: all functions of the file */
	/* The file's name ends with this, behind a slash or as a whole. */
	char file[PP_LINE_FILE_BYTES];
	char name[PP_LINE_NAME_BYTES]; /* of the function, without what it is inside of */
};

/* line_rows[], by a hash of process, names and line.  Only threads that hold the GIL change it. */
struct pp_line_row {
	__u64 hits;
	/* Activations that began and ended in this line without an event of any line.  Where it is
	 * the first line of a function these are its hits: a line that the entry is in has no event
	 * (CPython 3.11, Python/ceval.c: maybe_dtrace_line). */
	__u64 untold;
	__u64 ns;   /* without what hits cost */
	__u64 code; /* a code id */
	struct pp_process_id id;
	__u32 instruction; /* struct pp_frame.what, when it was first hit */
	__u32 line;
};

/* line_threads[], by tid. */
struct pp_line_thread {
	__u64 start_time; /* of the task: a tid is used again */
	__u64 process;	  /* tells processes apart, in hashes */
	__u64 cost_ns;	  /* of all its hits, and of walks in them */
};

/* line_runs[]: the lines that a thread is in, of the activations of one function. */
struct pp_line_run_key {
	__u64 function; /* as in line_functions[] */
	__u64 thread;	/* its start time and tid, mixed */
};
struct pp_line_run {
	__u64 since_ns; /* CLOCK_MONOTONIC: when the innermost line began, or went on */
	__u64 cost_ns;	/* of the thread, then */
	__u32 depth;	/* activations now; those above PP_LINE_DEPTH have no time */
	__u32 told;	/* a bit for each activation: a line has begun in it */
	__u32 tid, tgid;
	__u64 row[PP_LINE_DEPTH]; /* the outermost activation's first; 0: no line of it has begun */
};

/* line_costs[0]: of one hit (agent). */
struct pp_line_costs {
	__u64 other_ns;	 /* of a function whose lines do not count */
	__u64 wanted_ns; /* of one whose lines do */
};

/* line_sums[0], as call_sums. */
struct pp_line_sums {
	__u64 hits;
	__u64 wanted;	/* of these, in functions whose lines count */
	__u64 cost_ns;	/* taken off */
	__u64 unread;	/* hits in functions whose names could not be read */
	__u64 unnoted;	/* lines without a row: there are too many */
	__u64 too_deep; /* activations without times */
};

#endif
