// SPDX-License-Identifier: BSD-2-Clause
/* bursts WORK_US REST_US SECONDS   Works for WORK_US and sleeps for about REST_US, on the last CPU,
 * before others that are there.  Prints its CPU time in ns and the number of bursts.  The rests
 * vary: nothing comes in step with them. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv)
{
	const uint64_t work_ns = argc > 3 ? strtoull(argv[1], NULL, 10) * 1000 : 0;
	const uint64_t rest_ns = argc > 3 ? strtoull(argv[2], NULL, 10) * 1000 : 0;
	const uint64_t end_ns = now_ns(CLOCK_MONOTONIC) +
				(argc > 3 ? strtoull(argv[3], NULL, 10) : 0) * 1000000000U;
	const struct sched_param first = {.sched_priority = 1};
	uint64_t cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID), bursts = 0, chance = 1;
	cpu_set_t set;

	if (!work_ns || !rest_ns || rest_ns > 500000000)
		return 2;
	CPU_ZERO(&set);
	CPU_SET((size_t)sysconf(_SC_NPROCESSORS_ONLN) - 1, &set);
	if (sched_setaffinity(0, sizeof(set), &set) || sched_setscheduler(0, SCHED_FIFO, &first))
		return 1;
	while (now_ns(CLOCK_MONOTONIC) < end_ns) {
		const uint64_t begin_ns = now_ns(CLOCK_MONOTONIC);
		struct timespec rest = {};

		while (now_ns(CLOCK_MONOTONIC) - begin_ns < work_ns)
			;
		bursts++;
		chance = chance * 6364136223846793005U + 1442695040888963407U;
		rest.tv_nsec = (long)(rest_ns / 2 + (chance >> 33) % rest_ns);
		nanosleep(&rest, NULL);
	}
	printf("%llu %llu\n", (unsigned long long)(now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns),
	       (unsigned long long)bursts);
	return 0;
}
