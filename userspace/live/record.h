/* SPDX-License-Identifier: BSD-2-Clause */
/* The records of a reply: one per line, its kind first, fields separated by tabs.  Neither side
 * trusts the other: texts may contain anything but NUL, and are escaped. */
#ifndef LIVE_RECORD_H
#define LIVE_RECORD_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define LIVE_LINE_BYTES 65536U /* of a record, its newline included */
#define LIVE_NUMBERS_MAX 5U
#define LIVE_TEXTS_MAX 3U

/* X(id, name, numbers, texts): the fields in order, numbers first. */
#define LIVE_RECORDS(X)                                                                            \
	X(PROCESS, "process", 2, 1) /* tgid, uid; name */                                          \
	X(STACK, "stack", 2, 0) /* its number, counted from 1; frames that follow, leaf first */   \
	X(FRAME, "frame", 2, 3) /* enum live_frame, line; function, file, module */                \
	X(THREAD, "thread", 4,                                                                     \
	  2) /* tid, stack or 0, enum live_flag, ns it waits or 0; name, wait */                   \
	X(WINDOW, "window", 2, 0) /* bytes of a gzip'd pprof file that follow; enum live_window */ \
	X(METRIC, "metric", 1, 2) /* enum live_metric; name, what it says; its values follow */    \
	X(VALUE, "value", 1, 1)	  /* as the metric's kind; labels */                               \
	X(END, "end", 4, 0)	  /* threads, of these torn, without a stack, left out */          \
	X(ERROR, "error", 1, 1)	  /* errno; what a person reads */

#define LIVE_ENUM_RECORD(id, name, numbers, texts) LIVE_##id,
enum live_kind { LIVE_RECORDS(LIVE_ENUM_RECORD) LIVE_KIND_COUNT };

enum live_frame { LIVE_PYTHON, LIVE_NATIVE, LIVE_KERNEL, LIVE_JIT, LIVE_MARKER };

enum live_flag {
	LIVE_GIL_HELD = 1,
	LIVE_GC = 2,   /* its interpreter collects garbage */
	LIVE_RUNS = 4, /* on a CPU or about to be: Python frames only, read while it ran */
	LIVE_TORN = 8, /* it ran while its stack was read */
	LIVE_CUT = 16, /* the stack does not reach the root */
};

/* What a window contains.  From LIVE_WINDOW_KIND_SHIFT on: 1 + its enum pp_profile; 0: no kind was
 * asked for. */
enum live_window { LIVE_WINDOW_WAITS = 1 };
#define LIVE_WINDOW_KIND_SHIFT 8U

#define LIVE_WINDOW_BYTES (64U << 20) /* the most bytes of a window's files */

/* A value's labels are those of Prometheus: kind="cpu",gpu="0"; "": none.
 * What a metric is; LIVE_METRIC_NS: its values are billionths of its unit, as ns of seconds. */
enum live_metric { LIVE_METRIC_COUNTER, LIVE_METRIC_GAUGE, LIVE_METRIC_NS = 2 };

struct live_record {
	enum live_kind kind;
	uint64_t number[LIVE_NUMBERS_MAX];
	const char *text[LIVE_TEXTS_MAX];
};

/* Writes a record.  A text is cut where the line would be too long; NULL is written as "".  The
 * caller checks the stream for errors. */
void live_record_write(FILE *out, const struct live_record *record);
/* Parses a line without its newline, in place: texts point into the line.  line[size] must be
 * writable. Returns 0; -ENOENT: an unknown kind; -EBADMSG. */
int live_record_parse(char *line, size_t size, struct live_record *ret_record);

#endif
