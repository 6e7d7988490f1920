/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/process_memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/saturating.h"
#include "profile/profile_data.h"
#include "profile/record.h"

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

/* A row of one process. */
struct process_row {
	int64_t pid;
	const char *comm;
	uint32_t number;
};

static int compare_rows(const void *a, const void *b)
{
	const struct process_row *left = a, *right = b;

	return ORDER(left->pid, right->pid) ?: strcmp(left->comm, right->comm);
}

static void add_bytes(struct process_memory *process, const char *memory, int64_t bytes)
{
	for (unsigned int i = 0; i < PP_MEMORY_COUNT; i++)
		if (!strcmp(memory, kind_memory((enum pp_memory)i)))
			process->bytes[i] = add_saturating(process->bytes[i], bytes);
}

static void add_row(const struct process_memories *memories, const struct profile *profile,
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

static int compare_processes(const void *a, const void *b)
{
	const struct process_memory *left = a, *right = b;

	return ORDER(process_memory_bytes(right), process_memory_bytes(left))
		       ?: ORDER(left->pid, right->pid) ?: strcmp(left->comm, right->comm);
}

int process_memories_fill(struct process_memories *memories, const struct profile *profile)
{
	OWNED_MEM struct process_row *row = calloc(profile->row_count + 1U, sizeof(*row));
	struct process_memory unread = {0};
	uint32_t count = 0;

	if (record_values_at(profile, PP_PROFILE_RESIDENT) < 0)
		return 0;
	memories->process = calloc(profile->row_count + 1U, sizeof(*memories->process));
	if (!row || !memories->process)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->row_count; i++) {
		row[count] = (struct process_row){.pid = record_number(profile, i, "pid"),
						  .comm = record_text(profile, i, "comm"),
						  .number = i};
		if (row[count].pid)
			count++;
		else
			add_row(memories, profile, i,
				strcmp(row[count].comm, RESIDENT_UNREAD) ? &memories->others
									 : &unread);
	}
	memories->unread = unread.processes;
	qsort(row, count, sizeof(*row), compare_rows);
	for (uint32_t i = 0; i < count; i++) {
		if (!i || compare_rows(&row[i - 1], &row[i]))
			memories->process[memories->count++] =
				(struct process_memory){.pid = row[i].pid, .comm = row[i].comm};
		add_row(memories, profile, row[i].number, &memories->process[memories->count - 1]);
	}
	qsort(memories->process, memories->count, sizeof(memories->process[0]), compare_processes);
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
