/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All kinds, once: what --events captures, what the kernel side counts, which profiles there are,
 * and which counter goes into which value.  All other code takes the kinds from these tables;
 * the man page is checked against them (tests/lint/check_kinds.sh).  Append only: the
 * numbers of profiles are part of the live socket's protocol (docs/design/live.md).  How to add a
 * kind: docs/design/profiles.md. */
#ifndef PYPROFD_KINDS_H
#define PYPROFD_KINDS_H

/* A table whose names become a list takes two macros, the first for the first row: X(...) Y(...)
 * Y(...). */

/* What is captured, in the order of --events; one bit each.  X(id, name, text for --help, whether
 * it needs the waits of threads, whether it is a default into a directory).  Into one file the
 * first is the default. */
#define PP_CAPTURES(X, Y)                                                                          \
	X(CPU, "cpu", "", 0, 1)                                                                    \
	Y(OFFCPU, "offcpu", " (where threads wait)", 1, 1)                                         \
	Y(GIL, "gil", " (who waits for the GIL, and for whom)", 1, 1)                              \
	Y(GC, "gc", " (pauses of Python's garbage collector)", 0, 1)                               \
	Y(IMPORT, "import", " (time in Python's imports)", 0, 1)                                   \
	Y(MEM, "mem", " (memory touched for the first time)", 0, 1)                                \
	Y(CALLS, "calls", " (every Python call)", 0, 0)                                            \
	Y(ALLOC, "alloc", " (allocations, and what is still held)", 0, 0)                          \
	Y(PROBE, "probe", " (what --probe names)", 0, 0)                                           \
	Y(LINES, "lines", " (every line of --lines)", 0, 0)                                        \
	Y(CUDA, "cuda", " (what programs have the GPU do)", 0, 1)                                  \
	Y(WAKERS, "wakers", " (offcpu, and who ended each wait)", 1, 0)

#define PP_ENUM_CAPTURE_AT(id, ...) PP_CAPTURE_AT_##id,
enum pp_capture_at { PP_CAPTURES(PP_ENUM_CAPTURE_AT, PP_ENUM_CAPTURE_AT) PP_CAPTURE_COUNT };
#define PP_ENUM_CAPTURE(id, ...) PP_CAPTURE_##id = 1 << PP_CAPTURE_AT_##id,
enum pp_capture { PP_CAPTURES(PP_ENUM_CAPTURE, PP_ENUM_CAPTURE) };
/* What takes breakpoints in programs. */
#define PP_CAPTURES_OF_PROBES                                                                      \
	(PP_CAPTURE_GC | PP_CAPTURE_IMPORT | PP_CAPTURE_CALLS | PP_CAPTURE_ALLOC |                 \
	 PP_CAPTURE_PROBE | PP_CAPTURE_LINES | PP_CAPTURE_CUDA)
