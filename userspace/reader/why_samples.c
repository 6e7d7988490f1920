/* SPDX-License-Identifier: BSD-2-Clause */
/* What the threads that launch did, by samples and waits of kind wall or cpu. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "profile/record.h"
#include "reader/why_processes.h"

void why_samples_init(struct why_samples *samples, struct why_processes *processes)
{
	*samples = (struct why_samples){.processes = processes};
}

void why_samples_release(struct why_samples *samples)
{
	code_table_release(&samples->code);
	free(samples->weight);
	*samples = (struct why_samples){0};
}

static const struct frame *frame_at(const struct why_samples *samples, const struct stack *stack,
				    uint32_t i)
{
	return &samples->profile->stacks.location[stack->location[i]];
}

/* Returns the innermost frame of Python, or stack->count. */
static uint32_t python_of(const struct why_samples *samples, const struct stack *stack)
{
	uint32_t i = 0;

	while (i < stack->count && frame_at(samples, stack, i)->kind != FRAME_PYTHON)
		i++;
	return i;
}

/* Returns whether a thread on the CPU runs Python: the interpreter's own functions are that, too,
 * as far as no other code called them. */
static bool runs_python(const struct why_samples *samples, const struct stack *stack)
{
	const uint32_t python = python_of(samples, stack);

	for (uint32_t i = 0; i < python && python < stack->count; i++)
		if (!strstr(path_base(frame_module_path(samples->profile,
							frame_at(samples, stack, i))),
			    "python"))
			return false;
	return python < stack->count;
}

/* Returns the ledger's group of a wait; on the CPU, whether it is Python. */
static unsigned int part_of(const struct why_samples *samples, uint32_t row,
			    const struct stack *stack)
{
#define WAIT_LABEL(id, label, group) [PP_WAIT_##id] = label,
	static const char *const labels[PP_WAIT_COUNT] = {PP_WAITS(WAIT_LABEL)};
	static const unsigned int ledgers[PP_WAIT_COUNT] = PP_WAIT_LEDGERS;
	const char *wait = record_text(samples->profile, row, "wait");

	if (!wait[0])
		return runs_python(samples, stack) ? PP_LEDGER_CPU : GPU_PART_NATIVE;
	for (unsigned int i = 0; i < PP_WAIT_COUNT; i++)
		if (!strcmp(labels[i], wait))
			return ledgers[i] == PP_LEDGER_CPU ? PP_LEDGER_UNKNOWN : ledgers[i];
	return PP_LEDGER_UNKNOWN;
}

/* Returns the class of the function of CUDA that a stack is in; GPU_OTHER: of none that matters. */
static enum gpu_class class_of(const struct why_samples *samples, const struct stack *stack)
{
	const uint32_t python = python_of(samples, stack);

	for (uint32_t i = 0; i < python; i++) {
		const char *name = frame_name(samples->profile, frame_at(samples, stack, i));
		const enum gpu_class class =
			strncmp(name, "cu", 2) ? GPU_OTHER : gpu_class_of(name);

		if (class != GPU_OTHER)
			return class;
	}
	return GPU_OTHER;
}

static int add_line(struct why_samples *samples, uint32_t process, const struct stack *stack,
		    double ns)
{
	const uint32_t python = python_of(samples, stack);
	uint32_t code;
	int err;

	if (!stack->count)
		return 0;
	err = code_table_of_location(&samples->code,
				     stack->location[python < stack->count ? python : 0], &code);
	if (!err)
		err = ARRAY_RESERVE(samples->weight, samples->weight_count,
				    samples->weight_capacity);
	if (!err)
		samples->weight[samples->weight_count++] =
			(struct why_weight){.process = process,
					    .finding = GPU_FINDING_STARVED,
					    .code = code,
					    .weight = ns};
	return err;
}

/* Adds a sample of a thread that launches. */
static int add_row(struct why_samples *samples, struct why_process *process, uint32_t row,
		   double ns)
{
	const struct profile *profile = samples->profile;
	const struct stack *stack = &profile->stacks.stack[profile->row[row].stack];
	const char *gpu = record_text(profile, row, "gpu");
	const unsigned int part = part_of(samples, row, stack);
	struct gpu_sums *sums = &process->sums;

	sums->seen_ns += ns;
	sums->labelled_ns += gpu[0] ? ns : 0;
	sums->ready_ns += part == PP_LEDGER_RUN_QUEUE ? ns : 0;
	if (part == PP_LEDGER_CPU || part == GPU_PART_NATIVE) {
		const enum gpu_class class = class_of(samples, stack);

		sums->cpu_ns += ns;
		sums->launch_cpu_ns += class == GPU_LAUNCH || class == GPU_GRAPH ? ns : 0;
		sums->copy_cpu_ns += class == GPU_COPY ? ns : 0;
	}
	if (strcmp(gpu, "drained") != 0)
		return 0;
	sums->drained_ns[part] += ns;
	return add_line(samples, (uint32_t)(process - samples->processes->process), stack, ns);
}

/* Finds the process whose launching thread a row is of; NULL: none. */
static int find_lead(const struct why_samples *samples, uint32_t row,
		     struct why_process **ret_process)
{
	const struct stored_label *tid =
		profile_find_label(samples->profile, samples->profile->row[row].label_set, "tid");
	struct why_process *process;
	int err = why_find_process(samples->processes, record_number(samples->profile, row, "pid"),
				   false, &process);

	*ret_process = NULL;
	if (!err && process && process->lead != UINT32_MAX && tid && tid->is_number &&
	    samples->processes->thread[process->lead].tid == tid->value)
		*ret_process = process;
	return err;
}

/* Returns whether a window lies in the time from a process's first call to its last one, as far as
 * windows tell. */
static bool is_of(const struct why_process *process, const struct profile_window *window)
{
	const uint64_t middle_ns = window->start_wall_ns + window->duration_ns / 2;

	return !window->start_wall_ns ||
	       (middle_ns >= process->begin_wall_ns && middle_ns < process->end_wall_ns);
}

int why_samples_add(struct why_samples *samples, const struct profile *profile,
		    const struct profile_window *window)
{
	int err = 0;

	if (!samples->profile)
		code_table_init(&samples->code, profile, CODE_BY_LINE);
	samples->profile = profile;
	for (size_t i = 0; i < window->delta_count && !err; i++) {
		const struct profile_delta *delta = &window->delta[i];
		struct why_process *process;

		err = find_lead(samples, delta->row, &process);
		if (!err && process && delta->value > 0 && is_of(process, window))
			err = add_row(samples, process, delta->row, (double)delta->value);
	}
	return err;
}

int why_samples_end(struct why_samples *samples, const struct short_paths *short_paths,
		    bool has_waits)
{
	struct why_processes *processes = samples->processes;

	for (uint32_t i = 0; i < processes->count; i++) {
		processes->process[i].sums.has_cpu = true;
		processes->process[i].sums.has_waits = has_waits;
	}
	samples->code.short_paths = short_paths;
	return why_take_lines(processes, &samples->code, samples->weight, samples->weight_count);
}
