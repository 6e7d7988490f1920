/* SPDX-License-Identifier: BSD-2-Clause */
#include "processes/process_watch.h"

#include <errno.h>
#include <string.h>

#include "attach/context_table.h"
#include "attach/kernel_side.h"
#include "attach/mapping_locks.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/slice.h"
#include "base/user_quota.h"
#include "base/who_answers.h"
#include "discover/cpus.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "discover/sideband.h"
#include "discover/target.h"
#include "drain/ring.h"
#include "options/options.h"
#include "processes/process_shares.h"
#include "processes/who.h"
#include "python/python_process.h"

#define SELF_TESTS 6U /* a tick (250 ms) apart */
/* How long new programs are published in one turn of the loop, and for one stack of one. */
#define PUBLISH_NS (40 * NS_PER_MS)
#define FILES_AGAIN_NS (20 * NS_PER_MS)
/* How long mappings are read again, in a tick: a tenth of a CPU.  Users have equal parts of it. */
#define READ_AGAIN_NS (25 * NS_PER_MS)
#define FIND_LOST_RESTS 20U /* times as long as a look at all processes takes */

struct event_batch {
	struct pp_event *event; /* owned */
	size_t count, capacity;
};

/* Processes whose mappings are to be read again: they could not be read in time, or their records
 * may be lost.  A reading of 60,000 takes 30 ms, and a program can lose records at any rate, so
 * each user waits for as long as his own have taken. */
struct unread {
	struct process_list round, next; /* of this tick, from `at` on; of the one after it */
	size_t at;
	struct user_quota took; /* ns, by who answers for the process */
};

/* A reading of all of /proc, after a lost event: of processes that are not known. */
struct rescan {
	bool is_wanted, is_running;
	struct proc_scanning listing;
};

struct process_watch {
	struct process_watch_sources sources;
	struct ring *ring; /* owned */
	struct event_batch events;
	struct process_list queue;	/* to publish; is_queued of each is set */
	struct process_list unverified; /* interpreters that are not initialised yet */
	struct unread unread;
	struct process_shares shares;
	bool is_starting;      /* processes are listed, and read afterwards */
	bool is_lost;	       /* records of mappings, since the last look */
	uint64_t find_lost_ns; /* when the next look may be */
	uint32_t looks;
	struct rescan rescan;
	bool lacks_cpus; /* the log says that more CPUs are online than there is memory for */
};

/* ---- publishing ---- */

static uint16_t context_flags(struct process_watch *watch, struct process *process)
{
	uint16_t flags = watch->sources.options->raw ? PP_CONTEXT_NO_FOLD : 0;

	if (!watch->sources.filter)
		return flags;
	if (target_needs_details(watch->sources.filter))
		who_read_details(watch->sources.processes, process);
	if (target_matches(watch->sources.filter, watch->sources.processes, process))
		flags |= PP_CONTEXT_MATCHES;
	return flags;
}

static void say_python_reason(const struct process *process, const struct process_python *python)
{
	if (python->reason)
		log_warn("process %u (%.16s): Python frames are not available: %s",
			 process->id.tgid, process->comm, python->reason);
}

static void verify_python(struct process_watch *watch, struct process *process)
{
	struct process_python *python = context_table_python(process);
	const char *reason = NULL;
	int err;

	if (!python || python->is_checked)
		return;
	if (!python->file) {
		python->is_checked = true;
		say_python_reason(process, python);
		return;
	}
	err = python_process_self_test(python->file->python, (pid_t)process->id.tgid, python->bias,
				       &reason);
	/* A busy program changes while it is tested: only one that fails again and again is
	 * refused. */
	if (err == -EAGAIN || (err == -EBADMSG && ++python->failed_tests < SELF_TESTS)) {
		(void)process_list_add(&watch->unverified, process->id);
		return;
	}
	python->is_checked = true;
	if (err == -EBADMSG) {
		/* Frames of this process would be garbage, so they are not walked any more.  Other
		 * processes with the same interpreter are: this one may have damaged its own
		 * memory. */
		python->reason = reason ? reason : "the self-test failed";
		python->is_refused = true;
		say_python_reason(process, python);
		(void)context_table_publish(watch->sources.contexts, process,
					    context_flags(watch, process));
	}
}

