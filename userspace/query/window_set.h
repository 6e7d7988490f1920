/* SPDX-License-Identifier: BSD-2-Clause */
/* A set of windows, or of files, by the times in their names. */
#ifndef QUERY_WINDOW_SET_H
#define QUERY_WINDOW_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index_table.h"

struct window_times {
	uint64_t start_ms, duration_ms;
};

/* A zeroed one is empty.  Release with window_set_release(). */
struct window_set {
	struct window_times *item;
	uint32_t count, capacity;
	struct index_table index;
};

void window_set_release(struct window_set *set);
bool window_set_has(const struct window_set *set, uint64_t start_ms, uint64_t duration_ms);
/* Adds a window, unless the set has it.  Returns 0 or -ENOMEM. */
int window_set_add(struct window_set *set, uint64_t start_ms, uint64_t duration_ms);

#endif
