/* SPDX-License-Identifier: BSD-2-Clause */
/* What each window of a profile added, for the time map of the flame graph's page. */
#ifndef READER_PAGE_TIMES_H
#define READER_PAGE_TIMES_H

#include "base/json_writer.h"
#include "pprof/profile_read.h"
#include "render/flame_tree.h"

/* Beyond, the page has no time map: 12 bytes each in it. */
#define PAGE_TIMES_MAX_DELTAS (2U << 20)

struct page_window {
	uint64_t start_wall_ns, duration_ns;
	uint32_t first; /* delta */
};

struct page_delta {
	uint32_t row;
	int64_t value;
};

/* Release with page_times_release(). */
struct page_times {
	struct page_window *window;
	uint32_t window_count, window_capacity;
	struct page_delta *delta;
	uint32_t delta_count, delta_capacity;
	bool is_full;
};

void page_times_release(struct page_times *times);
/* From a window_done.  0 or -ENOMEM. */
int page_times_add(struct page_times *times, const struct profile_window *window);
/* Writes "times":{"start":[MS...],"duration":[MS...],"first":[...],"sample":[...],"value":[...]}:
 * window i has the values first[i] to first[i + 1], each of a sample of the page.  Nothing where
 * there is one window, or too much. */
void page_times_write(struct json_writer *json, const struct page_times *times,
		      const struct flame_tree *tree);

#endif
