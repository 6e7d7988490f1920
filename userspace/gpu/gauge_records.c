/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu/gauge_records.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/context_table.h"
#include "base/cleanup.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "gpu/gauge_sums.h"
#include "profile/gpu_gauges.h"
#include "windows/process_record.h"
#include "windows/record_sink.h"
#include "windows/source.h"

#define DEVICE_CHARS 24U

/* What a row says besides whose it is. */
struct about {
	uint32_t device;
	const char *gauge, *unit;
	const char *reason; /* "": none */
};

static int64_t as_value(uint64_t number)
{
	return number < INT64_MAX ? (int64_t)number : INT64_MAX;
}

static int put(const struct record_sink *sink, struct record *record, const struct about *about,
	       const struct gauge_sum *sum)
{
	char device[DEVICE_CHARS];
	int err;

	record_next(record);
	record->sample.value[PP_GPU_GAUGE_SUM] = as_value(sum->sum);
	record->sample.value[PP_GPU_GAUGE_READINGS] = as_value(sum->count);
	record->sample.value[PP_GPU_GAUGE_MAX] = as_value(sum->max);
	snprintf(device, sizeof(device), GPU_DEVICE_PREFIX "%" PRIu32, about->device);
	err = record_label(record, sink->strings, "device", device);
	if (!err)
		err = record_about(record, sink->strings, "gauge", about->gauge);
	if (!err)
		err = record_label(record, sink->strings, "reason", about->reason);
	if (!err)
		err = record_label(record, sink->strings, "unit", about->unit);
	return err ? err : record_put(sink, record);
}

/* ---- GPUs ---- */

static int put_reasons(const struct record_sink *sink, struct record *record,
		       const struct gauge_sums_device *gpu)
{
	struct about about = {gpu->index, GPU_CLOCK_EVENT, GPU_UNIT_OF_SHARES, ""};
	int err = 0;

	if (gpu->reason_rounds)
		err = put(sink, record, &about, &(struct gauge_sum){.count = gpu->reason_rounds});
	for (unsigned int i = 0; i < GPU_REASON_COUNT && !err; i++) {
		about.reason = gpu_reasons[i].name;
		if (gpu->reason[i])
			err = put(sink, record, &about,
				  &(struct gauge_sum){.sum = gpu->reason[i] * GPU_SHARE_MAX,
						      .max = GPU_SHARE_MAX});
	}
	return err;
}

static int put_device(const struct record_sink *sink, const struct gauge_sums_device *gpu)
{
	struct record record;
	int err =
		record_begin(&record, sink->strings, PP_PROFILE_GPU, (struct pp_process_id){}, "");

	if (!err)
		err = record_label(&record, sink->strings, "uuid", gpu->last.uuid);
	if (!err)
		err = record_label(&record, sink->strings, "name", gpu->last.name);
	record.own_labels = record.sample.label_count;
	for (unsigned int i = 0; i < GPU_GAUGE_COUNT && !err; i++) {
		const struct about about = {gpu->index, gpu_gauges[i].name, gpu_gauges[i].unit, ""};

		if (gpu->gauge[i].count)
			err = put(sink, &record, &about, &gpu->gauge[i]);
	}
	return err ? err : put_reasons(sink, &record, gpu);
}

/* ---- processes ---- */

static struct process *profiled_process(const struct services *services, uint32_t pid)
{
	struct process *process = process_table_find_tgid(services->processes, pid);

	if (process && services->is_filtered &&
	    !(context_table_flags(process) & PP_CONTEXT_MATCHES))
		return NULL;
	return process;
}

static int put_figures(const struct record_sink *sink, struct record *record,
		       const struct gauge_sums_process *of)
{
	const struct gauge_sum one = {.count = of->rounds, .sum = of->rounds, .max = 1};
	struct about about = {of->device, GPU_PROCESSES, "", ""};
	int err = put(sink, record, &about, &one);

	about.gauge = GPU_PROCESS_MEMORY;
	about.unit = "bytes";
	if (!err && of->memory_bytes.count)
		err = put(sink, record, &about, &of->memory_bytes);
	about.gauge = GPU_PROCESS_SM;
	about.unit = GPU_UNIT_OF_SHARES;
	return !err && of->sm.count ? put(sink, record, &about, &of->sm) : err;
}

static int put_process(const struct record_sink *sink, const struct gauge_sums_process *of,
		       const struct process *process)
{
	struct record record;
	int err = process_record_begin(sink, PP_PROFILE_GPU, process->id, process->comm, &record);

	return err ? err : put_figures(sink, &record, of);
}

/* Adds the processes that are not profiled, and those that found no room. */
static int put_others(const struct record_sink *sink, const struct gauge_sums *sums)
{
	const struct gauge_sum left_out = {
		.count = 1, .sum = sums->left_out, .max = sums->left_out};
	const struct about about = {0, GPU_PROCESSES, "", ""};
	struct record record;
	int err = record_begin(&record, sink->strings, PP_PROFILE_GPU, (struct pp_process_id){},
			       RECORD_OTHERS);

	for (uint32_t i = 0; i < sums->process_count && !err; i++)
		if (!profiled_process(sink->services, sums->process[i].pid))
			err = put_figures(sink, &record, &sums->process[i]);
	return !err && sums->left_out ? put(sink, &record, &about, &left_out) : err;
}

/* Lists the profiled processes, on each of their GPUs. */
static int take_turns(const struct gauge_sums *sums, const struct services *services,
		      struct record_turn **ret_turn, size_t *ret_count)
{
	struct record_turn *turn = calloc(sums->process_count + 1, sizeof(*turn));
	size_t count = 0;

	if (!turn)
		return -ENOMEM;
	for (uint32_t i = 0; i < sums->process_count; i++) {
		const struct gauge_sum *bytes = &sums->process[i].memory_bytes;
		struct process *process = profiled_process(services, sums->process[i].pid);

		if (process)
			turn[count++] = (struct record_turn){
				.of = &sums->process[i],
				.size = bytes->count ? bytes->sum / bytes->count : 0,
				.user = process_user_kept(process),
				.pid = process->id.tgid};
	}
	record_take_turns(turn, count);
	*ret_turn = turn;
	*ret_count = count;
	return 0;
}

int gauge_records_put(const struct gauge_sums *sums, const struct record_sink *to)
{
	OWNED_MEM struct record_turn *turn = NULL;
	struct record_sink sink = *to;
	size_t count = 0;
	int err = 0;

	if (!sums->device_count || !sink.strings)
		return 0;
	for (uint32_t i = 0; i < sums->device_count && !err; i++)
		err = put_device(&sink, &sums->device[i]);
	if (!err)
		err = take_turns(sums, sink.services, &turn, &count);
	for (size_t i = 0; i < count && !err; i++) {
		const struct gauge_sums_process *of = turn[i].of;

		sink.is_other = sink.profiles && i >= RECORD_PROCESSES_MAX;
		err = put_process(&sink, of, profiled_process(sink.services, of->pid));
	}
	sink.is_other = false;
	return !err && sink.profiles ? put_others(&sink, sums) : err;
}
