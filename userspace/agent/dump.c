/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/dump.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "attach/context_table.h"
#include "attach/file_table.h"
#include "attach/kernel_side.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/slice.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "drain/thread_slots.h"
#include "finish/scan.h"
#include "finish/scan_walk.h"
#include "finish/user_unwind.h"
#include "live/server.h"
#include "processes/thread_names.h"
#include "processes/who.h"
#include "python/python_process.h"
#include "windows/source.h"

#define THREADS_MAX 4096U /* of one process */
#define PROCESSES_MAX 32768U

/* What was found of one process so far.  A process with thousands of threads takes many steps. */
struct visit {
	uint32_t stage;		     /* the next one of stages[] */
	size_t slept, count;	     /* threads: those that the scan has found, all */
	DIR *tasks;		     /* owned; NULL: not opened */
	struct python_thread *state; /* owned */
	size_t state_count, state_at;
	size_t inner_at; /* the thread whose number in its own pid namespace is read next */
};

struct dump {
	const struct services *services;
	uid_t uid;
	struct live_request request;
	uint32_t asked; /* the process that wants() was asked about last */
	bool may_see;
	struct scan *scan;
	bool is_scanned;
	struct scan_walker *walker;	/* walks threads that run */
	const struct scanned **scanned; /* owned; sorted by process, then thread */
	size_t scanned_count, scanned_at;
	struct pp_process_id *process; /* owned; sorted by tgid */
	size_t process_count, process_at;
	struct visit visit;	    /* to the process at process_at */
	struct dump_thread *thread; /* owned; those of this process */
	struct dump_text *text;
};

/* ---- who ---- */

static bool wants(void *context, uint32_t tgid)
{
	struct dump *dump = context;

	if (!live_request_wants(&dump->request, tgid))
		return false;
	if (dump->asked != tgid) {
		dump->asked = tgid;
		dump->may_see = live_may_see(dump->uid, tgid);
	}
	return dump->may_see;
}

static int compare_scanned(const void *a, const void *b)
{
	const struct scanned *left = *(const struct scanned *const *)a;
	const struct scanned *right = *(const struct scanned *const *)b;

	return ORDER(left->id.tgid, right->id.tgid) ?: ORDER(left->tid, right->tid);
}

static int compare_ids(const void *a, const void *b)
{
	const struct pp_process_id *left = a, *right = b;

	return ORDER(left->tgid, right->tgid);
}

static int list_swept(struct dump *dump)
{
	struct scan_stats stats;
	struct scanned *scanned = NULL;

	scan_get_stats(dump->scan, &stats);
	dump->scanned = calloc(stats.threads + 1, sizeof(dump->scanned[0]));
	if (!dump->scanned)
		return -ENOMEM;
	while (dump->scanned_count < stats.threads && (scanned = scan_next(dump->scan, scanned)))
		dump->scanned[dump->scanned_count++] = scanned;
	qsort(dump->scanned, dump->scanned_count, sizeof(dump->scanned[0]), compare_scanned);
	dump_text_count(dump->text, stats.late + stats.refused);
	return 0;
}

static int list_processes(struct dump *dump)
{
	const struct finisher *finisher = dump->services->finisher;
	struct process *process = NULL;

	dump->process = calloc(PROCESSES_MAX, sizeof(dump->process[0]));
	if (!dump->process)
		return -ENOMEM;
	while (dump->process_count < PROCESSES_MAX &&
	       (process = process_table_next(finisher->processes, process))) {
		if (!process->exit_ns && live_request_wants(&dump->request, process->id.tgid) &&
		    (!finisher->is_filtered || context_table_flags(process) & PP_CONTEXT_MATCHES))
			dump->process[dump->process_count++] = process->id;
	}
	qsort(dump->process, dump->process_count, sizeof(dump->process[0]), compare_ids);
	return 0;
}

/* ---- threads that sleep ---- */

