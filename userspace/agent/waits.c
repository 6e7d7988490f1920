/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits at the end of a window: each thread's slot is read once, for the counters and the ledger. */
#include "agent/agent.h"

#include <string.h>

#include "agent/sweeps.h"
#include "drain/thread_slots.h"

#define LEDGER_TEXT_BYTES 512U
#define LEDGER_LINES_MAX 256U /* of one profile's comments: those with the most time on the CPU */

int waits_open(struct agent *agent)
{
	int err;

	if (!(agent->options->events & (OPTIONS_EVENT_OFFCPU | OPTIONS_EVENT_GIL)))
		return 0;
	err = ledger_new(&agent->ledger);
	return err ? err : sweeps_new(agent, &agent->sweeps);
}

int waits_collect(struct agent *agent, const struct slots_window *window, struct counts *counts)
{
	uint32_t slot_count;
	struct pp_thread *slot = kernel_side_threads(agent->kernel, &slot_count);
	struct pp_thread thread;
	int err;

	if (!agent->ledger)
		return 0;
	ledger_begin(agent->ledger);
	err = ledger_add_exited(agent->ledger, kernel_side_ledgers(agent->kernel));
	for (uint32_t i = 0; i < slot_count && !err; i++) {
		if (!slot[i].tid || !thread_slot_take(&slot[i], window->number, &thread,
						      &agent->summary.torn_slots))
			continue;
		err = thread_slot_count(&thread, window, counts);
		if (!err)
			err = ledger_add_thread(agent->ledger, &thread, window->end_ns);
	}
	return err ? err : sweeps_collect(agent->sweeps, window, counts);
}

static int add_line(struct agent *agent, const struct ledger_line *line)
{
	const struct process *process = process_table_find(agent->processes, line->id);
	char text[LEDGER_TEXT_BYTES] = "ledger ", comm[PP_COMM_BYTES + 1] = "";

	if (process)
		memcpy(comm, process->comm, PP_COMM_BYTES);
	ledger_format(line, comm, text + strlen(text), sizeof(text) - strlen(text));
	return profiles_add_comment(&agent->profiles, text);
}

int waits_close(struct agent *agent)
{
	const struct ledger_line *line;
	size_t count;
	int err;

	if (!agent->ledger)
		return 0;
	err = ledger_end(agent->ledger, &line, &count);
	for (size_t i = 0; i < count && !err; i++) {
		for (unsigned int k = 0; k < PP_LEDGER_COUNT; k++)
			agent->summary.ledger_ns[k] += line[i].total_ns[k];
		agent->summary.life_ns += line[i].life_ns;
		if (i < LEDGER_LINES_MAX && line[i].life_ns)
			err = add_line(agent, &line[i]);
	}
	return err;
}