/* A filter by ancestry makes nothing new: the kernel side knows such a process since its fork. */
static void tell_files(const struct process_watch *watch, const struct process *process,
		       bool did_match)
{
	const struct process_watch_sources *sources = &watch->sources;
	const bool matches = context_table_flags(process) & PP_CONTEXT_MATCHES;

	if (sources->on_files && (!sources->filter || matches))
		sources->on_files(sources->context, process,
				  matches && !did_match &&
					  (sources->options->comm ||
					   target_needs_details(sources->filter)));
}

static void tell_end(const struct process_watch *watch, struct pp_process_id id)
{
	if (watch->sources.on_end)
		watch->sources.on_end(watch->sources.context, id);
}

int process_watch_publish(struct process_watch *watch, struct process *process,
			  const struct slice *slice)
{
	bool did_match;
	int err;

	if (process->exit_ns)
		return 0;
	err = context_table_find_files(watch->sources.contexts, process, slice);
	if (err == -EAGAIN)
		return err;
	did_match = context_table_flags(process) & PP_CONTEXT_MATCHES;
	err = context_table_publish(watch->sources.contexts, process,
				    context_flags(watch, process));
	if (err)
		log_debug("process %u: cannot publish its mappings: %s", process->id.tgid,
			  strerror(-err));
	verify_python(watch, process);
	tell_files(watch, process, did_match);
	return err;
}

static void queue(struct process_watch *watch, struct process *process)
{
	if (process && !process->is_queued)
		process->is_queued = !process_list_add(&watch->queue, process->id);
}

/* Publishes a process of the queue, unless a stack of it has had that done before.  Returns whether
 * the slice has allowed it. */
static bool publish_queued(struct process_watch *watch, struct process *process,
			   const struct slice *slice)
{
	if (!process || !process->is_queued)
		return true;
	if ((process->mappings_changed || !process->tables) &&
	    process_watch_publish(watch, process, slice) == -EAGAIN)
		return false;
	process->is_queued = false;
	return true;
}

/* Publishes until the slice is over, and one new file at least.  A process with more files than
 * that goes to the end of the queue: it may map new ones all the time. */
static void publish_all(struct process_watch *watch, const struct slice *slice)
{
	struct process_list *list = &watch->queue;
	struct pp_process_id last;
	bool is_whole = true;
	size_t done = 0;

	if (!list->count)
		return;
	do {
		last = list->id[done++];
		is_whole = publish_queued(watch, process_table_find(watch->sources.processes, last),
					  slice);
	} while (is_whole && done < list->count && !slice_is_over(slice));
	list->count -= done;
	memmove(list->id, list->id + done, list->count * sizeof(*list->id));
	if (!is_whole)
		list->id[list->count++] = last;
}

bool process_watch_has_more(const struct process_watch *watch)
{
	return watch->queue.count > 0 || watch->unread.at < watch->unread.round.count ||
	       watch->rescan.is_running;
}

/* ---- processes found by reading /proc ---- */

static void note_unread(struct process_watch *watch, struct process *process)
{
	if (!process->is_unread)
		process->is_unread = !process_list_add(&watch->unread.next, process->id);
}

/* Who does not answer in time, or whose child did not, is asked again with the next tick. */
static int read_maps(struct process_watch *watch, struct process *process)
{
	int err;

	(void)process_user_kept(process); /* who has the room for them */
	err = process_table_read_maps(watch->sources.processes, process, NULL);
	if (err == -ETIMEDOUT)
		note_unread(watch, process);
	return err;
}

/* Reads a process's mappings at the cost of who answers for it, or notes it for later. */
static void read_again(struct process_watch *watch, struct process *process)
{
	struct user_quota *took = &watch->unread.took;
	const uint32_t user = process_user_kept(process);
	const uint64_t began_ns = mono_ns();
	int err;

	if (user_quota_held(took, user) >= READ_AGAIN_NS / (took->users ?: 1)) {
		note_unread(watch, process);
		return;
	}
	err = read_maps(watch, process);
	(void)user_quota_note(took, user, mono_ns() - began_ns);
	if (err == -ESRCH) {
		context_table_retire(watch->sources.contexts, process);
		(void)process_table_exit(watch->sources.processes, process->id, mono_ns());
	} else if (!err && (process->mappings_changed || !process->tables)) {
		queue(watch, process);
	}
}

static int add_process(struct process_watch *watch, struct pp_process_id id, uint32_t ppid,
		       uint64_t start_ns, const char *comm, struct process **ret_process)
{
	struct process *process;
	int err = process_table_add(watch->sources.processes, id, ppid, start_ns, &process);

	if (err == -EEXIST)
		process = process_table_find(watch->sources.processes, id);
	else if (err)
		return err;
	if (!process)
		return -ESRCH;
	process_shares_add(&watch->shares, process);
	if (!process->comm[0])
		memcpy(process->comm, comm, sizeof(process->comm));
	*ret_process = process;
	return 0;
}

