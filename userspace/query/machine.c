/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/machine.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/kinds.h"
#include "base/saturating.h"
#include "profile/comments.h"
#include "profile/profile_data.h"
#include "profile/record.h"

void machine_release(struct machine *machine)
{
	free(machine->process);
	*machine = (struct machine){0};
}

struct input_options machine_input(void)
{
	static const char *const labels[] = {"pid", "comm", "state", NULL};

	return (struct input_options){.kind = kind_get(PP_PROFILE_LEDGER)->name,
				      .keep_labels = labels,
				      .drop_stacks = true,
				      .may_be_none = true};
}

void machine_add_facts(struct machine *machine, const char *comment)
{
	const uint64_t cpus = facts_number(comment, "host_cpus");

	machine->elapsed_ns += facts_number(comment, "elapsed_ns");
	machine->busy_ns += facts_number(comment, "host_busy_ns");
	if (cpus > machine->cpus)
		machine->cpus = cpus;
}

/* ---- sums ---- */

static int64_t sum_of(const struct machine_process *process, unsigned int begin, unsigned int end)
{
	int64_t sum = 0;

	for (unsigned int i = begin; i < end; i++)
		sum = add_saturating(sum, process->ns[i]);
	return sum;
}

int64_t machine_cpu_ns(const struct machine_process *process)
{
	return sum_of(process, 0, LEDGER_WAITS_BEGIN);
}

int64_t machine_wait_ns(const struct machine_process *process)
{
	return sum_of(process, LEDGER_WAITS_BEGIN, LEDGER_STATE_COUNT);
}

void machine_add_up(struct machine_process *sum, const struct machine_process *process)
{
	for (unsigned int i = 0; i < LEDGER_STATE_COUNT; i++)
		sum->ns[i] = add_saturating(sum->ns[i], process->ns[i]);
}

static int compare_times(const void *a, const void *b)
{
	const struct machine_process *left = a, *right = b;

	return ORDER(machine_cpu_ns(right), machine_cpu_ns(left))
		       ?: ORDER(machine_wait_ns(right), machine_wait_ns(left))
		       ?: ORDER(left->pid, right->pid);
}

/* ---- rows ---- */

struct row {
	int64_t pid;
	const char *comm;
	uint32_t number; /* rows of earlier windows come first */
	/* of kind ledger */
	int64_t ns;
	unsigned int state;
};

static int by_pid_then_time(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	return ORDER(a->pid, b->pid) ?: ORDER(a->number, b->number);
}

static int by_pid_then_name(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	return ORDER(a->pid, b->pid) ?: strcmp(a->comm, b->comm);
}

/* Returns false for a row without time. */
static bool read_row(const struct profile *profile, uint32_t number, size_t at, struct row *ret_row)
{
	const char *state = record_text(profile, number, "state");
	struct row row = {.pid = record_number(profile, number, "pid"),
			  .ns = profile_row_values(profile, number)[at + PP_LEDGER_TIME],
			  .comm = record_text(profile, number, "comm"),
			  .number = number};

	while (row.state < LEDGER_STATE_COUNT && strcmp(state, ledger_state_name(row.state)) != 0)
		row.state++;
	*ret_row = row;
	return row.state < LEDGER_STATE_COUNT && row.ns > 0;
}

/* Adds rows, those of a process one after the other. */
static void add_rows(struct machine *machine, const struct row *row, size_t count, bool by_pid)
{
	for (size_t i = 0; i < count; i++) {
		struct machine_process one = {.pid = row[i].pid, .comm = row[i].comm};
		struct machine_process *process = &machine->others;

		one.ns[row[i].state] = row[i].ns;
		if (!row[i].pid)
			machine->has_others = true;
		else if (i && row[i].pid == row[i - 1].pid &&
			 (by_pid || !strcmp(row[i].comm, row[i - 1].comm)))
			process = &machine->process[machine->count - 1];
		else
			process = &machine->process[machine->count++];
		process->pid = one.pid;
		process->comm = one.comm;
		machine_add_up(process, &one);
	}
}

int machine_fill(struct machine *machine, const struct profile *profile, bool by_pid)
{
	const int at = record_values_at(profile, PP_PROFILE_LEDGER);
	OWNED_MEM struct row *row = calloc(profile->row_count + 1U, sizeof(*row));
	size_t count = 0;

	machine->process = calloc(profile->row_count + 1U, sizeof(*machine->process));
	if (!row || !machine->process)
		return -ENOMEM;
	for (uint32_t i = 0; at >= 0 && i < profile->row_count; i++)
		count += read_row(profile, i, (size_t)at, &row[count]);
	qsort(row, count, sizeof(*row), by_pid ? by_pid_then_time : by_pid_then_name);
	add_rows(machine, row, count, by_pid);
	qsort(machine->process, machine->count, sizeof(*machine->process), compare_times);
	return 0;
}

