/* SPDX-License-Identifier: BSD-2-Clause */
#include "child/perf_opener.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

static struct perf_event_attr mappings_attr(void)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_EVENT_MAPPINGS_SAMPLE_TYPE,
		.sample_id_all = 1,
		.exclude_kernel = 1,
		.mmap = 1,
		.mmap2 = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		/* wakeup_events counts only samples; side-band records wake by bytes. */
		.watermark = 1,
		.wakeup_watermark = 1,
	};
}

static struct perf_event_attr clock_attr(uint32_t hz)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.exclude_idle = 1,
		.exclude_guest = 1,
		.sample_period = NS_PER_SEC / hz,
	};
}

static struct perf_event_attr cycles_attr(uint32_t hz)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.exclude_guest = 1,
		.freq = 1,
		.sample_freq = hz,
	};
}

static bool is_sound(const struct perf_event_request *request)
{
	return request->kind < PERF_EVENT_KINDS && request->cpu <= INT_MAX &&
	       (request->hz || request->kind == PERF_EVENT_MAPPINGS);
}

int perf_event_open_here(const struct perf_event_request *request, int *ret_fd)
{
	struct perf_event_attr attr;
	int fd;

	if (!is_sound(request))
		return -EINVAL;
	switch ((enum perf_event_kind)request->kind) {
	case PERF_EVENT_CPU_CLOCK:
		attr = clock_attr(request->hz);
		break;
	case PERF_EVENT_CYCLES:
		attr = cycles_attr(request->hz);
		break;
	default:
		attr = mappings_attr();
	}
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)request->cpu, -1,
			  PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}