/* What takes so many that somebody has to choose the programs. */
#define PP_CAPTURES_OF_CHOSEN (PP_CAPTURE_CALLS | PP_CAPTURE_ALLOC | PP_CAPTURE_LINES)
/* What counts every hit of an interpreter's own probes: one of them at a time. */
#define PP_CAPTURES_EXACT (PP_CAPTURE_CALLS | PP_CAPTURE_LINES)
#define PP_CAPTURES_ALL ((1U << PP_CAPTURE_COUNT) - 1)
#define PP_CAPTURE_IF_WAITS(id, name, text, waits, ...)                                            \
	| (waits ? (unsigned int)PP_CAPTURE_##id : 0U)
#define PP_CAPTURES_OF_WAITS (0U PP_CAPTURES(PP_CAPTURE_IF_WAITS, PP_CAPTURE_IF_WAITS))
#define PP_CAPTURE_IF_DEFAULT(id, name, text, waits, is_default)                                   \
	| (is_default ? (unsigned int)PP_CAPTURE_##id : 0U)
#define PP_CAPTURES_DEFAULT (0U PP_CAPTURES(PP_CAPTURE_IF_DEFAULT, PP_CAPTURE_IF_DEFAULT))

/* What makes counters, beside the CPU's samples: sources (userspace/windows/source.h), in the order
 * in which they collect what a window has.  WAITS comes behind all that add waits, among which it
 * divides what is known exactly; what holds memory comes before what names it.  X(id, name of the
 * struct: NAME_source, for which captures it is opened). */
#define PP_SOURCES(X)                                                                              \
	X(PROBES, probes,                                                                          \
	  PP_CAPTURE_GC | PP_CAPTURE_IMPORT | PP_CAPTURE_ALLOC | PP_CAPTURE_PROBE |                \
		  PP_CAPTURE_CUDA)                                                                 \
	X(EXACT, exact, PP_CAPTURES_EXACT)                                                         \
	X(ALLOC, alloc, PP_CAPTURE_ALLOC)                                                          \
	X(CUDA_LIVE, cuda_live, PP_CAPTURE_CUDA)                                                   \
	X(CUDA, cuda, PP_CAPTURE_CUDA)                                                             \
	X(CUDA_REPORT, cuda_report, PP_CAPTURE_CUDA)                                               \
	X(GPU_TIMES, gpu_times, PP_CAPTURE_CUDA)                                                   \
	X(GAUGES, gauges, PP_CAPTURE_CUDA)                                                         \
	X(MEMORY, memory, PP_CAPTURE_MEM)                                                          \
	X(RESIDENT, resident, PP_CAPTURE_MEM | PP_CAPTURE_ALLOC)                                   \
	X(WAITS, waits, PP_CAPTURES_OF_WAITS)                                                      \
	X(SCANS, scans, PP_CAPTURES_OF_WAITS)

/* What a counter counts: `samples` and `weight` of struct pp_count.  Of CUDA's the detail is the id
 * of the totals (include/pyprofd/cuda.h), and the kernel side has only the first: of calls whose
 * stacks were taken, how many they stand for, and their bytes or ns. */
#define PP_COUNT_KINDS(X)                                                                          \
	X(CPU)	 /* samples; weight in ns, or events for cycles */                                 \
	X(WAIT)	 /* waits and ns off the CPU, at the waiter's stack */                             \
	X(BLAME) /* ns of GIL waits, at the holder's Python stack; its own tid */                  \
	X(WAKE)	 /* wake-ups and the ns of the waits they ended, at the waker's stack */           \
	/* The agent turns these into WAIT (drain/wait_shares.h). */                               \
	X(WAIT_SITE)  /* exact sums of a wait site with differing stacks; detail: its key */       \
	X(WALKED)     /* waits there that were unwound, weighted; detail: the same key */          \
	X(WEIGHTED)   /* waits at new wait sites, with a weight */                                 \
	X(GC)	      /* collections and ns, at their start; detail: the generation */             \
	X(IMPORT)     /* imports and ns without nested ones; detail: id of the module's name */    \
	X(TOUCH)      /* faults and bytes touched first; detail: enum pp_memory */                 \
	X(COPY)	      /* faults and bytes copied on write; detail: enum pp_memory */               \
	X(CALL)	      /* calls and ns in the function itself, at the path of calls */              \
	X(ALLOC)      /* allocations and bytes, weighted */                                        \
	X(HELD)	      /* of these, what was not freed at the window's end */                       \
	X(PROBE)      /* hits and ns from call to return; detail: index of the probe */            \
	X(LINE)	      /* hits of a line and ns in it and in what it calls */                       \
	X(CUDA)	      /* calls, and ns from call to return */                                      \
	X(CUDA_WAIT)  /* ns in calls that wait for the device */                                   \
	X(CUDA_BYTES) /* bytes moved, set or allocated */                                          \
	X(CUDA_HELD)  /* allocations and bytes that were not freed at the window's end */          \
	X(CUDA_SEEN)  /* the same, for clients alone: the profile goes on */

#define PP_ENUM_COUNT_KIND(id) PP_KIND_##id,
enum pp_count_kind { PP_COUNT_KINDS(PP_ENUM_COUNT_KIND) PP_KIND_COUNT };

/* Kinds of profile.  X(id, number, name, what must be captured, what `pyprof --live` captures for
 * it when no pyprofd runs, whether the live socket serves it, index of the default value). */
#define PP_PROFILES(X, Y)                                                                          \
	X(CPU, 0, "cpu", PP_CAPTURE_CPU, PP_CAPTURE_CPU, 1, 1)                                     \
	Y(OFFCPU, 1, "offcpu", PP_CAPTURE_OFFCPU, PP_CAPTURE_CPU | PP_CAPTURE_OFFCPU, 1, 0)        \
	Y(WALL, 2, "wall", PP_CAPTURE_CPU | PP_CAPTURE_OFFCPU, PP_CAPTURE_CPU | PP_CAPTURE_OFFCPU, \
	  1, 0)                                                                                    \
	Y(GIL, 3, "gil", PP_CAPTURE_GIL, PP_CAPTURE_CPU | PP_CAPTURE_OFFCPU | PP_CAPTURE_GIL, 1,   \
	  0)                                                                                       \
	/* Its stacks are of two processes, and a user may see only one. */                        \
	Y(WAKER, 4, "waker", PP_CAPTURE_WAKERS, 0, 0, 0)                                           \
	Y(GC, 5, "gc", PP_CAPTURE_GC, PP_CAPTURE_GC, 1, 0)                                         \
	Y(IMPORT, 6, "import", PP_CAPTURE_IMPORT, PP_CAPTURE_IMPORT, 1, 0)                         \
	Y(MEM, 7, "mem", PP_CAPTURE_MEM, PP_CAPTURE_MEM, 1, 0)                                     \
	Y(CALLS, 8, "calls", PP_CAPTURE_CALLS, PP_CAPTURE_CALLS, 1, 0)                             \
	Y(ALLOC, 9, "alloc", PP_CAPTURE_ALLOC, PP_CAPTURE_ALLOC, 1, 0)                             \
	Y(PROBE, 10, "probe", PP_CAPTURE_PROBE, PP_CAPTURE_PROBE, 1, 0)                            \
	Y(LINES, 11, "lines", PP_CAPTURE_LINES, PP_CAPTURE_LINES, 1, 0)                            \
	Y(CUDA, 12, "cuda", PP_CAPTURE_CUDA, PP_CAPTURE_CUDA, 1, 0)                                \
	/* Records: PP_RECORDS. */                                                                 \
	Y(RESIDENT, 13, "resident", PP_CAPTURE_MEM | PP_CAPTURE_ALLOC, PP_CAPTURE_MEM, 1, 0)       \
	Y(GPU, 14, "gpu", PP_CAPTURE_CUDA, PP_CAPTURE_CUDA, 1, 0)                                  \
	Y(LEDGER, 15, "ledger", PP_CAPTURES_OF_WAITS, PP_CAPTURE_CPU | PP_CAPTURE_OFFCPU, 1, 0)    \
	Y(CUDA_CALLS, 16, "cuda_calls", PP_CAPTURE_CUDA, PP_CAPTURE_CUDA, 1, 0)

#define PP_ENUM_PROFILE(id, number, ...) PP_PROFILE_##id = number,
#define PP_ADD_PROFILE(...) +1
enum pp_profile {
	PP_PROFILES(PP_ENUM_PROFILE, PP_ENUM_PROFILE) PP_PROFILE_COUNT =
		0 PP_PROFILES(PP_ADD_PROFILE, PP_ADD_PROFILE),
};
#define PP_PROFILE_DEFAULT PP_PROFILE_CPU /* for the reader, when there are several */

/* Kinds of records: figures of processes and devices that no stack explains.  A row has labels, and
 * at most one frame, which says what the row is about.  Any of the captures that such a kind needs
 * is enough for it, and a profile in one file with a name has the values of these kinds behind its
 * own. */
#define PP_RECORDS                                                                                 \
	(1U << PP_PROFILE_RESIDENT | 1U << PP_PROFILE_GPU | 1U << PP_PROFILE_LEDGER |              \
	 1U << PP_PROFILE_CUDA_CALLS)

/* How a value of one row goes on from window to window.  Within a window values are summed up. */
enum pp_merge {
	PP_MERGE_SUM,
	PP_MERGE_LAST, /* a level: what the last window says, 0 where it says nothing */
	PP_MERGE_MAX,  /* the most of all windows */
};

/* The values of a profile's samples: types and units under the names that collectors know, and
 * enum pp_merge.  X(profile, index, type, unit, merge). */
#define PP_VALUES(X)                                                                               \
	X(CPU, 0, "samples", "count", SUM)                                                         \
	X(CPU, 1, "cpu", "nanoseconds", SUM) /* clock=cycles: PP_CYCLES_TYPE */                    \
	X(OFFCPU, 0, "off_cpu", "nanoseconds", SUM)                                                \
	X(OFFCPU, 1, "events", "count", SUM)                                                       \
	X(OFFCPU, 2, "effective", "count", SUM) /* independent waits that the sums rest on */      \
	X(WALL, 0, "wall", "nanoseconds", SUM)                                                     \
	X(GIL, 0, "gil_wait", "nanoseconds", SUM)                                                  \
	X(GIL, 1, "gil_blame", "nanoseconds", SUM)                                                 \
	X(GIL, 2, "gil_held", "nanoseconds", SUM)                                                  \
	X(WAKER, 0, "off_cpu", "nanoseconds", SUM) /* the waker's stack above the waiter's */      \
	X(WAKER, 1, "events", "count", SUM)                                                        \
	X(GC, 0, "gc_pause", "nanoseconds", SUM)                                                   \
	X(GC, 1, "collections", "count", SUM)                                                      \
	X(IMPORT, 0, "import", "nanoseconds", SUM)                                                 \
	X(IMPORT, 1, "imports", "count", SUM)                                                      \
	X(MEM, 0, "first_touch", "bytes", SUM)                                                     \
	X(MEM, 1, "cow", "bytes", SUM)                                                             \
	X(MEM, 2, "faults", "count", SUM)                                                          \
	X(CALLS, 0, "self", "nanoseconds", SUM)                                                    \
	X(CALLS, 1, "calls", "count", SUM)                                                         \
	X(ALLOC, 0, "alloc_space", "bytes", SUM)                                                   \
	X(ALLOC, 1, "alloc_objects", "count", SUM)                                                 \
	X(ALLOC, 2, "inuse_space", "bytes", LAST)                                                  \
	X(ALLOC, 3, "inuse_objects", "count", LAST)                                                \
	X(PROBE, 0, "events", "count", SUM)                                                        \
	X(PROBE, 1, "latency", "nanoseconds", SUM)                                                 \
	X(LINES, 0, "hits", "count", SUM)                                                          \
	X(LINES, 1, "time", "nanoseconds", SUM)                                                    \
	X(CUDA, 0, "calls", "count", SUM)                                                          \
	X(CUDA, 1, "cuda_host", "nanoseconds", SUM)                                                \
	X(CUDA, 2, "cuda_wait", "nanoseconds", SUM)                                                \
	X(CUDA, 3, "cuda_bytes", "bytes", SUM)                                                     \
	X(CUDA, 4, "inuse_space", "bytes", LAST)                                                   \
	X(CUDA, 5, "inuse_objects", "count", LAST)                                                 \
	X(RESIDENT, 0, "resident", "bytes", LAST) /* label memory; or of the rows `processes` */   \
	X(RESIDENT, 1, "peak", "bytes", MAX)	  /* the most that a process ever had */           \
	X(RESIDENT, 2, "growth", "bytes", SUM)	  /* since the reading before */                   \
	X(RESIDENT, 3, "growth_time", "nanoseconds", SUM) /* how long ago that was */              \
	X(RESIDENT, 4, "processes", "count", LAST)                                                 \
	X(GPU, 0, "gpu_time", "nanoseconds", SUM) /* label gpu: of a process */                    \
	X(GPU, 1, "gauge_sum", "count", SUM)	  /* label gauge: of readings, in its unit */      \
	X(GPU, 2, "gauge_readings", "count", SUM) /* how many those are: a mean is two sums */     \
	X(GPU, 3, "gauge_max", "count", MAX)                                                       \
	X(LEDGER, 0, "ledger", "nanoseconds", SUM)   /* label state; or of the rows `lifetime` */  \
	X(LEDGER, 1, "lifetime", "nanoseconds", SUM) /* threads x wall */                          \
	X(LEDGER, 2, "threads", "count", MAX)                                                      \
	X(LEDGER, 3, "off_scheduler", "nanoseconds", SUM) /* its CPU time minus the scheduler's */ \
	X(LEDGER, 4, "compared", "nanoseconds", SUM)	  /* the lifetime in which these were */   \
	X(LEDGER, 5, "ledger_processes", "count", MAX)                                             \
	X(CUDA_CALLS, 0, "exact_calls", "count", SUM)                                              \
	X(CUDA_CALLS, 1, "exact_host", "nanoseconds", SUM)                                         \
	X(CUDA_CALLS, 2, "exact_wait", "nanoseconds", SUM)                                         \
	X(CUDA_CALLS, 3, "exact_bytes", "bytes", SUM)                                              \
	X(CUDA_CALLS, 4, "captured", "count", SUM)    /* by a graph; none of exact_calls */        \
	X(CUDA_CALLS, 5, "nodes", "count", SUM)	      /* kernels of graphs that were launched */   \
	X(CUDA_CALLS, 6, "spread", "count", SUM)      /* profile/cuda_sums.h */                    \
	X(CUDA_CALLS, 7, "timed_calls", "count", SUM) /* label below: calls that took less */
#define PP_VALUES_MAX 8U
/* The values of records, for who writes and reads them. */
enum pp_resident_value {
	PP_RESIDENT_BYTES,
	PP_RESIDENT_PEAK,
	PP_RESIDENT_GROWTH,
	PP_RESIDENT_GROWTH_TIME,
	PP_RESIDENT_PROCESSES,
};
enum pp_gpu_value { PP_GPU_TIME, PP_GPU_GAUGE_SUM, PP_GPU_GAUGE_READINGS, PP_GPU_GAUGE_MAX };
enum pp_ledger_value {
	PP_LEDGER_TIME,
	PP_LEDGER_LIFETIME,
	PP_LEDGER_THREADS,
	PP_LEDGER_OFF_SCHEDULER,
	PP_LEDGER_COMPARED,
	PP_LEDGER_PROCESSES,
};
enum pp_exact_value {
	PP_EXACT_CALLS,
	PP_EXACT_HOST,
	PP_EXACT_WAIT,
	PP_EXACT_BYTES,
	PP_EXACT_CAPTURED,
	PP_EXACT_NODES,
	PP_EXACT_SPREAD,
	PP_EXACT_TIMED,
};
#define PP_CYCLES_TYPE "cycles"
#define PP_CYCLES_UNIT "count"

/* Which counters are summed into which value.  X(count kind, profile, index of the value, member of
 * struct pp_count, when). */
#define PP_FEEDS(X)                                                                                \
	X(CPU, CPU, 0, samples, ALWAYS)                                                            \
	X(CPU, CPU, 1, weight, ALWAYS)                                                             \
	X(CPU, WALL, 0, weight, ALWAYS)                                                            \
	X(CPU, GIL, 2, weight, GIL_HELD)                                                           \
	X(WAIT, OFFCPU, 0, weight, ALWAYS)                                                         \
	X(WAIT, OFFCPU, 1, samples, ALWAYS)                                                        \
	X(WAIT, OFFCPU, 2, effective, ALWAYS)                                                      \
	X(WAIT, WALL, 0, weight, ALWAYS)                                                           \
	X(WAIT, GIL, 0, weight, GIL_WAIT)                                                          \
	X(BLAME, GIL, 1, weight, ALWAYS)                                                           \
	X(WAKE, WAKER, 0, weight, ALWAYS)                                                          \
	X(WAKE, WAKER, 1, samples, ALWAYS)                                                         \
	X(GC, GC, 0, weight, ALWAYS)                                                               \
	X(GC, GC, 1, samples, ALWAYS)                                                              \
	X(IMPORT, IMPORT, 0, weight, ALWAYS)                                                       \
	X(IMPORT, IMPORT, 1, samples, ALWAYS)                                                      \
	X(TOUCH, MEM, 0, weight, ALWAYS)                                                           \
	X(TOUCH, MEM, 2, samples, ALWAYS)                                                          \
	X(COPY, MEM, 1, weight, ALWAYS)                                                            \
	X(COPY, MEM, 2, samples, ALWAYS)                                                           \
	X(CALL, CALLS, 0, weight, ALWAYS)                                                          \
	X(CALL, CALLS, 1, samples, ALWAYS)                                                         \
	X(ALLOC, ALLOC, 0, weight, ALWAYS)                                                         \
	X(ALLOC, ALLOC, 1, samples, ALWAYS)                                                        \
	X(HELD, ALLOC, 2, weight, ALWAYS)                                                          \
	X(HELD, ALLOC, 3, samples, ALWAYS)                                                         \
	X(PROBE, PROBE, 0, samples, ALWAYS)                                                        \
	X(PROBE, PROBE, 1, weight, ALWAYS)                                                         \
	X(LINE, LINES, 0, samples, ALWAYS)                                                         \
	X(LINE, LINES, 1, weight, ALWAYS)                                                          \
	X(CUDA, CUDA, 0, samples, ALWAYS)                                                          \
	X(CUDA, CUDA, 1, weight, ALWAYS)                                                           \
	X(CUDA_WAIT, CUDA, 2, weight, ALWAYS)                                                      \
	X(CUDA_BYTES, CUDA, 3, weight, ALWAYS)                                                     \
	X(CUDA_HELD, CUDA, 4, weight, ALWAYS)                                                      \
	X(CUDA_HELD, CUDA, 5, samples, ALWAYS)                                                     \
	X(CUDA_SEEN, CUDA, 4, weight, ALWAYS)                                                      \
	X(CUDA_SEEN, CUDA, 5, samples, ALWAYS)

/* What memory is used for that was touched, as far as the kernel tells.  X(id, label). */
#define PP_MEMORIES(X)                                                                             \
	X(ANONYMOUS, "anonymous")                                                                  \
	X(HEAP, "heap")                                                                            \
	X(STACK, "stack")                                                                          \
	X(FILE, "file")                                                                            \
	X(SHARED, "shared")
#define PP_ENUM_MEMORY(id, label) PP_MEMORY_##id,
enum pp_memory { PP_MEMORIES(PP_ENUM_MEMORY) PP_MEMORY_COUNT };

enum pp_feed_when {
	PP_FEED_ALWAYS,
	PP_FEED_GIL_HELD, /* only when the thread held the GIL */
	PP_FEED_GIL_WAIT, /* only when it waited for the GIL */
};

#endif
