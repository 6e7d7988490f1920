/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds numbers from files: a sum that overflows becomes the largest or smallest number of its
 * type. */
#ifndef BASE_SATURATING_H
#define BASE_SATURATING_H

#include <stdint.h>

static inline int64_t add_saturating(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

static inline int64_t magnitude_of(int64_t value)
{
	return value >= 0 ? value : value == INT64_MIN ? INT64_MAX : -value;
}

#endif
