/* SPDX-License-Identifier: BSD-2-Clause */
/* What the threads that launch did, by samples and waits of kind wall or cpu. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "reader/why_processes.h"

struct adding {
	struct why_processes *processes;
	const struct profile *profile;
	struct code_table code;
	struct why_weight *weight; /* owned */
	uint32_t weight_count, weight_capacity;
};

static void release_adding(struct adding *adding)
{
	code_table_release(&adding->code);
	free(adding->weight);
}

static const struct stored_label *find_label(const struct adding *adding, uint32_t set,
					     const char *name)
{
	return profile_find_label(adding->profile, set, name);
}

static const char *text_of(const struct adding *adding, uint32_t set, const char *name)
{
	const struct stored_label *label = find_label(adding, set, name);

	return label && !label->is_number
		       ? intern_get(adding->profile->strings, (uint32_t)label->value, NULL)
		       : "";
}

static const struct frame *frame_at(const struct adding *adding, const struct stack *stack,
				    uint32_t i)
{
	return &adding->profile->stacks.location[stack->location[i]];
}

/* Returns the innermost frame of Python, or stack->count. */
static uint32_t python_of(const struct adding *adding, const struct stack *stack)
{
	uint32_t i = 0;

	while (i < stack->count && frame_at(adding, stack, i)->kind != FRAME_PYTHON)
		i++;
	return i;
}

/* Returns whether a thread on the CPU runs Python: the interpreter's own functions are that, too,
 * as far as no other code called them. */
static bool runs_python(const struct adding *adding, const struct stack *stack)
{
	const uint32_t python = python_of(adding, stack);

	for (uint32_t i = 0; i < python && python < stack->count; i++)
		if (!strstr(path_base(
				    frame_module_path(adding->profile, frame_at(adding, stack, i))),
			    "python"))
			return false;
	return python < stack->count;
}

/* Returns the ledger's group of a wait; on the CPU, whether it is Python. */
static unsigned int part_of(const struct adding *adding, const struct profile_row *row)
{
#define WAIT_LABEL(id, label, group) [PP_WAIT_##id] = label,
	static const char *const labels[PP_WAIT_COUNT] = {PP_WAITS(WAIT_LABEL)};
	static const unsigned int ledgers[PP_WAIT_COUNT] = PP_WAIT_LEDGERS;
	const char *wait = text_of(adding, row->label_set, "wait");

	if (!wait[0])
		return runs_python(adding, &adding->profile->stacks.stack[row->stack])
			       ? PP_LEDGER_CPU
			       : GPU_PART_NATIVE;
	for (unsigned int i = 0; i < PP_WAIT_COUNT; i++)
		if (!strcmp(labels[i], wait))
			return ledgers[i] == PP_LEDGER_CPU ? PP_LEDGER_UNKNOWN : ledgers[i];
	return PP_LEDGER_UNKNOWN;
}

/* Returns the class of the function of CUDA that a stack is in; GPU_OTHER: of none that matters. */
static enum gpu_class class_of(const struct adding *adding, const struct stack *stack)
{
	const uint32_t python = python_of(adding, stack);

	for (uint32_t i = 0; i < python; i++) {
		const char *name = frame_name(adding->profile, frame_at(adding, stack, i));
		const enum gpu_class class =
			strncmp(name, "cu", 2) ? GPU_OTHER : gpu_class_of(name);

		if (class != GPU_OTHER)
			return class;
	}
	return GPU_OTHER;
}

static int add_line(struct adding *adding, uint32_t process, const struct stack *stack, double ns)
{
	const uint32_t python = python_of(adding, stack);
	uint32_t code;
	int err;

	if (!stack->count)
		return 0;
	err = code_table_of_location(&adding->code,
				     stack->location[python < stack->count ? python : 0], &code);
	if (!err)
		err = ARRAY_RESERVE(adding->weight, adding->weight_count, adding->weight_capacity);
	if (!err)
		adding->weight[adding->weight_count++] =
			(struct why_weight){.process = process,
					    .finding = GPU_FINDING_STARVED,
					    .code = code,
					    .weight = ns};
	return err;
}

/* Adds a sample of a thread that launches. */
static int add_row(struct adding *adding, struct why_process *process,
		   const struct profile_row *row, double ns)
{
	const struct stack *stack = &adding->profile->stacks.stack[row->stack];
	const char *gpu = text_of(adding, row->label_set, "gpu");
	const unsigned int part = part_of(adding, row);
	struct gpu_sums *sums = &process->sums;

	sums->seen_ns += ns;
	sums->labelled_ns += gpu[0] ? ns : 0;
	sums->ready_ns += part == PP_LEDGER_RUN_QUEUE ? ns : 0;
	if (part == PP_LEDGER_CPU || part == GPU_PART_NATIVE) {
		const enum gpu_class class = class_of(adding, stack);

		sums->cpu_ns += ns;
		sums->launch_cpu_ns += class == GPU_LAUNCH || class == GPU_GRAPH ? ns : 0;
		sums->copy_cpu_ns += class == GPU_COPY ? ns : 0;
	}
	if (strcmp(gpu, "drained") != 0)
		return 0;
	sums->drained_ns[part] += ns;
	return add_line(adding, (uint32_t)(process - adding->processes->process), stack, ns);
}

/* Finds the process whose launching thread a label set is of; NULL: none. */
static int find_lead(const struct adding *adding, uint32_t set, struct why_process **ret_process)
{
	const struct stored_label *pid = find_label(adding, set, "pid");
	const struct stored_label *tid = find_label(adding, set, "tid");
	struct why_process *process;
	int err;

	*ret_process = NULL;
	if (!pid || !pid->is_number || !tid || !tid->is_number)
		return 0;
	err = why_find_process(adding->processes, pid->value, false, &process);
	if (!err && process && process->lead != UINT32_MAX &&
	    adding->processes->thread[process->lead].tid == tid->value)
		*ret_process = process;
	return err;
}

int why_add_samples(struct why_processes *processes, const struct profile *profile,
		    const struct short_paths *short_paths, bool has_waits, unsigned int value)
{
	CLEANUP(release_adding) struct adding adding = {.processes = processes, .profile = profile};
	int err = 0;

	code_table_init(&adding.code, profile, CODE_BY_LINE);
	adding.code.short_paths = short_paths;
	for (uint32_t i = 0; i < processes->count; i++) {
		processes->process[i].sums.has_cpu = true;
		processes->process[i].sums.has_waits = has_waits;
	}
	for (uint32_t i = 0; i < profile->row_count && !err; i++) {
		const struct profile_row *row = &profile->row[i];
		const double ns = (double)profile_row_values(profile, i)[value];
		struct why_process *process;

		err = find_lead(&adding, row->label_set, &process);
		if (!err && process && ns > 0)
			err = add_row(&adding, process, row, ns);
	}
	return err ? err
		   : why_take_lines(processes, &adding.code, adding.weight, adding.weight_count);
}