/* ---- resident memory ---- */

#define MINUTE_NS 60e9

void process_memories_release(struct process_memories *memories)
{
	free(memories->row);
	free(memories->process);
	*memories = (struct process_memories){0};
}

/* Notes what the rows have in a window. */
static int window_done(void *context, struct profile *profile, const struct profile_window *window)
{
	struct process_memories *memories = context;

	if (ARRAY_EXTEND(memories->row, profile->row_capacity, memories->row_capacity))
		return -ENOMEM;
	for (size_t i = 0; i < window->delta_count; i++) {
		struct row_memory *row = &memories->row[window->delta[i].row];

		if (window->start_wall_ns < row->start_ns)
			continue;
		if (window->start_wall_ns > row->start_ns)
			*row = (struct row_memory){.start_ns = window->start_wall_ns};
		row->bytes = add_saturating(row->bytes, window->delta[i].value);
	}
	return 0;
}

struct input_options process_memories_input(struct process_memories *memories,
					    const struct select *select)
{
	static const char *const labels[] = {"pid", "comm", "memory", NULL};

	return (struct input_options){.select = select,
				      .kind = kind_get(PP_PROFILE_RESIDENT)->name,
				      .keep_labels = labels,
				      .drop_stacks = true,
				      .window_done = window_done,
				      .context = memories,
				      .may_be_none = true};
}

/* ---- the processes ---- */

static void add_bytes(struct process_memory *process, const char *memory, int64_t bytes)
{
	for (unsigned int i = 0; i < PP_MEMORY_COUNT; i++)
		if (!strcmp(memory, kind_memory((enum pp_memory)i)))
			process->bytes[i] = add_saturating(process->bytes[i], bytes);
}

static void add_memory(const struct process_memories *memories, const struct profile *profile,
		       uint32_t i, struct process_memory *process)
{
	static const struct row_memory none;
	const struct row_memory *row = i < memories->row_capacity ? &memories->row[i] : &none;
	const int64_t *value =
		profile_row_values(profile, i) + record_values_at(profile, PP_PROFILE_RESIDENT);

	if (row->start_ns > process->seen_ns) {
		memset(process->bytes, 0, sizeof(process->bytes));
		process->seen_ns = row->start_ns;
	}
	if (row->start_ns == process->seen_ns)
		add_bytes(process, record_text(profile, i, "memory"), row->bytes);
	if (value[PP_RESIDENT_PEAK] > process->peak_bytes)
		process->peak_bytes = value[PP_RESIDENT_PEAK];
	process->growth_bytes = add_saturating(process->growth_bytes, value[PP_RESIDENT_GROWTH]);
	process->growth_ns = add_saturating(process->growth_ns, value[PP_RESIDENT_GROWTH_TIME]);
	process->processes = add_saturating(process->processes, value[PP_RESIDENT_PROCESSES]);
}

static int compare_sizes(const void *a, const void *b)
{
	const struct process_memory *left = a, *right = b;

	return ORDER(process_memory_bytes(right), process_memory_bytes(left))
		       ?: ORDER(left->pid, right->pid) ?: strcmp(left->comm, right->comm);
}

int process_memories_fill(struct process_memories *memories, const struct profile *profile)
{
	OWNED_MEM struct row *row = calloc(profile->row_count + 1U, sizeof(*row));
	struct process_memory unread = {0};
	uint32_t count = 0;

	if (record_values_at(profile, PP_PROFILE_RESIDENT) < 0)
		return 0;
	memories->process = calloc(profile->row_count + 1U, sizeof(*memories->process));
	if (!row || !memories->process)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->row_count; i++) {
		row[count] = (struct row){.pid = record_number(profile, i, "pid"),
					  .comm = record_text(profile, i, "comm"),
					  .number = i};
		if (row[count].pid)
			count++;
		else
			add_memory(memories, profile, i,
				   strcmp(row[count].comm, RESIDENT_UNREAD) ? &memories->others
									    : &unread);
	}
	memories->unread = unread.processes;
	qsort(row, count, sizeof(*row), by_pid_then_name);
	for (uint32_t i = 0; i < count; i++) {
		if (!i || by_pid_then_name(&row[i - 1], &row[i]))
			memories->process[memories->count++] =
				(struct process_memory){.pid = row[i].pid, .comm = row[i].comm};
		add_memory(memories, profile, row[i].number,
			   &memories->process[memories->count - 1]);
	}
	qsort(memories->process, memories->count, sizeof(memories->process[0]), compare_sizes);
	return 0;
}

