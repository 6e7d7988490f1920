/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/gpu_usage.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"

void gpu_usage_release(struct gpu_usage *usage)
{
	free(usage->device);
	free(usage->process);
	index_table_release(&usage->device_index);
	index_table_release(&usage->process_index);
	*usage = (struct gpu_usage){0};
}

/* ---- who is meant ---- */

static bool device_equal(const void *context, uint32_t index, const void *key)
{
	const struct gpu_usage *usage = context;
	const struct gpu_usage_device *a = &usage->device[index];
	const struct gauge_line *b = key;

	return a->device == b->device && !strcmp(a->uuid, b->uuid);
}

static bool process_equal(const void *context, uint32_t index, const void *key)
{
	const struct gpu_usage *usage = context;
	const struct gpu_usage_process *a = &usage->process[index];
	const struct gauge_process_line *b = key;

	return a->pid == b->pid && a->device == b->device && !strcmp(a->comm, b->comm);
}

static uint32_t hash_of(const char *text, uint64_t number)
{
	return (uint32_t)(XXH3_64bits(text, strlen(text)) ^ XXH3_64bits(&number, sizeof(number)));
}

/* *ret_device is NULL where there is no room. */
static int find_device(struct gpu_usage *usage, const struct gauge_line *line,
		       struct gpu_usage_device **ret_device)
{
	const uint32_t hash = hash_of(line->uuid, line->device);
	uint32_t at;
	int err;

	*ret_device = NULL;
	if (!index_table_find(&usage->device_index, hash, device_equal, usage, line, &at)) {
		if (usage->device_count == GPU_USAGE_DEVICES_MAX) {
			usage->left_out++;
			return 0;
		}
		err = ARRAY_RESERVE(usage->device, usage->device_count, usage->device_capacity);
		if (!err)
			err = index_table_add(&usage->device_index, hash, usage->device_count);
		if (err)
			return err;
		at = usage->device_count++;
		usage->device[at] = (struct gpu_usage_device){.device = line->device};
		memcpy(usage->device[at].uuid, line->uuid, sizeof(line->uuid));
	}
	*ret_device = &usage->device[at];
	return 0;
}

static int find_process(struct gpu_usage *usage, const struct gauge_process_line *line,
			struct gpu_usage_process **ret_process)
{
	const uint32_t hash = hash_of(line->comm, line->pid * 31 + line->device);
	uint32_t at;
	int err;

	*ret_process = NULL;
	if (!index_table_find(&usage->process_index, hash, process_equal, usage, line, &at)) {
		if (usage->process_count == GPU_USAGE_PROCESSES_MAX) {
			usage->left_out++;
			return 0;
		}
		err = ARRAY_RESERVE(usage->process, usage->process_count, usage->process_capacity);
		if (!err)
			err = index_table_add(&usage->process_index, hash, usage->process_count);
		if (err)
			return err;
		at = usage->process_count++;
		usage->process[at] =
			(struct gpu_usage_process){.pid = line->pid, .device = line->device};
		memcpy(usage->process[at].comm, line->comm, sizeof(line->comm));
	}
	*ret_process = &usage->process[at];
	return 0;
}

/* ---- sums ---- */

static void add_figures(struct gpu_usage_sum *sum, const struct gpu_figures *figures,
			double seconds)
{
	if (!figures->is_known || seconds <= 0)
		return;
	if (sum->seconds <= 0 || figures->min < sum->min)
		sum->min = figures->min;
	if (figures->max > sum->max)
		sum->max = figures->max;
	sum->sum += (double)figures->mean * seconds;
	sum->seconds += seconds;
}

static int add_device(struct gpu_usage *usage, const struct gauge_line *line)
{
	const double seconds = (double)line->seconds;
	struct gpu_usage_device *device;
	int err = find_device(usage, line, &device);

	if (err || !device)
		return err;
	memcpy(device->name, line->name, sizeof(device->name));
	device->seconds += seconds;
	device->memory_total_bytes = line->memory_total_bytes;
	device->power_limit = line->power_limit;
	for (unsigned int i = 0; i < GPU_GAUGE_COUNT; i++)
		add_figures(&device->gauge[i], &line->gauge[i], seconds);
	if (line->has_reasons)
		device->reason_seconds += seconds;
	for (unsigned int i = 0; i < GPU_REASON_COUNT; i++)
		device->reason[i] += line->reason_share[i] * seconds / GPU_SHARE_MAX;
	return 0;
}

static bool is_selected(const struct select *select, const struct gauge_process_line *line)
{
	bool is_wanted = !select || !select->pid_count;

	if (!line->pid && select && (select->pid_count || select->comm))
		return false; /* who the others are is not known */
	for (unsigned int i = 0; !is_wanted && i < select->pid_count; i++)
		is_wanted = select->pid[i] >= 0 && (uint64_t)select->pid[i] == line->pid;
	return is_wanted &&
	       (!select || !select->comm || !regexec(select->comm, line->comm, 0, NULL, 0));
}

static int add_process(struct gpu_usage *usage, const struct gauge_process_line *line)
{
	struct gpu_usage_process *process;
	int err;

	if (!is_selected(usage->select, line))
		return 0;
	if (!line->pid) {
		usage->has_others = true;
		return 0;
	}
	err = find_process(usage, line, &process);
	if (err || !process)
		return err;
	process->seconds += (double)line->seconds;
	add_figures(&process->memory_bytes, &line->memory_bytes, (double)line->seconds);
	add_figures(&process->sm, &line->sm, (double)line->seconds);
	return 0;
}

int gpu_usage_add(struct gpu_usage *usage, const char *comment)
{
	struct gauge_process_line process;
	struct gauge_line line;

	if (strncmp(comment, GAUGE_LINE_PREFIX, strlen(GAUGE_LINE_PREFIX)) != 0)
		return 0;
	if (gauge_line_parse(comment, &line))
		return add_device(usage, &line);
	return gauge_process_line_parse(comment, &process) ? add_process(usage, &process) : 0;
}

double gpu_usage_mean(const struct gpu_usage_sum *sum)
{
	return sum->seconds > 0 ? sum->sum / sum->seconds : 0;
}

static int compare_devices(const void *a, const void *b)
{
	const struct gpu_usage_device *left = a, *right = b;

	if (left->device != right->device)
		return left->device < right->device ? -1 : 1;
	return strcmp(left->uuid, right->uuid);
}

static int compare_processes(const void *a, const void *b)
{
	const struct gpu_usage_process *left = a, *right = b;
	const double left_bytes = gpu_usage_mean(&left->memory_bytes);
	const double right_bytes = gpu_usage_mean(&right->memory_bytes);

	if (left_bytes > right_bytes || left_bytes < right_bytes)
		return left_bytes > right_bytes ? -1 : 1;
	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	return left->device < right->device ? -1 : left->device > right->device;
}

void gpu_usage_sort(struct gpu_usage *usage)
{
	if (usage->device_count)
		qsort(usage->device, usage->device_count, sizeof(usage->device[0]),
		      compare_devices);
	if (usage->process_count)
		qsort(usage->process, usage->process_count, sizeof(usage->process[0]),
		      compare_processes);
	/* The order has changed. */
	index_table_release(&usage->device_index);
	index_table_release(&usage->process_index);
}
