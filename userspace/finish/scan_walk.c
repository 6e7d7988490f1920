/* SPDX-License-Identifier: BSD-2-Clause */
/* A scanned thread is an incomplete unwind without any frame yet: this file reads its Python
 * frames, then user_unwind.c walks the native frames and places the segments. */
#include "finish/scan_walk.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "base/io.h"
#include "finish/user_unwind.h"
#include "python/python_frames.h"
#include "python/python_process.h"

#define PAGE_BYTES 4096U
#define LISTS_MAX 4096U /* processes whose thread lists are cached */

/* The interpreter's own list of threads, for when no thread-local slot leads to a thread's state
 * (2.7, or an accessor that could not be decoded). */
struct thread_list {
	struct pp_process_id id;
	struct python_thread *thread; /* owned */
	size_t count;
	UT_hash_handle hh;
};

struct scan_walker {
	const struct finisher *finisher;
	struct thread_list *lists;
	struct python_frames frames;
	uint8_t stack[PP_STACK_COPY_BYTES];
};

int scan_walker_new(const struct finisher *finisher, struct scan_walker **ret_walker)
{
	struct scan_walker *walker = malloc(sizeof(*walker));

	if (!walker)
		return -ENOMEM;
	walker->finisher = finisher;
	walker->lists = NULL;
	*ret_walker = walker;
	return 0;
}

void scan_walker_forget(struct scan_walker *walker)
{
	for (struct thread_list *list = walker->lists; list; list = list->hh.next)
		free(list->thread);
	HASH_DROP_ALL(walker->lists);
}

void scan_walker_free(struct scan_walker *walker)
{
	if (!walker)
		return;
	scan_walker_forget(walker);
	free(walker);
}

/* ---- Python ---- */

static const struct thread_list *list_threads(struct scan_walker *walker, struct pp_process_id id,
					      const struct process_python *python)
{
	struct thread_list *list;

	HASH_FIND(hh, walker->lists, &id, sizeof(id), list);
	if (list || HASH_COUNT(walker->lists) >= LISTS_MAX)
		return list;
	list = HASH_GET(walker->lists, id, id);
	if (list)
		(void)python_process_threads(python->file->python, (pid_t)id.tgid, python->bias,
					     &list->thread, &list->count);
	return list;
}

static bool is_listed_as(const struct python_thread *listed, const struct pp_scan_record *thread)
{
#if defined(__aarch64__)
	/* On aarch64 pthread_self() is not the thread pointer. */
	return listed->native_id && listed->native_id == thread->inner_tid;
#else
	return listed->thread_id == thread->thread_pointer;
#endif
}

/* Finds the thread's state as find_thread_state() in the kernel side does. */
static uint64_t find_state(struct scan_walker *walker, const struct python_where *where,
			   const struct pp_scan_record *thread, uint32_t stack_bytes,
			   struct pp_process_id id, const struct process_python *python)
{
	const struct python_stack stack = {.thread_pointer = thread->thread_pointer,
					   .registers = thread->registers,
					   .bytes = walker->stack,
					   .size = stack_bytes};
	const struct thread_list *list;
	uint64_t state;

	if (python_states_are_several(where))
		state = python_state_on_stack(where, &stack);
	else
		state = python_thread_state_find(where, thread->thread_pointer);
	/* If the slot was readable, a thread without a state runs no Python. */
	if (state || where->tls[1].mode != PP_TLS_NONE)
		return state;
	list = list_threads(walker, id, python);
	for (size_t i = 0; list && i < list->count; i++)
		if (is_listed_as(&list->thread[i], thread))
			return list->thread[i].thread_state;
	return 0;
}

/* Finds how to read the process' interpreter; NULL: it has none that can be read. */
static const struct process_python *find_python(struct process *process,
						struct python_where *ret_where)
{
	const struct process_python *python = context_table_python(process);
	const struct python_info *info;

	if (!python || !python->file || python->is_refused)
		return NULL;
	info = python->file->python;
	*ret_where = (struct python_where){
		.pid = (pid_t)process->id.tgid, .layout = &info->bpf, .bias = python->bias};
	if (python_process_tls_read(info, ret_where->pid, python->bias, python->is_musl,
				    ret_where->tls))
		python_process_tls(info, python->bias, python->is_musl, ret_where->tls);
	return python;
}

/* Reads the Python frames of a thread state into walker->frames, and notes them. */
static void walk_python(struct scan_walker *walker, const struct process_python *python,
			const struct python_where *where, uint64_t thread_state,
			struct pp_incomplete_record *incomplete)
{
	struct python_frames *frames = &walker->frames;

	python_frames_read(where, thread_state, frames);
	incomplete->python = (uint8_t)python->file->python_index;
	incomplete->py_stop = (uint8_t)frames->stop;
	incomplete->python_stored = (uint16_t)frames->stored;
	incomplete->python_count = frames->count;
	incomplete->segment_count = frames->segment_count;
}