static int read_new(struct process_watch *watch, struct process *process)
{
	const int err = read_maps(watch, process);

	if (err == -ESRCH)
		(void)process_table_exit(watch->sources.processes, process->id, mono_ns());
	if (err)
		return err;
	process->mappings_changed = true; /* or never published */
	queue(watch, process);
	return 0;
}

static int know_process(struct process_watch *watch, struct pp_process_id id, uint32_t ppid,
			uint64_t start_ns, const char *comm, struct process **ret_process)
{
	int err = add_process(watch, id, ppid, start_ns, comm, ret_process);

	return err ?: read_new(watch, *ret_process);
}

static int on_scanned(void *context, const struct proc_stat *stat)
{
	struct process_watch *watch = context;
	struct pp_process_id id = {.tgid = stat->pid};
	struct process *process;

	if (stat->is_kernel_thread || stat->is_zombie)
		return 0;
	/* The kernel side has given a generation to processes that were forked since the
	 * tracepoints are attached. */
	if (kernel_side_get_generation(watch->sources.kernel, id.tgid, &id.generation)) {
		if (!process_shares_take(watch->sources.kernel, id.tgid))
			return 0;
		id.generation = (uint32_t)(mono_ns() >> 10);
		if (kernel_side_add_process(watch->sources.kernel, id) &&
		    kernel_side_get_generation(watch->sources.kernel, id.tgid, &id.generation))
			return 0;
	}
	process = process_table_find(watch->sources.processes, id);
	if (process && process_table_wants_read(process))
		note_unread(watch, process);
	if (process)
		return 0;
	if (!add_process(watch, id, stat->ppid, stat->start_ns, stat->comm, &process) &&
	    !watch->is_starting)
		(void)read_new(watch, process);
	return 0;
}

static struct process *find(struct process_watch *watch, struct pp_process_id id)
{
	static const char no_comm[PP_COMM_BYTES];
	struct process *process = process_table_find(watch->sources.processes, id);

	if (process || (id.generation && !know_process(watch, id, 0, mono_ns(), no_comm, &process)))
		return process;
	return process_table_find_tgid(watch->sources.processes, id.tgid);
}

struct process *process_watch_find(struct process_watch *watch, struct pp_process_id id)
{
	const struct slice slice = slice_begin(PUBLISH_NS);
	struct process *process = find(watch, id);

	(void)publish_queued(watch, process, &slice);
	return process;
}

/* ---- events ---- */

static void on_event(void *context, const struct pp_event *event)
{
	struct process_watch *watch = context;
	struct event_batch *batch = &watch->events;

	if (event->type == PP_EVENT_TABLE) /* it woke the agent: tables_relieve() is next */
		return;
	if (ARRAY_RESERVE(batch->event, batch->count, batch->capacity)) {
		watch->rescan.is_wanted = true;
		return;
	}
	batch->event[batch->count++] = *event;
}

static void answer_thread_state(struct process_watch *watch, const struct pp_event *event)
{
	struct process *process = process_table_find(watch->sources.processes, event->id);
	struct process_python *python = process ? context_table_python(process) : NULL;
	OWNED_MEM struct python_thread *thread = NULL;
	size_t count = 0;

	if (!python || !python->file ||
	    python_process_threads(python->file->python, (pid_t)event->id.tgid, python->bias,
				   &thread, &count))
		return;
	for (size_t i = 0; i < count; i++) {
		struct pp_thread_key key = {.id = event->id, .tid = event->tid};
		uint32_t tid;

		/* Find the thread that asked; the kernel side checks the answer. */
		if (python_process_inner_tid((pid_t)event->id.tgid, python->is_musl,
					     thread[i].thread_id, thread[i].native_id, &tid))
			continue;
		if (tid == event->tid || count == 1)
			(void)kernel_side_set_thread_state(watch->sources.kernel, &key,
							   thread[i].thread_state);
	}
}

static void tell_victim(struct process_watch *watch, const struct pp_event *event)
{
	struct process *process = process_table_find(watch->sources.processes, event->id);

	if (!process || !watch->sources.on_victim ||
	    (watch->sources.filter && !(context_table_flags(process) & PP_CONTEXT_MATCHES)))
		return;
	watch->sources.on_victim(watch->sources.context, process, event->time_ns);
}

