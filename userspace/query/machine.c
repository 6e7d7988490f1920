/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/machine.h"

#include <errno.h>
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

static int compare_processes(const void *a, const void *b)
{
	const struct machine_process *left = a, *right = b;

	return ORDER(machine_cpu_ns(right), machine_cpu_ns(left))
		       ?: ORDER(machine_wait_ns(right), machine_wait_ns(left))
		       ?: ORDER(left->pid, right->pid);
}

/* ---- rows ---- */

struct row {
	int64_t pid, ns;
	const char *comm;
	uint32_t number; /* rows of earlier windows come first */
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
	qsort(machine->process, machine->count, sizeof(*machine->process), compare_processes);
	return 0;
}