/* Returns how long the thread has waited; 0: its slot does not say. */
static uint64_t waited_ns(const struct dump *dump, uint32_t tid, uint64_t now_ns)
{
	uint32_t count;
	const struct kernel_side *kernel = dump->services->finisher->kernel;
	const struct pp_thread *slots = kernel_side_threads(kernel, &count);
	const uint32_t seed = kernel_side_config(kernel)->thread_seed;
	struct thread_glance glance;

	if (!thread_slots_glance(slots, count, seed, tid, &glance) || glance.has_exited ||
	    !(glance.flags & PP_THREAD_WAITING) || glance.since_ns > now_ns)
		return 0;
	return now_ns - glance.since_ns;
}

static size_t take_scanned(struct dump *dump, struct pp_process_id id)
{
	uint64_t now_ns = mono_ns();
	size_t count = 0;

	while (dump->scanned_at < dump->scanned_count &&
	       dump->scanned[dump->scanned_at]->id.tgid < id.tgid)
		dump->scanned_at++;
	for (; dump->scanned_at < dump->scanned_count; dump->scanned_at++) {
		const struct scanned *scanned = dump->scanned[dump->scanned_at];

		if (scanned->id.tgid != id.tgid)
			break;
		if (scanned->id.generation != id.generation)
			continue;
		if (count == THREADS_MAX) {
			dump_text_count(dump->text, 1);
			continue;
		}
		dump->thread[count++] = (struct dump_thread){
			.tid = scanned->tid,
			.user_stack = scanned->user_stack,
			.kernel_stack = dump->request.no_kernel ? 0 : scanned->kernel_stack,
			.flags = scanned->flags,
			.wait = scanned->wait,
			.is_torn = scanned->is_torn,
			.waited_ns = waited_ns(dump, scanned->tid, now_ns),
		};
	}
	return count;
}

/* ---- threads that run ---- */

static bool has_thread(const struct dump_thread *thread, size_t count, uint32_t tid)
{
	const size_t before = ARRAY_LEADING(count, at, thread[at].tid < tid);

	return before < count && thread[before].tid == tid;
}

/* Adds the threads of /proc/PID/task that the scan has not found. */
static int add_running(struct dump *dump, struct process *process, const struct slice *slice)
{
	struct visit *visit = &dump->visit;
	const uint32_t tgid = process->id.tgid;
	const struct dirent *item;
	char path[64];

	if (!visit->tasks) {
		snprintf(path, sizeof(path), "/proc/%u/task", tgid);
		visit->tasks = opendir(path);
	}
	while (visit->tasks && visit->count < THREADS_MAX && (item = readdir(visit->tasks))) {
		char *end;
		unsigned long tid = strtoul(item->d_name, &end, 10);
		struct proc_status status;

		/* The thread may have gone to sleep since the scan. */
		if (tid && !*end && !has_thread(dump->thread, visit->slept, (uint32_t)tid) &&
		    !thread_status_read(tgid, (uint32_t)tid, &status) && !status.has_ended)
			dump->thread[visit->count++] =
				(struct dump_thread){.tid = (uint32_t)tid,
						     .wait = PP_WAIT_OTHER,
						     .runs = status.is_runnable};
		if (slice_is_over(slice))
			return 1;
	}
	return 0;
}

/* Returns the id that the thread has in its own pid namespace; 0: unknown. */
static uint32_t inner_of(const struct process *process, uint32_t tid)
{
	struct proc_status status;

	if (!process->inner_pid || process->inner_pid == process->id.tgid)
		return tid;
	return thread_status_read(process->id.tgid, tid, &status) ? 0 : status.inner_pid;
}

static int walk_running(struct dump *dump, struct process *process, uint64_t state,
			struct dump_thread *thread)
{
	OWNED_MEM struct pp_stack_record *record = NULL;
	struct scanned scanned = {};
	int err = scan_walk_state(dump->walker, process, thread->tid, state, &scanned, &record);

