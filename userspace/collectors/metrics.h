/* SPDX-License-Identifier: BSD-2-Clause */
/* What sinks have done: a sink's thread counts, any thread reads, and prints it for /metrics. */
#ifndef COLLECTORS_METRICS_H
#define COLLECTORS_METRICS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "collectors/collector.h"

/* ---- counting ---- */

/* Why a profile was not pushed: X(id, the label `reason` of
 * pyprofd_push_dropped_profiles_total). */
#define PUSH_DROPS(X)                                                                              \
	X(RETENTION, "retention")   /* the store deleted it before it could be sent; files */      \
	X(TOO_OLD, "too_old")	    /* the collector takes none of that age; windows */            \
	X(POISON, "poison")	    /* the collector refuses this one; requests */                 \
	X(REFUSED, "refused")	    /* it takes no such requests at this address; requests */      \
	X(REJECTED, "rejected")	    /* OTLP: it says so in a success; profiles */                  \
	X(CLOCK, "clock")	    /* it was set back, and later windows were sent; windows */    \
	X(UNREADABLE, "unreadable") /* broken, foreign or too large for us; files or windows */
#define PUSH_ENUM_DROP(id, name) PUSH_DROP_##id,
enum push_drop { PUSH_DROPS(PUSH_ENUM_DROP) PUSH_DROP_COUNT };
const char *push_drop_name(enum push_drop drop);

/* Bounds of the histogram pyprofd_push_duration_seconds, in ms; the last one is +Inf. */
#define PUSH_DURATIONS(X) X(50) X(100) X(250) X(500) X(1000) X(2500) X(5000) X(10000) X(30000)
#define PUSH_ADD_DURATION(ms) +1
enum { PUSH_DURATION_COUNT = 1 PUSH_DURATIONS(PUSH_ADD_DURATION) };
/* Returns the upper bound of a bucket in ms; UINT64_MAX of the last one. */
uint64_t push_duration_bound_ms(size_t bucket);

#define PUSH_CODES_MAX 32U /* distinct codes of answers; what is beyond counts as the last */

struct push_stats {
	char name[PUSH_SINK_NAME_CHARS];
	struct {
		unsigned int code; /* status of HTTP; 0: no answer */
		uint64_t count;
	} request[PUSH_CODES_MAX];
	size_t code_count;
	uint64_t bytes;	   /* of bodies that collectors have */
	uint64_t windows;  /* sent whole */
	uint64_t repeated; /* requests that the collector may have twice */
	uint64_t again;	   /* files that were sent before the clock was set back, or may be */
	uint64_t folded;   /* series that went into PUSH_SERIES_OTHER */
	uint64_t drop[PUSH_DROP_COUNT];
	uint64_t duration[PUSH_DURATION_COUNT]; /* not cumulative */
	uint64_t duration_ns;			/* of all requests */
	uint64_t files_left;			/* that wait in the store */
	/* End of the newest window that the collector has, in ms since 1970; at the start, where
	 * the cursor is. */
	uint64_t sent_end_ms;
	bool works; /* the last request had its success, or there was none yet */
};

struct push_counters {
	pthread_mutex_t mutex;
	struct push_stats stats; /* guarded by it */
};
void push_counters_init(struct push_counters *counters, const char *name);
void push_counters_destroy(struct push_counters *counters);

void push_count_request(struct push_counters *counters, unsigned int code, uint64_t duration_ns);
void push_count_drop(struct push_counters *counters, enum push_drop drop, uint64_t count);
/* Add to, or set, the numbers that are given: a field of push_stats. */
#define PUSH_COUNT(counters, field, number)                                                        \
	do {                                                                                       \
		pthread_mutex_lock(&(counters)->mutex);                                            \
		(counters)->stats.field += (number);                                               \
		pthread_mutex_unlock(&(counters)->mutex);                                          \
	} while (0)
#define PUSH_SET(counters, field, number)                                                          \
	do {                                                                                       \
		pthread_mutex_lock(&(counters)->mutex);                                            \
		(counters)->stats.field = (number);                                                \
		pthread_mutex_unlock(&(counters)->mutex);                                          \
	} while (0)
void push_counters_get(struct push_counters *counters, struct push_stats *ret_stats);

/* ---- printing ---- */

/* X(name, COUNTER, GAUGE or HISTOGRAM, labels, where its values are (metrics.c), what it says) */
#define PUSH_METRICS(X)                                                                            \
	X("pyprofd_push_requests_total", COUNTER, "sink, code", REQUESTS,                          \
	  "Requests to collectors, by the status of the answer; none: no answer.")                 \
	X("pyprofd_push_dropped_profiles_total", COUNTER, "sink, reason", DROPS,                   \
	  "What was not sent, by reason: docs/collectors.md.")                                     \
	X("pyprofd_push_bytes_total", COUNTER, "sink", BYTES,                                      \
	  "Bytes of bodies that the collector has taken.")                                         \
	X("pyprofd_push_windows_total", COUNTER, "sink", WINDOWS, "Windows that were sent.")       \
	X("pyprofd_push_repeated_requests_total", COUNTER, "sink", REPEATED,                       \
	  "Requests whose answer was lost, which the collector may have twice.")                   \
	X("pyprofd_push_repeated_files_total", COUNTER, "sink", AGAIN,                             \
	  "Files sent again, as the clock was set back by more than ten minutes.")                 \
	X("pyprofd_push_folded_series_total", COUNTER, "sink", FOLDED,                             \
	  "Series of windows that were too many and went into other_services.")                    \
	X("pyprofd_push_files_waiting", GAUGE, "sink", WAITING,                                    \
	  "Files of the store that are still to be sent.")                                         \
	X("pyprofd_push_lag_seconds", GAUGE, "sink", LAG,                                          \
	  "How long ago the newest window ended that the collector has.")                          \
	X("pyprofd_push_up", GAUGE, "sink", WORKS, "1: the last request was taken; 0: not.")       \
	X("pyprofd_push_duration_seconds", HISTOGRAM, "sink", DURATIONS, "How long requests take.")

/* Writes all of them; nothing without sinks.  now_ms: since 1970. */
void push_metrics_write(const struct push_stats *stats, size_t count, uint64_t now_ms, FILE *out);

#endif
