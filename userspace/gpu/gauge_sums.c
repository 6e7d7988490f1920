/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu/gauge_sums.h"

#include <errno.h>
#include <string.h>

/* ---- adding ---- */

static void add_value(struct gauge_sum *sum, uint64_t value)
{
	if (value > sum->max)
		sum->max = value;
	if (__builtin_add_overflow(sum->sum, value, &sum->sum))
		sum->sum = UINT64_MAX;
	sum->count++;
}

/* Returns the sums of a GPU; NULL: there is no room. */
static struct gauge_sums_device *device_of(struct gauge_sums *sums,
					   const struct gauges_round_device *device)
{
	for (uint32_t i = 0; i < sums->device_count; i++)
		if (sums->device[i].index == device->index &&
		    !strcmp(sums->device[i].last.uuid, device->gpu.uuid))
			return &sums->device[i];
	if (sums->device_count == GAUGES_DEVICES_MAX)
		return NULL;
	sums->device[sums->device_count] = (struct gauge_sums_device){.index = device->index};
	return &sums->device[sums->device_count++];
}

static void add_reasons(struct gauge_sums_device *sums, const struct gauges_device *gpu)
{
	if (!gpu->has_reasons)
		return;
	sums->reason_rounds++;
	for (unsigned int i = 0; i < GPU_REASON_COUNT; i++)
		sums->reason[i] += (gpu->reasons & gpu_reason_mask((enum gpu_reason)i)) != 0;
}

static void add_device(struct gauge_sums *sums, const struct gauges_round_device *device)
{
	struct gauge_sums_device *into = device_of(sums, device);

	if (!into)
		return;
	into->last = device->gpu;
	into->rounds++;
	for (unsigned int i = 0; i < GPU_GAUGE_COUNT; i++)
		if (device->gpu.has >> i & 1)
			add_value(&into->gauge[i], device->gpu.value[i]);
	add_reasons(into, &device->gpu);
}

static bool is_in_round(const struct gauge_sums_process *process, const struct gauges_round *round)
{
	for (uint32_t i = 0; i < round->process_count; i++)
		if (round->process[i].process.pid == process->pid &&
		    round->process[i].device == process->device)
			return true;
	return false;
}

/* One file of a long run has the processes of hours: ended ones leave their room to others. */
static bool make_room(struct gauge_sums *sums, const struct gauges_round *round)
{
	uint32_t kept = 0;

	if (sums->process_count < GAUGES_PROCESSES_MAX)
		return true;
	for (uint32_t i = 0; i < sums->process_count; i++)
		if (is_in_round(&sums->process[i], round))
			sums->process[kept++] = sums->process[i];
	sums->process_count = kept;
	return kept < GAUGES_PROCESSES_MAX;
}

static struct gauge_sums_process *process_of(struct gauge_sums *sums,
					     const struct gauges_round *round,
					     const struct gauges_round_process *process)
{
	for (uint32_t i = 0; i < sums->process_count; i++)
		if (sums->process[i].pid == process->process.pid &&
		    sums->process[i].device == process->device)
			return &sums->process[i];
	if (!make_room(sums, round))
		return NULL;
	sums->process[sums->process_count] =
		(struct gauge_sums_process){.pid = process->process.pid, .device = process->device};
	return &sums->process[sums->process_count++];
}

static void add_process(struct gauge_sums *sums, const struct gauges_round *round,
			const struct gauges_round_process *process)
{
	struct gauge_sums_process *into = process_of(sums, round, process);

	if (!into)
		return;
	into->rounds++;
	if (process->process.memory_bytes != GAUGES_UNKNOWN_BYTES)
		add_value(&into->memory_bytes, process->process.memory_bytes);
	if (process->process.sm != GAUGES_UNKNOWN_SM)
		add_value(&into->sm, process->process.sm);
}

void gauge_sums_add_devices(struct gauge_sums *sums, const struct gauges_round *round)
{
	for (uint32_t i = 0; i < round->device_count; i++)
		add_device(sums, &round->device[i]);
}

void gauge_sums_add(struct gauge_sums *sums, const struct gauges_round *round)
{
	gauge_sums_add_devices(sums, round);
	for (uint32_t i = 0; i < round->process_count; i++)
		add_process(sums, round, &round->process[i]);
	if (round->left_out > sums->left_out)
		sums->left_out = round->left_out;
}

void gauge_sums_reset(struct gauge_sums *sums)
{
	sums->device_count = sums->process_count = 0;
	sums->left_out = 0;
}

/* ---- asking ---- */

int gauge_sums_device_of(const struct gauge_sums *sums, uint32_t pid)
{
	int device = -ENOENT;

	for (uint32_t i = 0; i < sums->process_count; i++) {
		if (sums->process[i].pid != pid)
			continue;
		if (device >= 0)
			return -EMFILE;
		device = (int)sums->process[i].device;
	}
	/* It may be on another one, too. */
	return device >= 0 && sums->left_out ? -EMFILE : device;
}