	if (err)
		return err == -ENOENT ? 0 : err;
	thread->flags = scanned.flags;
	if (record->python_stored &&
	    !user_unwind_describe(dump->services->finisher->dictionary, record))
		thread->user_stack = record->hash;
	return 0;
}

/* Walks the thread that has this id in its own pid namespace, unless its stack was found
 * already. */
static int walk_inner(struct dump *dump, struct process *process, uint32_t inner, uint64_t state,
		      struct dump_thread *thread, size_t count)
{
	int err = 0;

	for (size_t i = 0; inner && i < count && !err; i++)
		if (!thread[i].user_stack && thread[i].inner == inner)
			err = walk_running(dump, process, state, &thread[i]);
	return err;
}

/* Lists the thread states of an interpreter's process. */
static int list_states(struct dump *dump, struct process *process, const struct slice *slice)
{
	const struct process_python *python = context_table_python(process);
	struct visit *visit = &dump->visit;

	(void)slice;
	if (visit->count > visit->slept && python && python->file && !python->is_refused)
		(void)python_process_threads(python->file->python, (pid_t)process->id.tgid,
					     python->bias, &visit->state, &visit->state_count);
	if (visit->state_count > THREADS_MAX)
		visit->state_count = THREADS_MAX;
	visit->inner_at = visit->state_count ? visit->slept : visit->count;
	return 0;
}

static int find_inner(struct dump *dump, struct process *process, const struct slice *slice)
{
	struct visit *visit = &dump->visit;

	while (visit->inner_at < visit->count) {
		struct dump_thread *thread = &dump->thread[visit->inner_at++];

		thread->inner = inner_of(process, thread->tid);
		if (slice_is_over(slice))
			return 1;
	}
	return 0;
}

static int walk_states(struct dump *dump, struct process *process, const struct slice *slice)
{
	const struct process_python *python = context_table_python(process);
	struct visit *visit = &dump->visit;

	while (python && visit->state_at < visit->state_count) {
		const struct python_thread *state = &visit->state[visit->state_at++];
		uint32_t inner;
		int err;

		if (python_process_inner_tid((pid_t)process->id.tgid, python->is_musl,
					     state->thread_id, state->native_id, &inner))
			continue;
		err = walk_inner(dump, process, inner, state->thread_state,
				 dump->thread + visit->slept, visit->count - visit->slept);
		if (err || slice_is_over(slice))
			return err ? err : 1;
	}
	return 0;
}

/* ---- a process ---- */

static int begin_process(struct dump *dump, struct process *process, const struct slice *slice)
{
	struct proc_status status;

	(void)slice;
	who_read_details(dump->services->finisher->processes, process);
	if (!proc_status_read(process->id.tgid, &status))
		process->uid = status.uid; /* it may have changed since */
	dump->visit.count = dump->visit.slept;
	return 0;
}

static int name_threads(struct dump *dump, struct process *process, const struct slice *slice)
{
	struct thread_names *names = dump->services->thread_names;
	const struct process_python *python = context_table_python(process);

	(void)slice;
	if (python && python->file) {
		thread_names_want(names, process->id);
		thread_names_tick(names);
	}
	return 0;
}

/* Ask again, now that all was read: the process may have executed a program of another user. */
static int begin_text(struct dump *dump, struct process *process, const struct slice *slice)
{
	(void)slice;
	return live_may_see(dump->uid, process->id.tgid) ? 0 : -ESRCH;
}

static int write_threads(struct dump *dump, struct process *process, const struct slice *slice)
{
	return dump_text_add(dump->text, process, dump->thread, dump->visit.count, slice);
}

/* Each returns 1 while it has more to do, 0 when it is done, -ESRCH to leave the process out, or
 * -errno. */
static int (*const stages[])(struct dump *dump, struct process *process,
			     const struct slice *slice) = {
	begin_process, add_running,  list_states, find_inner,
	walk_states,   name_threads, begin_text,  write_threads,
};
/* The last one needs nothing of the process itself. */
#define WRITING (ARRAY_SIZE(stages) - 1)

