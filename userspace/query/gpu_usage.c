/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/gpu_usage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/kinds.h"
#include "base/saturating.h"
#include "profile/profile_data.h"
#include "profile/record.h"

void gpu_usage_release(struct gpu_usage *usage)
{
	free(usage->device);
	free(usage->process);
	*usage = (struct gpu_usage){0};
}

struct input_options gpu_usage_input(struct select *select)
{
	static const char *const labels[] = {"pid",  "comm",  "device", "uuid",
					     "name", "gauge", "reason", NULL};

	select->pid_count = select->label_count = 0;
	select->comm = select->thread = NULL;
	return (struct input_options){.select = select,
				      .kind = kind_get(PP_PROFILE_GPU)->name,
				      .keep_labels = labels,
				      .drop_stacks = true,
				      .may_be_none = true};
}

/* ---- whose a row is ---- */

struct row {
	uint32_t row;
	bool is_process;
	int64_t pid, device;
	const char *name; /* of a process: comm; of a GPU: uuid */
};

static int compare_rows(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	return ORDER(a->is_process, b->is_process)
		       ?: ORDER(a->device, b->device)
		       ?: ORDER(a->pid, b->pid) ?: strcmp(a->name, b->name);
}

static bool is_selected(const struct select *select, const struct row *row)
{
	bool is_wanted = !select || !select->pid_count;

	for (unsigned int i = 0; !is_wanted && i < select->pid_count; i++)
		is_wanted = select->pid[i] == row->pid;
	return is_wanted &&
	       (!select || !select->comm || !regexec(select->comm, row->name, 0, NULL, 0));
}

/* Returns whether it is a row of a GPU or of a process that is meant. */
static bool read_row(struct gpu_usage *usage, const struct profile *profile, uint32_t i,
		     const struct select *select, struct row *ret_row)
{
	const char *device = record_text(profile, i, "device");
	const size_t prefix = strlen(GPU_DEVICE_PREFIX);
	struct row row = {.row = i,
			  .pid = record_number(profile, i, "pid"),
			  .name = record_text(profile, i, "comm")};

	if (strncmp(device, GPU_DEVICE_PREFIX, prefix) != 0)
		return false;
	row.device = strtoll(device + prefix, NULL, 10);
	row.is_process = row.pid || row.name[0];
	if (!row.is_process) {
		row.name = record_text(profile, i, "uuid");
	} else if (!row.pid) {
		/* Which ones these are is not known. */
		usage->has_others |= !select || (!select->pid_count && !select->comm);
		return false;
	} else if (!is_selected(select, &row)) {
		return false;
	}
	*ret_row = row;
	return true;
}

/* ---- sums ---- */

static void add_sum(struct gpu_usage_sum *sum, const int64_t *value)
{
	if (value[PP_GPU_GAUGE_SUM] > 0)
		sum->sum += (double)value[PP_GPU_GAUGE_SUM];
	sum->readings = add_saturating(sum->readings, value[PP_GPU_GAUGE_READINGS]);
	if (value[PP_GPU_GAUGE_MAX] > sum->max)
		sum->max = value[PP_GPU_GAUGE_MAX];
}

static void add_to_device(struct gpu_usage_device *device, const struct profile *profile,
			  uint32_t row, const int64_t *value)
{
	const char *name = record_text(profile, row, "gauge");
	const enum gpu_gauge gauge = gpu_gauge_find(name);
	enum gpu_reason reason;

	device->name = record_text(profile, row, "name");
	if (gauge < GPU_GAUGE_COUNT)
		add_sum(&device->gauge[gauge], value);
	if (strcmp(name, GPU_CLOCK_EVENT) != 0)
		return;
	device->reason_readings =
		add_saturating(device->reason_readings, value[PP_GPU_GAUGE_READINGS]);
	reason = gpu_reason_find(record_text(profile, row, "reason"));
	if (reason < GPU_REASON_COUNT && value[PP_GPU_GAUGE_SUM] > 0)
		device->reason[reason] += (double)value[PP_GPU_GAUGE_SUM] / GPU_SHARE_MAX;
}

static void add_to_process(struct gpu_usage_process *process, const struct profile *profile,
			   uint32_t row, const int64_t *value)
{
	const char *name = record_text(profile, row, "gauge");

	if (!strcmp(name, GPU_PROCESS_MEMORY))
		add_sum(&process->memory_bytes, value);
	if (!strcmp(name, GPU_PROCESS_SM))
		add_sum(&process->sm, value);
}

double gpu_usage_mean(const struct gpu_usage_sum *sum)
{
	return sum->readings > 0 ? sum->sum / (double)sum->readings : 0;
}

static int compare_processes(const void *a, const void *b)
{
	const struct gpu_usage_process *left = a, *right = b;

	return ORDER(gpu_usage_mean(&right->memory_bytes), gpu_usage_mean(&left->memory_bytes))
		       ?: ORDER(left->pid, right->pid) ?: ORDER(left->device, right->device);
}

static void begin_process(struct gpu_usage *usage, const struct row *row)
{
	usage->process[usage->process_count++] = (struct gpu_usage_process){
		.pid = row->pid, .device = row->device, .comm = row->name};
}

static void begin_device(struct gpu_usage *usage, const struct row *row)
{
	usage->device[usage->device_count++] =
		(struct gpu_usage_device){.device = row->device, .uuid = row->name};
}

/* Rows that belong together follow each other, those of GPUs first. */
static void add_rows(struct gpu_usage *usage, const struct profile *profile, const struct row *row,
		     size_t count)
{
	const int at = record_values_at(profile, PP_PROFILE_GPU);

	for (size_t i = 0; i < count; i++) {
		const int64_t *value = profile_row_values(profile, row[i].row) + at;
		const bool is_new = !i || compare_rows(&row[i - 1], &row[i]) != 0;

		if (row[i].is_process) {
			if (is_new)
				begin_process(usage, &row[i]);
			add_to_process(&usage->process[usage->process_count - 1], profile,
				       row[i].row, value);
			continue;
		}
		if (is_new && usage->device_count == GPU_USAGE_DEVICES_MAX)
			usage->left_out++;
		else if (is_new)
			begin_device(usage, &row[i]);
		if (!usage->left_out)
			add_to_device(&usage->device[usage->device_count - 1], profile, row[i].row,
				      value);
	}
}

static int list_rows(struct gpu_usage *usage, const struct profile *profile,
		     const struct select *select)
{
	OWNED_MEM struct row *row = calloc(profile->row_count + 1U, sizeof(*row));
	size_t count = 0, processes = 0, devices;

	if (!row)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->row_count; i++)
		if (read_row(usage, profile, i, select, &row[count]))
			processes += row[count++].is_process;
	qsort(row, count, sizeof(*row), compare_rows);
	devices = count - processes < GPU_USAGE_DEVICES_MAX ? count - processes
							    : GPU_USAGE_DEVICES_MAX;
	usage->device = calloc(devices + 1, sizeof(*usage->device));
	usage->process = calloc(processes + 1, sizeof(*usage->process));
	if (!usage->device || !usage->process)
		return -ENOMEM;
	add_rows(usage, profile, row, count);
	return 0;
}

int gpu_usage_fill(struct gpu_usage *usage, const struct profile *profile,
		   const struct select *select)
{
	int err;

	if (record_values_at(profile, PP_PROFILE_GPU) < 0)
		return 0;
	err = list_rows(usage, profile, select);
	if (!err)
		qsort(usage->process, usage->process_count, sizeof(*usage->process),
		      compare_processes);
	return err;
}
