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

static inline uint64_t timespec_ns(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * NS_PER_SEC + (uint64_t)time->tv_nsec;
}
/* Returns 0 for a clock that is not there, as the CPU time of what has ended. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	return clock_gettime(clock, &now) ? 0 : timespec_ns(&now);
}
static inline uint64_t mono_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}
static inline uint64_t wall_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}
/* Returns in how many ms a time comes, rounded up, or longest_ms if that is earlier. */
static inline int ms_until(uint64_t due_ns, int longest_ms)
{
	const uint64_t now_ns = mono_ns();
	const uint64_t ms = due_ns > now_ns ? (due_ns - now_ns) / NS_PER_MS + 1 : 0;

	return ms < (uint64_t)longest_ms ? (int)ms : longest_ms;
}

#endif