static void apply_event(struct process_watch *watch, const struct pp_event *event)
{
	struct process *process, *parent;

	switch (event->type) {
	case PP_EVENT_UNKNOWN:
		(void)know_process(watch, event->id, 0, event->time_ns, event->comm, &process);
		return;
	case PP_EVENT_THREAD_STATE:
		answer_thread_state(watch, event);
		return;
	case PP_EVENT_OOM:
		tell_victim(watch, event);
		return;
	case PP_EVENT_NEW_SPACE:
		(void)process_table_new_context(watch->sources.processes, event->id.tgid,
						event->time_ns);
		return;
	case PP_EVENT_MOVED: /* filters may want it now */
		queue(watch, who_moved(watch->sources.processes, event->id.tgid));
		return;
	case PP_EVENT_EXIT:
		process = process_table_find(watch->sources.processes, event->id);
		if (process)
			context_table_retire(watch->sources.contexts, process);
		tell_end(watch, event->id);
		(void)process_table_apply(watch->sources.processes, event);
		return;
	}
	/* The table may move its processes when it takes the event, so look them up afterwards. */
	(void)process_table_apply(watch->sources.processes, event);
	process = process_table_find(watch->sources.processes, event->id);
	parent = process_table_find(watch->sources.processes, event->parent);
	if (!process)
		return;
	process->user = who_answers(event->user); /* the kernel side's ranges may be older */
	process->is_user_known = true;
	process_shares_add(&watch->shares, process);
	if (event->type == PP_EVENT_FORK && parent) {
		(void)context_table_fork(watch->sources.contexts, parent, process);
		if (watch->sources.filter && !(context_table_flags(process) & PP_CONTEXT_MATCHES))
			process->mappings_changed = true;
	} else if (event->type == PP_EVENT_EXEC && parent) {
		context_table_retire(watch->sources.contexts, parent);
		tell_end(watch, event->parent);
	}
	if (process_table_wants_read(process))
		read_again(watch, process);
	queue(watch, process);
}

static void on_mapping(void *context, uint32_t tgid, const struct mapping *mapping)
{
	struct process_watch *watch = context;

	if (!process_table_map(watch->sources.processes, tgid, mapping))
		queue(watch, process_table_find_tgid(watch->sources.processes, tgid));
}

static void on_lost(void *context, uint32_t cpu, uint64_t count)
{
	(void)cpu, (void)count;
	((struct process_watch *)context)->is_lost = true;
}

static int compare_events(const void *a, const void *b)
{
	return ORDER(((const struct pp_event *)a)->time_ns, ((const struct pp_event *)b)->time_ns);
}

int process_watch_take_in(struct process_watch *watch)
{
	const struct sideband_handlers handlers = {
		.context = watch, .mapping = on_mapping, .lost = on_lost};
	int err;

	watch->events.count = 0;
	err = ring_consume(watch->ring);
	if (err)
		return err;
	err = sideband_collect(watch->sources.sideband);
	if (err)
		return err;
	if (watch->events.count > 1)
		qsort(watch->events.event, watch->events.count, sizeof(*watch->events.event),
		      compare_events);
	for (size_t i = 0; i < watch->events.count; i++) {
		sideband_deliver(watch->sources.sideband, watch->events.event[i].time_ns,
				 &handlers);
		apply_event(watch, &watch->events.event[i]);
	}
	sideband_deliver(watch->sources.sideband, UINT64_MAX, &handlers);
	return 0;
}

/* ---- what was lost ---- */

/* One look at the mappings of all processes. */
struct look {
	struct process_watch *watch;
	const struct slice *slice;
	uint32_t number;
};

/* Returns the process, when its mappings are not as they were; is_code: those with code. */
static struct process *note_space(void *context, const struct pp_space_record *space,
				  bool *ret_is_code)
{
	const struct look *look = context;
	struct process *process =
		process_table_find_tgid(look->watch->sources.processes, space->tgid);
	struct process_space *known = process ? &process->space : NULL;
	bool is_same;

	if (!process || process->exit_ns)
		return NULL;
	*ret_is_code = known->code_pages != space->code_pages;
	is_same = !*ret_is_code && known->writes == space->writes;
	*known = (struct process_space){space->code_pages, space->writes, look->number};
	return is_same ? NULL : process;
}

static void on_first_space(void *context, const struct pp_space_record *space)
{
	bool is_code;

	(void)note_space(context, space, &is_code);
}