int64_t process_memory_bytes(const struct process_memory *process)
{
	int64_t sum = 0;

	for (unsigned int i = 0; i < PP_MEMORY_COUNT; i++)
		sum = add_saturating(sum, process->bytes[i]);
	return sum;
}

void process_memory_add(struct process_memory *sum, const struct process_memory *process)
{
	for (unsigned int i = 0; i < PP_MEMORY_COUNT; i++)
		sum->bytes[i] = add_saturating(sum->bytes[i], process->bytes[i]);
	sum->processes = add_saturating(sum->processes, process->pid ? 1 : process->processes);
}

double process_memory_growth(const struct process_memory *process)
{
	return process->growth_ns > 0
		       ? (double)process->growth_bytes / (double)process->growth_ns * MINUTE_NS
		       : NAN;
}

/* ---- GPUs ---- */

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

struct gauge_row {
	uint32_t row;
	bool is_process;
	int64_t pid, device;
	const char *name; /* of a process: comm; of a GPU: uuid */
};

static int compare_gauges(const void *left, const void *right)
{
	const struct gauge_row *a = left, *b = right;

	return ORDER(a->is_process, b->is_process)
		       ?: ORDER(a->device, b->device)
		       ?: ORDER(a->pid, b->pid) ?: strcmp(a->name, b->name);
}

static bool is_selected(const struct select *select, const struct gauge_row *row)
{
	bool is_wanted = !select || !select->pid_count;

	for (unsigned int i = 0; !is_wanted && i < select->pid_count; i++)
		is_wanted = select->pid[i] == row->pid;
	return is_wanted &&
	       (!select || !select->comm || !regexec(select->comm, row->name, 0, NULL, 0));
}

/* Returns whether it is a row of a GPU or of a process that is meant. */
static bool read_gauge(struct gpu_usage *usage, const struct profile *profile, uint32_t i,
		       const struct select *select, struct gauge_row *ret_row)
{
	const char *device = record_text(profile, i, "device");
	const size_t prefix = strlen(GPU_DEVICE_PREFIX);
	struct gauge_row row = {.row = i,
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

static int compare_users(const void *a, const void *b)
{
	const struct gpu_usage_process *left = a, *right = b;

	return ORDER(gpu_usage_mean(&right->memory_bytes), gpu_usage_mean(&left->memory_bytes))
		       ?: ORDER(left->pid, right->pid) ?: ORDER(left->device, right->device);
}

static void begin_process(struct gpu_usage *usage, const struct gauge_row *row)
{
	usage->process[usage->process_count++] = (struct gpu_usage_process){
		.pid = row->pid, .device = row->device, .comm = row->name};
}

static void begin_device(struct gpu_usage *usage, const struct gauge_row *row)
{
	usage->device[usage->device_count++] =
		(struct gpu_usage_device){.device = row->device, .uuid = row->name};
}

/* Rows that belong together follow each other, those of GPUs first. */
static void add_gauges(struct gpu_usage *usage, const struct profile *profile,
		       const struct gauge_row *row, size_t count)
{
	const int at = record_values_at(profile, PP_PROFILE_GPU);

	for (size_t i = 0; i < count; i++) {
		const int64_t *value = profile_row_values(profile, row[i].row) + at;
		const bool is_new = !i || compare_gauges(&row[i - 1], &row[i]) != 0;

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

static int list_gauges(struct gpu_usage *usage, const struct profile *profile,
		       const struct select *select)
{
	OWNED_MEM struct gauge_row *row = calloc(profile->row_count + 1U, sizeof(*row));
	size_t count = 0, processes = 0, devices;

	if (!row)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->row_count; i++)
		if (read_gauge(usage, profile, i, select, &row[count]))
			processes += row[count++].is_process;
	qsort(row, count, sizeof(*row), compare_gauges);
	devices = count - processes < GPU_USAGE_DEVICES_MAX ? count - processes
							    : GPU_USAGE_DEVICES_MAX;
	usage->device = calloc(devices + 1, sizeof(*usage->device));
	usage->process = calloc(processes + 1, sizeof(*usage->process));
	if (!usage->device || !usage->process)
		return -ENOMEM;
	add_gauges(usage, profile, row, count);
	return 0;
}

int gpu_usage_fill(struct gpu_usage *usage, const struct profile *profile,
		   const struct select *select)
{
	int err;

	if (record_values_at(profile, PP_PROFILE_GPU) < 0)
		return 0;
	err = list_gauges(usage, profile, select);
	if (!err)
		qsort(usage->process, usage->process_count, sizeof(*usage->process), compare_users);
	return err;
}