static void end_visit(struct dump *dump)
{
	struct visit *visit = &dump->visit;

	if (visit->tasks)
		closedir(visit->tasks);
	free(visit->state);
	*visit = (struct visit){};
	dump_text_end_process(dump->text);
}

/* Goes on with the process at process_at; the table may have moved or forgotten it since the last
 * step.  Returns 1 while there is more of it. */
static int visit_process(struct dump *dump, const struct slice *slice)
{
	const struct pp_process_id id = dump->process[dump->process_at];
	struct visit *visit = &dump->visit;
	struct process *process = process_table_find(dump->services->finisher->processes, id);
	int more = 0;

	if (!visit->stage)
		visit->slept = take_scanned(dump, id);
	if (!process || (process->exit_ns && visit->stage < WRITING) ||
	    (!visit->stage && !live_may_see(dump->uid, id.tgid)))
		more = -ESRCH;
	while (!more && visit->stage < ARRAY_SIZE(stages)) {
		more = stages[visit->stage](dump, process, slice);
		visit->stage += !more;
		if (!more && visit->stage <= WRITING && slice_is_over(slice))
			more = 1;
	}
	if (more > 0)
		return 1;
	end_visit(dump);
	dump->process_at++;
	return more == -ESRCH ? 0 : more;
}

/* ---- the whole ---- */

static int end_scan(struct dump *dump)
{
	int err = list_swept(dump);

	if (!err)
		err = list_processes(dump);
	if (!err)
		err = scan_walker_new(dump->services->finisher, &dump->walker);
	dump->is_scanned = true;
	return err;
}

int dump_step(struct dump *dump, uint64_t budget_ns)
{
	const struct finisher *finisher = dump->services->finisher;
	const struct slice slice = slice_begin(budget_ns);
	int err;

	if (!dump->is_scanned) {
		int more = scan_step(dump->scan, budget_ns);

		if (more < 0)
			return more;
		return more ? 1 : end_scan(dump) ?: 1;
	}
	err = finisher->follow_processes(finisher->context);
	while (!err && dump->process_at < dump->process_count) {
		err = visit_process(dump, &slice);
		if (slice_is_over(&slice))
			break;
	}
	if (err)
		return err;
	return dump->process_at < dump->process_count;
}

int dump_take(struct dump *dump, char **ret_text, size_t *ret_size)
{
	return dump_text_take(dump->text, ret_text, ret_size);
}

void dump_refresh(struct dump *dump)
{
	(void)scan_refresh(dump->scan);
	for (size_t i = 0; i < dump->visit.count; i++)
		(void)dictionary_use_stack(dump->services->finisher->dictionary,
					   dump->thread[i].user_stack);
	dump_text_refresh(dump->text);
}

int dump_new(const struct services *services, uid_t uid, const struct live_request *request,
	     struct dump **ret_dump)
{
	OWNED(dump) struct dump *dump = calloc(1, sizeof(*dump));
	struct scan_scope scope = {.context = dump, .wants = wants};
	int err;

	if (!dump)
		return -ENOMEM;
	dump->services = services;
	dump->uid = uid;
	dump->request = *request;
	dump->thread = calloc(THREADS_MAX, sizeof(dump->thread[0]));
	if (!dump->thread)
		return -ENOMEM;
	err = dump_text_new(services, request->no_native, &dump->text);
	if (!err)
		err = scan_new(services->finisher, &scope, &dump->scan);
	if (err)
		return err;
	*ret_dump = TAKE(dump);
	return 0;
}

void dump_free(struct dump *dump)
{
	if (!dump)
		return;
	if (dump->text)
		end_visit(dump);
	scan_free(dump->scan);
	scan_walker_free(dump->walker);
	dump_text_free(dump->text);
	free(dump->scanned);
	free(dump->process);
	free(dump->thread);
	free(dump);
}