static void on_space(void *context, const struct pp_space_record *space)
{
	const struct look *look = context;
	bool is_code = false;
	struct process *process = note_space(context, space, &is_code);

	if (!process)
		return;
	process_table_lost(process);
	if (is_code && !slice_is_over(look->slice))
		read_again(look->watch, process);
	else
		note_unread(look->watch, process);
}

/* Notes the processes for later that a look has not met. */
static void note_unseen(struct process_watch *watch, uint32_t look)
{
	struct process *process = NULL;

	while ((process = process_table_next(watch->sources.processes, process))) {
		if (process->exit_ns || process->space.look == look)
			continue;
		process_table_lost(process);
		note_unread(watch, process);
	}
}

/* Reads the processes again whose mappings have changed since the last look, or notes them for
 * later; is_gone: those as well that may have ended without an event. */
static void find_lost(struct process_watch *watch, bool is_gone, const struct slice *slice)
{
	struct look look = {.watch = watch, .slice = slice, .number = ++watch->looks};
	const uint64_t began_ns = mono_ns();
	const int err = mapping_spaces_read(kernel_side_parts(watch->sources.kernel).spaces,
					    on_space, &look);

	if (err || is_gone)
		note_unseen(watch, look.number);
	watch->is_lost = false;
	watch->find_lost_ns = mono_ns() + FIND_LOST_RESTS * (mono_ns() - began_ns);
}

int process_watch_start(struct process_watch *watch)
{
	struct look look = {.watch = watch};
	struct process *process = NULL;
	int err;

	watch->is_starting = true;
	err = proc_scan(on_scanned, watch);
	watch->is_starting = false;
	/* What they map from here on is told, or lost and then seen. */
	(void)mapping_spaces_read(kernel_side_parts(watch->sources.kernel).spaces, on_first_space,
				  &look);
	while ((process = process_table_next(watch->sources.processes, process)))
		if (process_table_wants_read(process))
			(void)read_new(watch, process);
	publish_all(watch, NULL);
	return err ? log_error_errno(err, "cannot read /proc") : 0;
}

/* Goes on until the slice is over, and by one process at least.  Events are taken in between: each
 * process is read after those that it has seen. */
static void unread_step(struct process_watch *watch, const struct slice *slice)
{
	struct unread *unread = &watch->unread;

	while (unread->at < unread->round.count) {
		struct process *process = process_table_find(watch->sources.processes,
							     unread->round.id[unread->at++]);

		if (!process)
			continue;
		process->is_unread = false;
		if (process_table_wants_read(process))
			read_again(watch, process);
		if (slice_is_over(slice))
			return;
	}
}

static void unread_begin(struct unread *unread)
{
	user_quota_give_each(&unread->took, READ_AGAIN_NS / (unread->took.users ?: 1));
	if (unread->at < unread->round.count)
		return;
	free(unread->round.id);
	unread->round = unread->next;
	unread->next = (struct process_list){};
	unread->at = 0;
}

static void end_rescan(struct process_watch *watch)
{
	proc_scanning_end(&watch->rescan.listing);
	watch->rescan = (struct rescan){.is_wanted = watch->rescan.is_wanted};
}

static void read_step(struct process_watch *watch, const struct slice *slice)
{
	struct rescan *rescan = &watch->rescan;

	unread_step(watch, slice);
	if (rescan->is_running && watch->unread.at == watch->unread.round.count &&
	    proc_scan_step(&rescan->listing, on_scanned, watch, slice) <= 0)
		end_rescan(watch);
}

/* What is lost while /proc is read may lie before the place where that is. */
static void rescan_begin(struct process_watch *watch)
{
	static const struct slice over;

	if (!watch->rescan.is_wanted || watch->rescan.is_running)
		return;
	find_lost(watch, true, &over);
	watch->rescan = (struct rescan){.is_running = true};
}

int process_watch_follow(struct process_watch *watch)
{
	int err = process_watch_take_in(watch);
	struct slice slice;

	if (err)
		return err;
	slice = slice_begin(PUBLISH_NS);
	if (watch->is_lost && mono_ns() >= watch->find_lost_ns)
		find_lost(watch, false, &slice);
	read_step(watch, &slice);
	publish_all(watch, &slice);
	return 0;
}

