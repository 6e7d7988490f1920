/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/own_cost.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"

#define STATM_BYTES 256U /* seven numbers */

uint64_t own_cost_cpu_ns(void)
{
	struct rusage usage = {0};

	(void)getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_SEC +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NS_PER_US;
}

uint64_t own_cost_rss_bytes(void)
{
	OWNED_MEM char *text = NULL;
	const char *resident;

	if (read_file("/proc/self/statm", STATM_BYTES, &text, NULL))
		return 0;
	resident = strchr(text, ' '); /* behind the size */
	return resident ? strtoull(resident, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}
