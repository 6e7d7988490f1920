/* SPDX-License-Identifier: BSD-2-Clause */
/* A strip of use over time: what the windows of one kind have, divided among intervals of equal
 * length.  A window that two intervals share is divided by time, so that the sum over all intervals
 * is exactly that of the windows.  No clock, no global state; one thread per object. */
#ifndef SERVE_STRIP_H
#define SERVE_STRIP_H

#include <stdint.h>

#include "base/json_writer.h"
#include "query/file_totals.h"
#include "serve/answer.h"

#define STRIP_SPAN_MAX_MS (10ULL * 366 * 86400 * 1000) /* ten years */

struct strip_point {
	int64_t value; /* in the kind's unit */
	/* How long somebody recorded, in windows whose sums are known, and in those that have not
	 * been summed, yet or for good.  Both 0: a gap.  Windows that overlap, as the clock was set
	 * back, make more than the interval has. */
	uint64_t recorded_ms, pending_ms;
};

/* Release with strip_release(). */
struct strip {
	uint64_t from_ms, until_ms; /* since 1970 */
	struct strip_point *point;  /* owned */
	uint32_t count;
	uint64_t windows, pending;   /* in the range; pending: of them not yet summed */
	uint64_t broken, unreadable; /* files; the caller's */
	uint64_t left_out_ms;	     /* of windows in the range for whose sums there is no room */
	uint64_t window_ms;	     /* of the longest one: within it the strip knows no times */
};

void strip_release(struct strip *strip);
/* Begins an empty strip; a range shorter than `points` milliseconds gets one interval for each.
 * Returns 0; -EINVAL: no range, or points is 0 or above REQUEST_POINTS_MAX; -ENOMEM. */
int strip_init(struct strip *strip, uint64_t from_ms, uint64_t until_ms, uint32_t points);
/* The three are callbacks of file_totals_read(): context is the strip.  Adds the part of a window
 * that lies in the range.  value: what it has in all, not negative.  A window without a length is
 * of one millisecond. */
void strip_add(void *context, uint64_t start_ms, uint64_t duration_ms, int64_t value);
/* Adds windows that are there, but whose sums are not known yet. */
void strip_add_pending(void *context, uint64_t start_ms, uint64_t duration_ms);
/* Adds windows that are there, and whose sums will not be known: there is no room for them. */
void strip_add_left_out(void *context, uint64_t start_ms, uint64_t duration_ms);
/* Writes "version":1,"kind","unit","from","until","window_ms","windows","pending","broken",
 * "unreadable","full","full_ms","value":[...],"recorded_ms":[...],"pending_ms":[...] into an object
 * that is open; the value of a gap is null; full: windows are left out, of full_ms. */
void strip_put(const struct strip *strip, const char *kind, const char *unit,
	       struct json_writer *json);

/* How long one answer reads files that nobody has asked for yet.  Who asks again while `pending`
 * is not 0 gets more; nothing is read while nobody asks. */
#define STRIP_BUDGET_NS 200000000ULL
/* /api/v1/strip: answers a request for REQUEST_STRIP of one who sees everything.  now_ms: since
 * 1970.  Thread-safe. */
void strip_answer(struct file_totals *totals, const char *store, const struct request *request,
		  uint64_t now_ms, struct answer *ret_answer);

#endif
