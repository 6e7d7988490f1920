/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/waits.h"

#include <errno.h>
#include <string.h>

#include <pyprofd/config.h>

#include "attach/context_table.h"
#include "attach/kernel_side.h"
#include "base/clock.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "drain/thread_slots.h"
#include "drain/wait_shares.h"
#include "ledger/ledger_check.h"
#include "ledger/ledger_records.h"
#include "options/options.h"
#include "windows/label.h"
#include "windows/profiles.h"
#include "windows/source.h"
#include "windows/summary.h"
#include "windows/top.h"

/* A thread that ran so long without a switch is looked up in /proc: its switch-out may have been
 * missed. */
#define RUN_WORTH_NS NS_PER_SEC

struct waits {
	const struct services *services;
	struct ledger *ledger;
	struct ledger_check *check;
	struct ledger_sums *profile, *run;
	uint64_t torn, stray;
};

static bool waits_free(void *state)
{
	struct waits *waits = state;

	ledger_free(waits->ledger);
	ledger_check_free(waits->check);
	ledger_sums_free(waits->profile);
	ledger_sums_free(waits->run);
	return true;
}

static int waits_new(void *state)
{
	struct waits *waits = state;
	int err = ledger_new(&waits->ledger);

	if (!err)
		err = ledger_check_new(&waits->check);
	if (!err)
		err = ledger_sums_new(&waits->profile);
	return err ? err : ledger_sums_new(&waits->run);
}

struct ledger *waits_ledger(struct waits *waits)
{
	return waits ? waits->ledger : NULL;
}

static bool is_measured(const struct waits *waits, const struct process *process)
{
	return !waits->services->is_filtered || context_table_flags(process) & PP_CONTEXT_MATCHES;
}

static int waits_start(void *state, uint64_t started_ns)
{
	struct waits *waits = state;
	const struct process *process = NULL;

	(void)started_ns;
	while ((process = process_table_next(waits->services->processes, process)))
		if (!process->exit_ns && is_measured(waits, process))
			ledger_check_begin(waits->check, process->id.tgid);
	return 0;
}

/* ---- slots ---- */

/* Some kernels do not report when threads that they hide switch out.  The slot of such a thread
 * says that it runs until its next switch-in, or for ever.  Corrects the copy; returns false when
 * the thread has ended. */
static bool correct_stray(struct waits *waits, struct pp_thread *thread,
			  const struct slots_window *window)
{
	struct proc_status status;
	int err;

	if (!(thread->flags & PP_THREAD_MATCHES) || thread->flags & PP_THREAD_WAITING ||
	    thread->since_ns + RUN_WORTH_NS > window->end_ns)
		return true;
	err = thread_status_read(thread->id.tgid, thread->tid, &status);
	if (err ? err != -ESRCH : status.is_runnable)
		return true;
	waits->stray++;
	thread_slot_stray(thread);
	return !err;
}

static int collect_thread(struct waits *waits, struct pp_thread *slot, struct pp_thread *thread,
			  const struct slots_window *window, struct counts *counts)
{
	const bool has_ended = thread->tid & PP_TID_ENDED;
	bool exists = !has_ended && correct_stray(waits, thread, window);
	int err;

	thread->tid &= ~PP_TID_ENDED;
	err = thread_slot_count(thread, window, counts);
	if (err || exists)
		return err ? err : ledger_add_thread(waits->ledger, thread, window->end_ns);
	if (thread_slot_free(slot, thread))
		kernel_side_give_slot(waits->services->kernel, thread->user);
	return ledger_add_gone(waits->ledger, thread,
			       has_ended ? thread->since_ns : window->end_ns);
}

/* Empties a sum to which the kernel side may add meanwhile: what it adds is in this one or in the
 * next. */
static void take_rest(struct pp_ledger_sum *sum, struct pp_ledger_sum *ret_sum)
{
	*ret_sum = (struct pp_ledger_sum){.user = LEDGER_USER_UNKNOWN};
	for (unsigned int i = 0; i < PP_LEDGER_COUNT; i++)
		ret_sum->total_ns[i] = __atomic_exchange_n(&sum->total_ns[i], 0, __ATOMIC_RELAXED);
	ret_sum->life_ns = __atomic_exchange_n(&sum->life_ns, 0, __ATOMIC_RELAXED);
	ret_sum->threads = __atomic_exchange_n(&sum->threads, 0, __ATOMIC_RELAXED);
	ret_sum->leaders = __atomic_exchange_n(&sum->leaders, 0, __ATOMIC_RELAXED);
}

static int collect_exited(struct waits *waits)
{
	struct kernel_side *kernel = waits->services->kernel;
	volatile struct pp_config *config = kernel_side_config(kernel);
	struct pp_user_share *share = kernel_side_parts(kernel).user_shares.row;
	int err = ledger_add_exited(waits->ledger, kernel_side_parts(kernel).ledgers);
	struct pp_ledger_sum sum;

	config->ledgers_taken = 0;
	config->ledger_turn++;
	for (uint32_t i = 0; i < PP_USER_SHARE_ROWS && !err; i++) {
		if (!__atomic_load_n(&share[i].rest.threads, __ATOMIC_RELAXED))
			continue;
		take_rest(&share[i].rest, &sum);
		err = ledger_add_rest(waits->ledger, &sum);
	}
	return err;
}

static int waits_collect(void *state, const struct source_window *window)
{
	struct waits *waits = state;
	struct pp_thread *slot, thread;
	uint32_t slot_count;
	int err;

	slot = kernel_side_threads(waits->services->kernel, &slot_count);
	ledger_begin(waits->ledger);
	err = collect_exited(waits);
	for (uint32_t i = 0; i < slot_count && !err; i++) {
		if (!slot[i].tid ||
		    !thread_slot_take(&slot[i], window->slots.number, &thread, &waits->torn))
			continue;
		err = collect_thread(waits, &slot[i], &thread, &window->slots, window->counts);
	}
	if (!err)
		ledger_busy(waits->ledger, LEDGER_CHECK_WORTH_NS, ledger_check_read, waits->check);
	return err;
}