/* ---- one thread ---- */

/* Reads the stack from sp up, as far as it is mapped.  Returns the number of bytes. */
static uint32_t copy_stack(struct scan_walker *walker, pid_t pid, uint64_t sp)
{
	size_t bytes = 0, part = PAGE_BYTES - sp % PAGE_BYTES;

	if (!process_read(pid, sp, walker->stack, sizeof(walker->stack)))
		return sizeof(walker->stack);
	while (bytes + part <= sizeof(walker->stack) &&
	       !process_read(pid, sp + bytes, walker->stack + bytes, part)) {
		bytes += part;
		part = PAGE_BYTES;
	}
	return (uint32_t)bytes;
}

static void set_flags(struct scanned *scanned, enum pp_stop stop, enum pp_py_stop py_stop)
{
	scanned->flags |= (uint32_t)stop << PP_COUNT_STOP_SHIFT |
			  (uint32_t)py_stop << PP_COUNT_PY_STOP_SHIFT |
			  (uint32_t)scanned->wait << PP_COUNT_WAIT_SHIFT;
}

static int walk_user(struct scan_walker *walker, const struct pp_scan_record *thread,
		     struct process *process, struct scanned *scanned,
		     struct pp_stack_record **ret_record)
{
	struct python_frames *frames = &walker->frames;
	struct pp_incomplete_record incomplete = {
		.key = {.id = process->id, .tid = thread->tid},
		.pc = thread->pc,
		.sp = thread->sp,
		.fp = thread->fp,
		.is_leaf = 1,
		.return_count = (uint32_t)thread->return_count,
		.stack_start = thread->sp,
		.first_word = thread->first_word,
		.thread_pointer = thread->thread_pointer,
		.py_stop = PP_PY_STOP_NOT_PYTHON,
	};
	const struct decoded_incomplete decoded = {.record = &incomplete,
						   .python = frames->frame,
						   .segment = frames->segment,
						   .returns = thread->returns,
						   .stack = walker->stack};
	const struct process_python *python;
	struct python_where where;
	int err;

	memcpy(incomplete.registers, thread->registers, sizeof(incomplete.registers));
	incomplete.stack_bytes = copy_stack(walker, (pid_t)process->id.tgid, thread->sp);
	python = find_python(process, &where);
	if (python) {
		walk_python(walker, python, &where,
			    find_state(walker, &where, thread, incomplete.stack_bytes, process->id,
				       python),
			    &incomplete);
		scanned->flags |= frames->count_flags;
		if (scanned->wait == PP_WAIT_LOCK &&
		    python_gil_owns(&where, frames, thread->argument))
			scanned->wait = PP_WAIT_GIL;
	}
	err = user_unwind(walker->finisher, process, &decoded, ret_record);
	if (!err)
		set_flags(scanned, (*ret_record)->stop, incomplete.py_stop);
	return err;
}

int scan_walk(struct scan_walker *walker, const struct pp_scan_record *thread,
	      struct process *process, struct scanned *ret_scanned,
	      struct pp_stack_record **ret_record)
{
	ret_scanned->flags = 0;
	ret_scanned->wait = thread->wait;
	*ret_record = NULL;
	if (process && !process->exit_ns && thread->flags & PP_SCAN_USER)
		return walk_user(walker, thread, process, ret_scanned, ret_record);
	set_flags(ret_scanned,
		  thread->flags & PP_SCAN_COMPAT ? PP_STOP_COMPAT
		  : thread->flags & PP_SCAN_USER ? PP_STOP_NO_IMAGE
						 : PP_STOP_NO_USER,
		  PP_PY_STOP_NONE);
	return 0;
}

int scan_walk_state(struct scan_walker *walker, struct process *process, uint32_t tid,
		    uint64_t thread_state, struct scanned *ret_scanned,
		    struct pp_stack_record **ret_record)
{
	struct python_frames *frames = &walker->frames;
	struct pp_incomplete_record incomplete = {.key = {.id = process->id, .tid = tid},
						  .stop = PP_STOP_NO_USER};
	const struct decoded_incomplete decoded = {.record = &incomplete, .python = frames->frame};
	struct python_where where;
	const struct process_python *python = find_python(process, &where);

	if (!python)
		return -ENOENT;
	walk_python(walker, python, &where, thread_state, &incomplete);
	incomplete.segment_count = 0;
	ret_scanned->flags = frames->count_flags;
	ret_scanned->wait = PP_WAIT_NONE;
	set_flags(ret_scanned, PP_STOP_NO_USER, frames->stop);
	/* Without the process no memory can be read. */
	return user_unwind(walker->finisher, NULL, &decoded, ret_record);
}
