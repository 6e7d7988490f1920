/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/process_cpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"

uint64_t process_cpu_ns(pid_t pid)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &time))
		return 0;
	return (uint64_t)time.tv_sec * NS_PER_SEC + (uint64_t)time.tv_nsec;
}

uint64_t process_delay_ns(pid_t pid)
{
	OWNED_MEM char *text = NULL;
	uint64_t delay_ns;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	if (read_file(path, 128, &text, NULL) || sscanf(text, "%*u %" SCNu64, &delay_ns) != 1)
		return 0;
	return delay_ns;
}
