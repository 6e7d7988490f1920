/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/process_memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"

#define MINUTE_MS 60000.0

void process_memories_release(struct process_memories *memories)
{
	free(memories->process);
	index_table_release(&memories->index);
	*memories = (struct process_memories){0};
}

static bool is_selected(const struct select *select, const struct memory_line *line)
{
	bool is_wanted = !select || !select->pid_count;

	if (!line->pid && select && (select->pid_count || select->comm))
		return false;
	for (unsigned int i = 0; !is_wanted && i < select->pid_count; i++)
		is_wanted = select->pid[i] >= 0 && (uint64_t)select->pid[i] == line->pid;
	return is_wanted &&
	       (!select || !select->comm || !regexec(select->comm, line->comm, 0, NULL, 0));
}

static bool process_equal(const void *context, uint32_t index, const void *key)
{
	const struct process_memories *memories = context;
	const struct memory_line *line = key;
	const struct memory_line *other = &memories->process[index].last;

	return other->pid == line->pid && !strcmp(other->comm, line->comm);
}

static int find_process(struct process_memories *memories, const struct memory_line *line,
			struct process_memory **ret_process)
{
	const uint32_t hash = (uint32_t)(XXH3_64bits(line->comm, strlen(line->comm)) ^
					 XXH3_64bits(&line->pid, sizeof(line->pid)));
	uint32_t at;
	int err;

	*ret_process = NULL;
	if (!index_table_find(&memories->index, hash, process_equal, memories, line, &at)) {
		if (memories->count == PROCESS_MEMORY_MAX) {
			memories->left_out++;
			return 0;
		}
		err = ARRAY_RESERVE(memories->process, memories->count, memories->capacity);
		if (!err)
			err = index_table_add(&memories->index, hash, memories->count);
		if (err)
			return err;
		at = memories->count++;
		memories->process[at] = (struct process_memory){.first = *line, .last = *line};
	}
	*ret_process = &memories->process[at];
	return 0;
}

int process_memories_add(struct process_memories *memories, const char *comment)
{
	struct process_memory *process;
	struct memory_line line;
	int err;

	if (!memory_line_parse(comment, &line))
		return 0;
	/* Who the others are is not known: none of them is selected by its pid or name. */
	if (!is_selected(memories->select, &line))
		return 0;
	if (!line.pid) {
		if (line.at_ms >= memories->others.at_ms)
			memories->others = line;
		return 0;
	}
	err = find_process(memories, &line, &process);
	if (err || !process)
		return err;
	if (line.at_ms < process->first.at_ms)
		process->first = line;
	if (line.at_ms >= process->last.at_ms)
		process->last = line;
	if (line.peak_bytes > process->peak_bytes)
		process->peak_bytes = line.peak_bytes;
	return 0;
}

double process_memory_growth(const struct process_memory *process)
{
	const double minutes = (double)(process->last.at_ms - process->first.at_ms) / MINUTE_MS;

	return minutes > 0 ? ((double)memory_line_bytes(&process->last) -
			      (double)memory_line_bytes(&process->first)) /
				     minutes
			   : NAN;
}

static int compare_processes(const void *a, const void *b)
{
	const struct process_memory *left = a, *right = b;
	const uint64_t left_bytes = memory_line_bytes(&left->last);
	const uint64_t right_bytes = memory_line_bytes(&right->last);

	if (left_bytes != right_bytes)
		return left_bytes > right_bytes ? -1 : 1;
	if (left->last.pid != right->last.pid)
		return left->last.pid < right->last.pid ? -1 : 1;
	return strcmp(left->last.comm, right->last.comm);
}

void process_memories_sort(struct process_memories *memories)
{
	if (memories->count)
		qsort(memories->process, memories->count, sizeof(memories->process[0]),
		      compare_processes);
	/* The order has changed. */
	index_table_release(&memories->index);
}
