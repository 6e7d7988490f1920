/* SPDX-License-Identifier: BSD-2-Clause */
/* The median of measurements, some of which had an interrupt in them. */
#ifndef BASE_MEDIAN_H
#define BASE_MEDIAN_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static inline int median_compare(const void *a, const void *b)
{
	const uint64_t value_a = *(const uint64_t *)a, value_b = *(const uint64_t *)b;

	return (value_a > value_b) - (value_a < value_b);
}

/* Sorts the values, of which there is at least one, and returns the one in the middle. */
static inline uint64_t median_take(uint64_t *value, size_t count)
{
	qsort(value, count, sizeof(*value), median_compare);
	return value[count / 2];
}

#endif