void process_watch_follow_cpus(struct process_watch *watch)
{
	CLEANUP(cpu_list_release) struct cpu_list online = {};
	struct sideband_stats stats;

	sideband_get_stats(watch->sources.sideband, &stats);
	if (cpus_online(&online))
		return;
	if (kernel_side_follow_cpus(watch->sources.kernel, online.cpu, online.count) == -ENOSPC &&
	    !watch->lacks_cpus) {
		watch->lacks_cpus = true;
		log_warn("samples of some CPUs are not counted (no_scratch): %zu CPUs are online, "
			 "and memory was reserved for the %u at the start and a few more; restart "
			 "pyprofd",
			 online.count, watch->sources.online_cpus);
	}
	if (online.count == stats.cpus)
		return;
	for (size_t i = 0; i < online.count; i++)
		if (!sideband_add_cpu(watch->sources.sideband, online.cpu[i]))
			watch->is_lost = true; /* those made there until now were not seen */
	for (uint32_t cpu = 0; cpu < CPUS_MAX && online.count < stats.cpus; cpu++)
		if (!cpu_list_has(&online, cpu))
			(void)sideband_remove_cpu(watch->sources.sideband, cpu);
}

/* Queues the processes of a list, which becomes empty. */
static void queue_again(struct process_watch *watch, struct process_list *list)
{
	const struct process_list again = *list;

	*list = (struct process_list){};
	for (size_t i = 0; i < again.count; i++) {
		struct process *process = process_table_find(watch->sources.processes, again.id[i]);

		if (!process || process->exit_ns)
			continue;
		process->mappings_changed = true;
		queue(watch, process);
	}
	free(again.id);
}

/* Files that the child was late at, or that came while there was none. */
static void find_files_again(struct process_watch *watch)
{
	const struct slice slice = slice_begin(FILES_AGAIN_NS);
	struct process *process = NULL;

	if (!context_table_is_due(watch->sources.contexts, mono_ns()))
		return;
	while ((process = process_table_next(watch->sources.processes, process))) {
		if (process->exit_ns || process->is_queued ||
		    !context_table_ask_again(watch->sources.contexts, process, &slice))
			continue;
		process->mappings_changed = true;
		queue(watch, process);
	}
}

void process_watch_tick(struct process_watch *watch)
{
	rescan_begin(watch);
	unread_begin(&watch->unread);
	find_files_again(watch);
	process_shares_tell(&watch->shares);
	/* Published again: the place of their thread states may be known only now. */
	queue_again(watch, &watch->unverified);
}

void process_watch_want_rescan(struct process_watch *watch)
{
	watch->rescan.is_wanted = true;
}

/* ---- the whole ---- */

int process_watch_new(const struct process_watch_sources *sources, struct process_watch **ret_watch)
{
	struct process_watch *watch = calloc(1, sizeof(*watch));
	const struct drain_handlers handlers = {.context = watch, .event = on_event};
	int err;

	if (!watch)
		return -ENOMEM;
	watch->sources = *sources;
	err = ring_new(kernel_side_parts(sources->kernel).events, RING_EVENTS, &handlers,
		       &watch->ring);
	if (err) {
		free(watch);
		return err;
	}
	process_shares_init(&watch->shares, sources->processes, sources->kernel);
	*ret_watch = watch;
	return 0;
}

void process_watch_free(struct process_watch *watch)
{
	struct process *process = NULL;

	if (!watch)
		return;
	while ((process = process_table_next(watch->sources.processes, process)))
		context_table_release(watch->sources.contexts, process);
	process_shares_release(&watch->shares);
	end_rescan(watch);
	ring_free(watch->ring);
	free(watch->events.event);
	free(watch->queue.id);
	free(watch->unverified.id);
	free(watch->unread.round.id);
	free(watch->unread.next.id);
	user_quota_release(&watch->unread.took);
	free(watch);
}

const struct ring *process_watch_ring(const struct process_watch *watch)
{
	return watch->ring;
}

void process_watch_count(const struct process_watch *watch, uint64_t loss[PP_LOSS_COUNT])
{
	struct process_table_stats processes;
	struct sideband_stats sideband;

	process_table_get_stats(watch->sources.processes, &processes);
	sideband_get_stats(watch->sources.sideband, &sideband);
	loss[PP_LOSS_PROCESSES_REFUSED] = processes.processes_refused;
	loss[PP_LOSS_MAPPINGS_REFUSED] = processes.mappings_refused;
	loss[PP_LOSS_RECORDS_BAD] +=
		ring_bad_count(watch->ring) + sideband.bad + processes.bad_lines;
}
