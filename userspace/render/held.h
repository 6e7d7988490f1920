/* SPDX-License-Identifier: BSD-2-Clause */
/* What is held at the end of each window (kind alloc), by row of the profile: the last window's,
 * the peak's, what has been held for a time, and how it grew.  Fed window by window while the
 * profile is read, in any order; a row takes as much memory for a day as for ten windows. */
#ifndef RENDER_HELD_H
#define RENDER_HELD_H

#include <stdint.h>

#include "pprof/profile_read.h"

/* The range is divided into this many parts at most, and each has its last window's values. */
#define HELD_POINTS 16U
/* What has been held for a time T is the least of all windows of the last T, in parts of T / 8; the
 * oldest part begins up to T / 8 before that. */
#define HELD_PARTS 8U
#define HELD_SLOTS (HELD_PARTS + 2U)
/* Rows with figures; a hostile file may have more, which are counted and left out. */
#define HELD_ROWS_MAX (1U << 18)

/* One window and what a row has in it; a value of another window is an old one, and means 0. */
struct held_value {
	int64_t bytes;
	uint32_t window; /* its number, from 1 */
};

struct held_least {
	int64_t bytes;	  /* of the windows that have the row */
	uint32_t windows; /* how many these are */
	uint64_t part;
};

struct held_row {
	struct held_value now; /* of the window that is added */
	struct held_value last, peak;
	struct held_value point[HELD_POINTS];
	struct held_least least[HELD_SLOTS];
};

/* Which window a value is of. */
struct held_window {
	uint64_t end_ns; /* 0: none */
	uint32_t number;
};

/* Release with held_release().  Begin with {.older_ns = ...}. */
struct held {
	uint64_t older_ns;    /* T; not 0 */
	struct held_row *row; /* owned; by row of the profile */
	uint32_t count, capacity;
	uint32_t windows; /* with a time */
	uint64_t first_end_ns;
	struct held_window last, peak;
	int64_t peak_bytes, last_bytes;
	/* The points: part i ends at (first_point + i + 1) * point_ns. */
	uint64_t point_ns, first_point;
	struct held_window point[HELD_POINTS];
	uint32_t points; /* up to the last one with a window */
	struct {
		uint64_t part;
		uint32_t windows;
	} least[HELD_SLOTS];
	uint64_t left_out; /* values of rows beyond HELD_ROWS_MAX, windows without a time */
};

void held_release(struct held *held);
/* Adds a window whose values are bytes held.  Returns 0 or -ENOMEM. */
int held_add_window(struct held *held, const struct profile_window *window);

/* Return a row's bytes: at the end of the last window; at the peak; of those at the end, what has
 * been held for T; at the end of the i-th point, which has a window or not. */
int64_t held_at_end(const struct held *held, uint32_t row);
int64_t held_at_peak(const struct held *held, uint32_t row);
int64_t held_for_long(const struct held *held, uint32_t row);
bool held_has_point(const struct held *held, uint32_t point);
int64_t held_at_point(const struct held *held, uint32_t row, uint32_t point);
/* Returns T, or the length of what was read where that is shorter. */
uint64_t held_long_ns(const struct held *held);

#endif
