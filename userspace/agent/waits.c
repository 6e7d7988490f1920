/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/waits.h"

#include <errno.h>
#include <string.h>

#include <pyprofd/config.h>
#include <pyprofd/user_share.h>

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

int waits_new(const struct services *services, struct waits **ret_waits)
{
	OWNED(waits) struct waits *waits = calloc(1, sizeof(*waits));
	int err;

	if (!waits)
		return -ENOMEM;
	waits->services = services;
	err = ledger_new(&waits->ledger);
	if (!err)
		err = ledger_check_new(&waits->check);
	if (!err)
		err = ledger_sums_new(&waits->profile);
	if (!err)
		err = ledger_sums_new(&waits->run);
	if (err)
		return err;
	*ret_waits = TAKE(waits);
	return 0;
}

void waits_free(struct waits *waits)
{
	if (!waits)
		return;
	ledger_free(waits->ledger);
	ledger_check_free(waits->check);
	ledger_sums_free(waits->profile);
	ledger_sums_free(waits->run);
	free(waits);
}

struct ledger *waits_ledger(struct waits *waits)
{
	return waits ? waits->ledger : NULL;
}

static bool is_measured(const struct waits *waits, const struct process *process)
{
	return !waits->services->is_filtered || context_table_flags(process) & PP_CONTEXT_MATCHES;
}

void waits_start(struct waits *waits)
{
	const struct process *process = NULL;

	if (!waits)
		return;
	while ((process = process_table_next(waits->services->processes, process)))
		if (!process->exit_ns && is_measured(waits, process))
			ledger_check_begin(waits->check, process->id.tgid);
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
	struct pp_user_share *shares = kernel_side_user_shares(kernel);
	int err = ledger_add_exited(waits->ledger, kernel_side_ledgers(kernel));
	struct pp_ledger_sum sum;

	config->ledgers_taken = 0;
	config->ledger_turn++;
	for (uint32_t i = 0; i < PP_USER_SHARES && !err; i++) {
		if (!__atomic_load_n(&shares[i].rest.threads, __ATOMIC_RELAXED))
			continue;
		take_rest(&shares[i].rest, &sum);
		err = ledger_add_rest(waits->ledger, &sum);
	}
	return err;
}

int waits_collect(struct waits *waits, const struct slots_window *window, struct counts *counts)
{
	struct pp_thread *slot, thread;
	uint32_t slot_count;
	int err;

	if (!waits)
		return 0;
	slot = kernel_side_threads(waits->services->kernel, &slot_count);
	ledger_begin(waits->ledger);
	err = collect_exited(waits);
	for (uint32_t i = 0; i < slot_count && !err; i++) {
		if (!slot[i].tid ||
		    !thread_slot_take(&slot[i], window->number, &thread, &waits->torn))
			continue;
		err = collect_thread(waits, &slot[i], &thread, window, counts);
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

int waits_divide(struct waits *waits, const struct slots_window *window, struct counts *counts)
{
	struct wait_shares shares = {.exact_ns = in_ledger,
				     .leaves_short_out = window->wait_min_ns};

	if (!waits)
		return 0;
	shares.context = waits->ledger;
	return wait_shares_divide(&shares, counts);
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
	const struct process *process = process_table_find(waits->services->processes, line->id);
	char comm[PP_COMM_BYTES + 1] = "";
	int err = 0;

	ledger_check_compare(waits->check, line);
	cover(waits, line);
	if (!line->life_ns)
		return 0;
	if (process)
		memcpy(comm, process->comm, PP_COMM_BYTES);
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

int waits_close(struct waits *waits)
{
	OWNED_MEM struct record_turn *turn = NULL;
	struct record_sink clients = {0};
	struct ledger_line *line;
	size_t count;
	int err;

	if (!waits)
		return 0;
	err = ledger_end(waits->ledger, &line, &count);
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

int waits_describe(struct waits *waits, struct profiles *profiles)
{
	struct record_sink sink;
	int err;

	if (!waits)
		return 0;
	sink = record_sink_profiles(waits->services, profiles);
	err = ledger_records_put(&sink, waits->profile);
	ledger_sums_clear(waits->profile);
	return err;
}

void waits_print(const struct waits *waits, FILE *stream)
{
	if (waits)
		ledger_sums_print(waits->run, stream);
}

/* ---- as a source ---- */

static int source_open(const struct services *services, void **ret_state)
{
	struct waits *waits = NULL;
	int err = waits_new(services, &waits);

	*ret_state = waits;
	return err;
}

static bool source_close(void *state)
{
	waits_free(state);
	return true;
}

static int source_begin(void *state, uint64_t started_ns)
{
	(void)started_ns;
	waits_start(state);
	return 0;
}

static int source_collect_slots(void *state, const struct source_window *window)
{
	return waits_collect(state, &window->slots, window->counts);
}

static int source_collect(void *state, const struct source_window *window)
{
	return waits_divide(state, &window->slots, window->counts);
}

static int source_finish(void *state, const struct source_window *window, const struct slice *slice)
{
	(void)window, (void)slice;
	return waits_close(state);
}

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

static int source_describe(void *state, struct profiles *profiles)
{
	return waits_describe(state, profiles);
}

static void source_summarize(void *state, struct summary *summary)
{
	const struct waits *waits = state;

	summary->loss[PP_LOSS_THREADS_TORN] = waits->torn;
	summary->loss[PP_LOSS_SWITCHES_UNSEEN] += waits->stray;
}

static void source_print(void *state, FILE *stream)
{
	waits_print(state, stream);
}

const struct source waits_source = {.name = "waits",
				    .open = source_open,
				    .close = source_close,
				    .begin = source_begin,
				    .collect_slots = source_collect_slots,
				    .collect = source_collect,
				    .finish = source_finish,
				    .labelled_kinds = 1U << PP_KIND_WAIT | 1U << PP_KIND_WAKE,
				    .label = source_label,
				    .describe = source_describe,
				    .summarize = source_summarize,
				    .print = source_print};
