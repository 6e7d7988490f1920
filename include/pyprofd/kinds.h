/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All kinds, once: what --events captures, what the kernel side counts, which profiles there are,
 * and which counter goes into which value.  All other code takes the kinds from these tables;
 * completion and man pages are checked against them (tests/lint/check_kinds.sh).  Append only: the
 * numbers of profiles are part of the live socket's protocol (docs/design/0008).  How to add a
 * kind: docs/design/0018. */
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
	Y(GIL, "gil", " (who waits for the GIL, and for whom)", 1, 1)

#define PP_ENUM_CAPTURE_AT(id, ...) PP_CAPTURE_AT_##id,
enum pp_capture_at { PP_CAPTURES(PP_ENUM_CAPTURE_AT, PP_ENUM_CAPTURE_AT) PP_CAPTURE_COUNT };
#define PP_ENUM_CAPTURE(id, ...) PP_CAPTURE_##id = 1 << PP_CAPTURE_AT_##id,
enum pp_capture {
	PP_CAPTURES(PP_ENUM_CAPTURE, PP_ENUM_CAPTURE)
	PP_CAPTURE_WAKERS = 1 << 30, /* has an option of its own: --wakers */
};
#define PP_CAPTURES_ALL ((1U << PP_CAPTURE_COUNT) - 1)
#define PP_CAPTURE_IF_WAITS(id, name, text, waits, ...)                                            \
	| (waits ? (unsigned int)PP_CAPTURE_##id : 0U)
#define PP_CAPTURES_OF_WAITS (0U PP_CAPTURES(PP_CAPTURE_IF_WAITS, PP_CAPTURE_IF_WAITS))
#define PP_CAPTURE_IF_DEFAULT(id, name, text, waits, is_default)                                   \
	| (is_default ? (unsigned int)PP_CAPTURE_##id : 0U)
#define PP_CAPTURES_DEFAULT (0U PP_CAPTURES(PP_CAPTURE_IF_DEFAULT, PP_CAPTURE_IF_DEFAULT))

/* What a counter counts: `samples` and `weight` of struct pp_count.  X(id, the function in
 * agent/labels.c that adds the labels of this kind alone: label_NAME()). */
#define PP_COUNT_KINDS(X)                                                                          \
	X(CPU, none)   /* samples; weight in ns, or events for cycles */                           \
	X(WAIT, wait)  /* waits and ns off the CPU, at the waiter's stack */                       \
	X(BLAME, none) /* ns of GIL waits, at the holder's Python stack; its own tid */            \
	X(WAKE, wait)  /* wake-ups and the ns of the waits they ended, at the waker's stack */     \
	/* The agent turns these into WAIT (drain/wait_shares.h). */                               \
	X(WAIT_SITE, none) /* exact sums of a wait site with differing stacks; detail: its key */  \
	X(WALKED, none)	   /* waits there that were unwound, weighted; detail: the same key */     \
	X(WEIGHTED, none)  /* waits at new wait sites, with a weight */

#define PP_ENUM_COUNT_KIND(id, label) PP_KIND_##id,
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
	Y(WAKER, 4, "waker", PP_CAPTURE_OFFCPU | PP_CAPTURE_WAKERS, 0, 0, 0)

#define PP_ENUM_PROFILE(id, number, ...) PP_PROFILE_##id = number,
#define PP_ADD_PROFILE(...) +1
enum pp_profile {
	PP_PROFILES(PP_ENUM_PROFILE, PP_ENUM_PROFILE)
	PP_PROFILE_COUNT = 0 PP_PROFILES(PP_ADD_PROFILE, PP_ADD_PROFILE),
};
#define PP_PROFILE_DEFAULT PP_PROFILE_CPU /* for the reader, when there are several */

/* The values of a profile's samples: types and units under the names that collectors know.
 * X(profile, index, type, unit). */
#define PP_VALUES(X)                                                                               \
	X(CPU, 0, "samples", "count")                                                              \
	X(CPU, 1, "cpu", "nanoseconds") /* --clock cycles: PP_CYCLES_TYPE */                       \
	X(OFFCPU, 0, "off_cpu", "nanoseconds")                                                     \
	X(OFFCPU, 1, "events", "count")                                                            \
	X(OFFCPU, 2, "effective", "count") /* independent waits that the sums rest on */           \
	X(WALL, 0, "wall", "nanoseconds")                                                          \
	X(GIL, 0, "gil_wait", "nanoseconds")                                                       \
	X(GIL, 1, "gil_blame", "nanoseconds")                                                      \
	X(GIL, 2, "gil_held", "nanoseconds")                                                       \
	X(WAKER, 0, "off_cpu", "nanoseconds") /* the waker's stack above the waiter's */           \
	X(WAKER, 1, "events", "count")
#define PP_VALUES_MAX 3U
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
	X(WAKE, WAKER, 1, samples, ALWAYS)

enum pp_feed_when {
	PP_FEED_ALWAYS,
	PP_FEED_GIL_HELD, /* only when the thread held the GIL */
	PP_FEED_GIL_WAIT, /* only when it waited for the GIL */
};

#endif
