/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/dump.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "agent/dump_text.h"
#include "agent/thread_names.h"
#include "agent/who.h"
#include "attach/context_table.h"
#include "attach/file_table.h"
#include "attach/kernel_side.h"
#include "base/clock.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "drain/thread_slots.h"
#include "finish/finisher.h"
#include "finish/scan.h"
#include "finish/scan_walk.h"
#include "finish/user_unwind.h"
#include "live/access.h"
#include "python/python_process.h"

#define THREADS_MAX 4096U /* of one process */
#define PROCESSES_MAX 32768U

struct dump {
	const struct dump_sources *sources;
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
	struct dump_thread *thread; /* owned; those of one process */
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

	if (left->id.tgid != right->id.tgid)
		return left->id.tgid < right->id.tgid ? -1 : 1;
	return left->tid < right->tid ? -1 : left->tid > right->tid;
}

static int compare_ids(const void *a, const void *b)
{
	const struct pp_process_id *left = a, *right = b;

	return left->tgid < right->tgid ? -1 : left->tgid > right->tgid;
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
	const struct finisher *finisher = dump->sources->finisher;
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
	const struct pp_thread *slots =
		kernel_side_threads(dump->sources->finisher->kernel, &count);
	struct thread_glance glance;

	if (!thread_slots_glance(slots, count, tid, &glance) || glance.has_exited ||
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
	for (size_t low = 0, high = count; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (thread[middle].tid == tid)
			return true;
		if (thread[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* Adds the threads of /proc/PID/task that the scan has not found.  Returns how many threads there
 * are then. */
static size_t add_running(const struct dump *dump, struct pp_process_id id, size_t slept)
{
	char path[64];
	OWNED_DIR DIR *dir = NULL;
	const struct dirent *item;
	size_t count = slept;

	snprintf(path, sizeof(path), "/proc/%u/task", id.tgid);
	dir = opendir(path);
	while (dir && count < THREADS_MAX && (item = readdir(dir))) {
		char *end;
		unsigned long tid = strtoul(item->d_name, &end, 10);
		struct proc_status status;

		if (!tid || *end || has_thread(dump->thread, slept, (uint32_t)tid) ||
		    thread_status_read(id.tgid, (uint32_t)tid, &status) || status.has_ended)
			continue;
		/* The thread may have gone to sleep since the scan. */
		dump->thread[count++] = (struct dump_thread){.tid = (uint32_t)tid,
							     .wait = PP_WAIT_OTHER,
							     .runs = status.is_runnable};
	}
	return count;
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
	    !user_unwind_describe(dump->sources->finisher->dictionary, record))
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

static int find_running(struct dump *dump, struct process *process, struct dump_thread *thread,
			size_t count)
{
	const struct process_python *python = context_table_python(process);
	OWNED_MEM struct python_thread *state = NULL;
	size_t states = 0;
	int err = 0;

	if (!count || !python || !python->file || python->is_refused ||
	    python_process_threads(python->file->python, (pid_t)process->id.tgid, python->bias,
				   &state, &states))
		return 0;
	for (size_t j = 0; j < count; j++)
		thread[j].inner = inner_of(process, thread[j].tid);
	for (size_t i = 0; i < states && i < THREADS_MAX && !err; i++) {
		uint32_t inner;

		if (python_process_inner_tid((pid_t)process->id.tgid, python->is_musl,
					     state[i].thread_id, state[i].native_id, &inner))
			continue;
		err = walk_inner(dump, process, inner, state[i].thread_state, thread, count);
	}
	return err;
}

/* ---- a process ---- */

static int add_process(struct dump *dump, struct pp_process_id id)
{
	const struct dump_sources *sources = dump->sources;
	struct process *process = process_table_find(sources->finisher->processes, id);
	size_t slept = take_scanned(dump, id), count;
	const struct process_python *python;
	struct proc_status status;
	int err;

	if (!process || process->exit_ns || !live_may_see(dump->uid, id.tgid))
		return 0;
	who_read_details(sources->finisher->processes, process);
	if (!proc_status_read(id.tgid, &status))
		process->uid = status.uid; /* it may have changed since */
	count = add_running(dump, id, slept);
	err = find_running(dump, process, dump->thread + slept, count - slept);
	python = context_table_python(process);
	if (python && python->file) {
		thread_names_want(sources->thread_names, id);
		thread_names_tick(sources->thread_names);
	}
	/* Ask again, now that all was read: the process may have executed a program of another
	 * user. */
	if (!err && live_may_see(dump->uid, id.tgid))
		err = dump_text_add(dump->text, process, dump->thread, count);
	return err;
}

/* ---- the whole ---- */

static int end_scan(struct dump *dump)
{
	int err = list_swept(dump);

	if (!err)
		err = list_processes(dump);
	if (!err)
		err = scan_walker_new(dump->sources->finisher, &dump->walker);
	dump->is_scanned = true;
	return err;
}

int dump_step(struct dump *dump, uint64_t budget_ns)
{
	const struct finisher *finisher = dump->sources->finisher;
	uint64_t until_ns = mono_ns() + budget_ns;
	int err;

	if (!dump->is_scanned) {
		int more = scan_step(dump->scan, budget_ns);

		if (more < 0)
			return more;
		return more ? 1 : end_scan(dump) ?: 1;
	}
	err = finisher->follow_processes(finisher->context);
	while (!err && dump->process_at < dump->process_count && mono_ns() < until_ns)
		err = add_process(dump, dump->process[dump->process_at++]);
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
}

int dump_new(const struct dump_sources *sources, uid_t uid, const struct live_request *request,
	     struct dump **ret_dump)
{
	OWNED(dump) struct dump *dump = calloc(1, sizeof(*dump));
	struct scan_scope scope = {.context = dump, .wants = wants};
	int err;

	if (!dump)
		return -ENOMEM;
	dump->sources = sources;
	dump->uid = uid;
	dump->request = *request;
	dump->thread = calloc(THREADS_MAX, sizeof(dump->thread[0]));
	if (!dump->thread)
		return -ENOMEM;
	err = dump_text_new(sources, request->no_native, &dump->text);
	if (!err)
		err = scan_new(sources->finisher, &scope, &dump->scan);
	if (err)
		return err;
	*ret_dump = TAKE(dump);
	return 0;
}

void dump_free(struct dump *dump)
{
	if (!dump)
		return;
	scan_free(dump->scan);
	scan_walker_free(dump->walker);
	dump_text_free(dump->text);
	free(dump->scanned);
	free(dump->process);
	free(dump->thread);
	free(dump);
}
