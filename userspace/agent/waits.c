/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits at the end of a window: each thread's slot is read once, for the counters and the ledger. */
#include "agent/waits.h"

#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/sweeps.h"
#include "attach/image_table.h"
#include "base/clock.h"
#include "discover/proc_scan.h"
#include "drain/thread_slots.h"
#include "drain/wait_shares.h"
#include "ledger/ledger_check.h"
#include "ledger/ledger_sums.h"

#define LEDGER_TEXT_BYTES 512U
#define RUN_WORTH_NS NS_PER_SEC /* without a switch: /proc is asked whether that is so */
#define LEDGER_LINES_MAX 256U /* of one profile's comments: those with the most time on the CPU */

int waits_open(struct agent *agent)
{
	int err;

	if (!(agent->options->events & PP_CAPTURES_OF_WAITS))
		return 0;
	err = ledger_new(&agent->ledger);
	if (!err)
		err = ledger_check_new(&agent->ledger_check);
	if (!err)
		err = ledger_sums_new(&agent->profile_ledger);
	if (!err)
		err = ledger_sums_new(&agent->run_ledger);
	return err ? err : sweeps_new(agent, &agent->sweeps);
}

/* Some kernels do not tell of switches away from threads that they hide: such a thread's slot says that
 * it runs until it comes again, or for ever.  Returns false when the thread is no more. */
static bool look_whether_it_runs(struct agent *agent, struct pp_thread *thread,
				 const struct slots_window *window)
{
	struct proc_status status;
	int err;

	if (!(thread->flags & PP_THREAD_WANTED) || thread->flags & PP_THREAD_WAITING ||
	    thread->since_ns + RUN_WORTH_NS > window->end_ns)
		return true;
	err = thread_status_read(thread->id.tgid, thread->tid, &status);
	if (err ? err != -ESRCH : status.is_runnable)
		return true;
	agent->stray_threads++;
	thread_slot_stray(thread);
	return !err;
}

static int collect_thread(struct agent *agent, struct pp_thread *slot, struct pp_thread *thread,
			  const struct slots_window *window, struct counts *counts)
{
	bool is_there = look_whether_it_runs(agent, thread, window);
	int err = thread_slot_count(thread, window, counts);

	if (err || is_there)
		return err ? err : ledger_add_thread(agent->ledger, thread, window->end_ns);
	thread_slot_free(slot, thread);
	return ledger_add_gone(agent->ledger, thread, window->end_ns);
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
						      &agent->torn_threads))
			continue;
		err = collect_thread(agent, &slot[i], &thread, window, counts);
	}
	if (!err)
		ledger_busy(agent->ledger, LEDGER_CHECK_WORTH_NS, ledger_check_read,
			    agent->ledger_check);
	return err ? err : sweeps_collect(agent->sweeps, window, counts);
}

static bool in_ledger(void *context, struct pp_process_id id, enum pp_ledger where,
		      uint64_t *ret_ns)
{
	return ledger_find(context, id, where, ret_ns);
}

int waits_divide(struct agent *agent, const struct slots_window *window, struct counts *counts)
{
	const struct wait_shares shares = {.exact_ns = in_ledger,
					   .context = agent->ledger,
					   .leaves_short_out = window->wait_min_ns};

	return agent->ledger ? wait_shares_divide(&shares, counts) : 0;
}

/* The processes that are there at the start have run before: only what they do from now on counts. */
void waits_start(struct agent *agent)
{
	const struct process *process = NULL;

	if (!agent->ledger)
		return;
	while ((process = process_table_next(agent->processes, process))) {
		if (!process->exit_ns &&
		    (!agent->is_filtered || image_table_flags(process) & PP_IMAGE_WANTED))
			ledger_check_begin(agent->ledger_check, process->id.tgid);
	}
}

/* What the profiles are measured by.  Waits that were not asked for are not missed. */
static void cover(struct agent *agent, const struct ledger_line *line)
{
	struct summary *summary = &agent->summary;
	const uint64_t cpu_ns = line->total_ns[PP_LEDGER_CPU];

	if (agent->is_filtered && line->over_ns < (int64_t)cpu_ns)
		summary->scheduler_ns += (uint64_t)((int64_t)cpu_ns - line->over_ns);
	for (unsigned int i = 0; i < PP_LEDGER_COUNT && !agent->options->offcpu_min_ns; i++)
		summary->ledger_wait_ns += i == PP_LEDGER_CPU ? 0 : line->total_ns[i];
}

static int add_line(struct agent *agent, struct ledger_line *line)
{
	const struct process *process = process_table_find(agent->processes, line->id);
	char comm[PP_COMM_BYTES + 1] = "";
	int err;

	ledger_check_compare(agent->ledger_check, line);
	cover(agent, line);
	if (!line->life_ns)
		return 0;
	if (process)
		memcpy(comm, process->comm, PP_COMM_BYTES);
	/* Anybody may choose it: no blank that ends a word of the line, nothing that moves a cursor. */
	for (char *at = comm; *at; at++) {
		if ((unsigned char)*at <= ' ' || *at == 0x7f)
			*at = '_';
	}
	err = ledger_sums_add(agent->profile_ledger, line, comm);
	return err ? err : ledger_sums_add(agent->run_ledger, line, comm);
}

int waits_close(struct agent *agent)
{
	struct ledger_line *line;
	size_t count;
	int err;

	if (!agent->ledger)
		return 0;
	err = ledger_end(agent->ledger, &line, &count);
	for (size_t i = 0; i < count && !err; i++)
		ledger_check_add(agent->ledger_check, &line[i]);
	for (size_t i = 0; i < count && !err; i++)
		err = add_line(agent, &line[i]);
	return err;
}

int waits_describe(struct agent *agent)
{
	OWNED_MEM struct ledger_sum *list = NULL;
	char text[LEDGER_TEXT_BYTES] = "ledger ";
	const size_t start = strlen(text);
	size_t count;
	int err;

	if (!agent->ledger)
		return 0;
	err = ledger_sums_list(agent->profile_ledger, &list, &count);
	for (size_t i = 0; i < count && i < LEDGER_LINES_MAX && !err; i++) {
		ledger_format(&list[i].line, list[i].comm, text + start, sizeof(text) - start);
		err = profiles_add_comment(&agent->profiles, text);
	}
	ledger_sums_clear(agent->profile_ledger);
	return err;
}

void waits_release(struct agent *agent)
{
	ledger_free(TAKE(agent->ledger));
	ledger_check_free(TAKE(agent->ledger_check));
	ledger_sums_free(TAKE(agent->profile_ledger));
	ledger_sums_free(TAKE(agent->run_ledger));
	sweeps_free(TAKE(agent->sweeps));
}
