/* SPDX-License-Identifier: BSD-2-Clause */
#include "gauges/child.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "child/sandbox.h"
#include "gauges/nvml.h"

/* Waits where the agent has not read what was written before. */
static void put(const struct gauges_record *record)
{
	ssize_t size;

	do
		size = write(CHILD_GAUGES_FD, record, sizeof(*record));
	while (size < 0 && errno == EINTR);
	if (size != (ssize_t)sizeof(*record))
		_exit(0); /* the agent has ended */
}

static _Noreturn void fail(enum gauges_failure failure, int code)
{
	const struct gauges_record record = {
		.kind = GAUGES_FAILED, .count = (uint32_t)failure, .code = code};

	put(&record);
	_exit(0);
}

static void put_processes(uint32_t round, uint32_t device, const struct gauges_process *process,
			  uint32_t count)
{
	struct gauges_record record = {.kind = GAUGES_PROCESSES, .round = round, .device = device};

	for (uint32_t done = 0; done < count; done += record.count) {
		const uint32_t left = count - done;

		record.count = left < GAUGES_ROWS_MAX ? left : GAUGES_ROWS_MAX;
		memcpy(record.process, process + done, record.count * sizeof(*process));
		put(&record);
	}
}

static void put_round(struct nvml *nvml, uint32_t round)
{
	static struct gauges_process process[GAUGES_PROCESSES_MAX];
	const uint32_t count = nvml_count(nvml);
	struct gauges_record record = {.round = round, .kind = GAUGES_DEVICE};
	uint32_t room = GAUGES_PROCESSES_MAX, devices = 0, left_out = 0, found, beyond;

	for (uint32_t i = 0; i < count; i++) {
		record.device = i;
		if (nvml_read_device(nvml, i, &record.gpu))
			continue; /* it has fallen off its bus */
		put(&record);
		devices++;
		found = nvml_read_processes(nvml, process, room, &beyond);
		put_processes(round, i, process, found);
		room -= found;
		left_out += beyond;
	}
	if (!devices)
		fail(GAUGES_NO_DEVICE, 0);
	record = (struct gauges_record){.round = round, .kind = GAUGES_END, .count = left_out};
	put(&record);
}

/* Sleeps until a second after the last time.  Seconds that NVML took, or in which the machine or
 * this process stood still, are not made up for. */
static void await_next(struct timespec *next)
{
	struct timespec now;

	next->tv_sec++;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec > next->tv_sec ||
	    (now.tv_sec == next->tv_sec && now.tv_nsec >= next->tv_nsec))
		*next = now;
	else
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL);
}

_Noreturn void gauges_child_main(void)
{
	OWNED(nvml) struct nvml *nvml = NULL;
	enum gauges_failure failure;
	struct timespec next;
	int code, err;

	err = sandbox_begin(CHILD_GAUGES);
	if (err)
		fail(GAUGES_NO_SANDBOX, -err);
	err = nvml_open(&nvml, &failure, &code);
	if (err == -ENODEV)
		fail(failure, code);
	if (err)
		_exit(1);
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (uint32_t round = 1;; round++) {
		put_round(nvml, round);
		await_next(&next);
	}
}