static bool in_ledger(void *context, struct pp_process_id id, enum pp_ledger where,
		      uint64_t *ret_ns)
{
	return ledger_find(context, id, where, ret_ns);
}

/* Scales waits whose stack was walked by chance to what is known exactly. */
static int waits_divide(void *state, const struct source_window *window)
{
	struct waits *waits = state;
	struct wait_shares shares = {.exact_ns = in_ledger,
				     .leaves_short_out = window->slots.wait_min_ns};

	shares.context = waits->ledger;
	return wait_shares_divide(&shares, window->counts);
}

/* ---- the ledger ---- */

int waits_add_sample(struct waits *waits, struct pp_process_id id, enum ledger_part part,
		     uint64_t weight)
{
	return waits ? ledger_add_sample(waits->ledger, id, part, weight) : 0;
}

/* Adds what the profiles are compared with.  Waits that offcpu-min leaves out are not missed. */
static void cover(const struct waits *waits, const struct ledger_line *line)
{
	struct summary *summary = waits->services->summary;
	const bool has_short_waits = !waits->services->options->offcpu_min_ns;
	const uint64_t cpu_ns = line->total_ns[PP_LEDGER_CPU];

	if (waits->services->is_filtered && line->over_ns < (int64_t)cpu_ns)
		summary->scheduler_ns += (uint64_t)((int64_t)cpu_ns - line->over_ns);
	for (unsigned int i = 0; i < PP_LEDGER_COUNT && has_short_waits; i++)
		summary->ledger_wait_ns += i == PP_LEDGER_CPU ? 0 : line->total_ns[i];
}

static int add_line(struct waits *waits, const struct record_sink *clients,
		    struct ledger_line *line)
{
	struct process *process = process_table_find(waits->services->processes, line->id);
	const char *comm = process ? process->comm : "";
	int err = 0;

	if (process && line->total_ns[PP_LEDGER_CPU])
		process->is_at_rest = false;
	ledger_check_compare(waits->check, line);
	cover(waits, line);
	if (!line->life_ns)
		return 0;
	if (clients->strings)
		err = ledger_record_put(clients, line, comm);
	if (!err)
		err = ledger_sums_add(waits->profile, line, comm);
	return err ? err : ledger_sums_add(waits->run, line, comm);
}

/* Of processes whose threads have all slept since before the start. */
static void find_users(const struct waits *waits, struct ledger_line *line, size_t count)
{
	const struct process *process;

	for (size_t i = 0; i < count; i++) {
		if (line[i].user != LEDGER_USER_UNKNOWN)
			continue;
		process = process_table_find(waits->services->processes, line[i].id);
		if (process && process->is_user_known)
			line[i].user = process->user;
	}
}

/* Adds the window's ledger to that of its profile and that of the run, and tells clients. */
static int waits_close(void *state, const struct source_window *window, const struct slice *slice)
{
	struct waits *waits = state;
	OWNED_MEM struct record_turn *turn = NULL;
	struct record_sink clients = {0};
	struct ledger_line *line;
	size_t count;
	int err = ledger_end(waits->ledger, &line, &count);

	(void)window, (void)slice;
	if (err)
		return err;
	for (size_t i = 0; i < count; i++)
		ledger_check_add(waits->check, &line[i]);
	find_users(waits, line, count);
	err = ledger_turns(line, count, sizeof(*line), &turn);
	if (top_wants(waits->services->top, 1U << PP_PROFILE_LEDGER))
		clients = record_sink_clients(waits->services);
	for (size_t i = 0; i < count && !err; i++)
		err = add_line(waits, &clients, (struct ledger_line *)turn[i].of);
	return err;
}

static int waits_describe(void *state, struct profiles *profiles)
{
	struct waits *waits = state;
	struct record_sink sink = record_sink_profiles(waits->services, profiles);
	int err = ledger_records_put(&sink, waits->profile);

	ledger_sums_clear(waits->profile);
	return err;
}

static void waits_print(void *state, FILE *stream)
{
	const struct waits *waits = state;

	ledger_sums_print(waits->run, stream);
}

/* ---- as a source ---- */

static int source_label(void *state, const struct pp_count_key *key, struct intern *strings,
			struct profile_sample *sample)
{
	int err = label_string(strings, sample, "wait",
			       wait_label((enum pp_wait)pp_count_wait(key->flags)));

	(void)state;
	if (!err && key->flags & PP_COUNT_SWEPT)
		err = label_string(strings, sample, "swept", "yes");
	if (!err && key->flags & PP_COUNT_EARLIER)
		err = label_string(strings, sample, "stack", "earlier");
	return err;
}

static void source_summarize(void *state, struct summary *summary)
{
	const struct waits *waits = state;

	summary->loss[PP_LOSS_THREADS_TORN] = waits->torn;
	summary->loss[PP_LOSS_SWITCHES_UNSEEN] += waits->stray;
}

const struct source waits_source = {.name = "waits",
				    .bytes = sizeof(struct waits),
				    .open = waits_new,
				    .close = waits_free,
				    .begin = waits_start,
				    .collect_slots = waits_collect,
				    .collect = waits_divide,
				    .finish = waits_close,
				    .labelled_kinds = 1U << PP_KIND_WAIT | 1U << PP_KIND_WAKE,
				    .label = source_label,
				    .describe = waits_describe,
				    .summarize = source_summarize,
				    .print = waits_print};
