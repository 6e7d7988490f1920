/* SPDX-License-Identifier: BSD-2-Clause */
/* A slice of the agent's time.  Work that may be long looks after each step whether its slice is
 * over, and goes on in a later one exactly where it was, so that the loop serves all others in
 * between.  docs/design/agent.md. */
#ifndef BASE_SLICE_H
#define BASE_SLICE_H

#include <stdbool.h>

#include "base/clock.h"

struct slice {
	uint64_t ends_ns;
};

static inline struct slice slice_begin(uint64_t length_ns)
{
	return (struct slice){.ends_ns = mono_ns() + length_ns};
}
/* NULL: it never ends. */
static inline bool slice_is_over(const struct slice *slice)
{
	return slice && mono_ns() >= slice->ends_ns;
}

#endif
