/* SPDX-License-Identifier: BSD-2-Clause */
/* Clocks.  All times in the project are CLOCK_MONOTONIC nanoseconds unless a name says
 * otherwise. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_SEC 1000000000ULL
#define NS_PER_MS 1000000ULL
#define NS_PER_US 1000ULL

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NS_PER_SEC + (uint64_t)now.tv_nsec;
}
static inline uint64_t mono_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}
static inline uint64_t wall_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

#endif
