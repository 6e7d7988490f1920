/* SPDX-License-Identifier: BSD-2-Clause */
/* A swept thread is a miss of which nothing was walked yet: its Python frames are read here, then
 * miss_walk.c walks the native ones and places the runs. */
#include "finish/sweep_walk.h"

#include <errno.h>
#include <string.h>

#include <uthash.h>

#include "base/io.h"
#include "finish/miss_walk.h"
#include "python/python_frames.h"
#include "python/python_process.h"
#include "python/python_states.h"

#define PAGE_BYTES 4096U
#define LISTS_MAX 4096U /* processes whose threads are remembered */

/* The interpreter's own list, for threads that no slot names (2.7, or an accessor that was not read). */
struct thread_list {
	struct pp_process_id id;
	struct python_thread *thread; /* owned */
	size_t count;
	UT_hash_handle hh;
};

struct sweep_walker {
	const struct finisher *finisher;
	struct thread_list *lists;
	struct python_frames frames;
	uint8_t stack[PP_STACK_COPY_BYTES];
};

int sweep_walker_new(const struct finisher *finisher, struct sweep_walker **ret_walker)
{
	struct sweep_walker *walker = malloc(sizeof(*walker));

	if (!walker)
		return -ENOMEM;
	walker->finisher = finisher;
	walker->lists = NULL;
	*ret_walker = walker;
	return 0;
}

void sweep_walker_forget(struct sweep_walker *walker)
{
	struct thread_list *list, *next;

	HASH_ITER (hh, walker->lists, list, next) {
		HASH_DEL(walker->lists, list);
		free(list->thread);
		free(list);
	}
}

void sweep_walker_free(struct sweep_walker *walker)
{
	if (!walker)
		return;
	sweep_walker_forget(walker);
	free(walker);
}

/* ---- Python ---- */

static const struct thread_list *list_threads(struct sweep_walker *walker, struct pp_process_id id,
					      const struct process_python *python)
{
	struct thread_list *list;

	HASH_FIND(hh, walker->lists, &id, sizeof(id), list);
	if (list || HASH_COUNT(walker->lists) >= LISTS_MAX)
		return list;
	list = calloc(1, sizeof(*list));
	if (!list)
		return NULL;
	list->id = id;
	(void)python_process_threads(python->file->python, (pid_t)id.tgid, python->bias,
				     &list->thread, &list->count);
	HASH_ADD(hh, walker->lists, id, sizeof(id), list);
	HASH_FIND(hh, walker->lists, &id, sizeof(id), list); /* not there when memory was short */
	return list;
}

static bool is_listed_as(const struct python_thread *listed, const struct pp_sweep_record *thread)
{
#if defined(__aarch64__)
	/* pthread_self() is not the thread pointer there. */
	return listed->native_id && listed->native_id == thread->inner_tid;
#else
	return listed->thread_id == thread->thread_pointer;
#endif
}

/* As find_thread_state() of the kernel side. */
static uint64_t find_state(struct sweep_walker *walker, const struct python_where *where,
			   const struct pp_sweep_record *thread, uint32_t stack_bytes,
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
	/* Where a slot could be read, a thread without a state runs no Python. */
	if (state || where->tls[1].mode != PP_TLS_NONE)
		return state;
	list = list_threads(walker, id, python);
	for (size_t i = 0; list && i < list->count; i++)
		if (is_listed_as(&list->thread[i], thread))
			return list->thread[i].thread_state;
	return 0;
}

/* Sets walker->frames, the flags that they give, and the wait for the GIL. */
static void walk_python(struct sweep_walker *walker, const struct pp_sweep_record *thread,
			uint32_t stack_bytes, const struct process *process,
			const struct process_python *python, struct swept *swept)
{
	const struct python_info *info = python->file->python;
	struct python_where where = {
		.pid = (pid_t)process->id.tgid, .layout = &info->bpf, .bias = python->bias};

	if (python_process_tls_read(info, where.pid, where.bias, python->is_musl, where.tls))
		python_process_tls(info, where.bias, python->is_musl, where.tls);
	python_frames_read(&where,
			   find_state(walker, &where, thread, stack_bytes, process->id, python),
			   &walker->frames);
	swept->flags |= walker->frames.count_flags;
	if (swept->wait == PP_WAIT_LOCK &&
	    python_gil_owns(&where, &walker->frames, thread->argument))
		swept->wait = PP_WAIT_GIL;
}

/* ---- the whole ---- */

/* As much of the stack above sp as is there; returns its bytes. */
static uint32_t copy_stack(struct sweep_walker *walker, pid_t pid, uint64_t sp)
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

static void set_flags(struct swept *swept, enum pp_stop stop, enum pp_py_stop py_stop)
{
	swept->flags |= (uint32_t)stop << PP_COUNT_STOP_SHIFT |
			(uint32_t)py_stop << PP_COUNT_PY_STOP_SHIFT |
			(uint32_t)swept->wait << PP_COUNT_WAIT_SHIFT;
}

static int walk_user(struct sweep_walker *walker, const struct pp_sweep_record *thread,
		     struct process *process, struct swept *swept,
		     struct pp_stack_record **ret_record)
{
	const struct process_python *python = image_table_python(process);
	struct python_frames *frames = &walker->frames;
	struct pp_miss_record miss = {
		.key = {.id = process->id, .tid = thread->tid},
		.pc = thread->pc,
		.sp = thread->sp,
		.fp = thread->fp,
		.is_leaf = 1,
		.stack_start = thread->sp,
		.first_word = thread->first_word,
		.thread_pointer = thread->thread_pointer,
		.py_stop = PP_PY_STOP_NOT_PYTHON,
	};
	const struct decoded_miss decoded = {.record = &miss,
					     .python = frames->frame,
					     .segment = frames->segment,
					     .stack = walker->stack};
	int err;

	memcpy(miss.registers, thread->registers, sizeof(miss.registers));
	miss.stack_bytes = copy_stack(walker, (pid_t)process->id.tgid, thread->sp);
	if (python && python->file && !python->is_refused) {
		walk_python(walker, thread, miss.stack_bytes, process, python, swept);
		miss.python = (uint8_t)python->file->python_index;
		miss.py_stop = (uint8_t)frames->stop;
		miss.python_stored = (uint16_t)frames->stored;
		miss.python_count = frames->count;
		miss.segment_count = frames->segment_count;
	}
	err = miss_walk(walker->finisher, process, &decoded, ret_record);
	if (!err)
		set_flags(swept, (*ret_record)->stop, miss.py_stop);
	return err;
}

int sweep_walk(struct sweep_walker *walker, const struct pp_sweep_record *thread,
	       struct process *process, struct swept *ret_swept,
	       struct pp_stack_record **ret_record)
{
	ret_swept->flags = 0;
	ret_swept->wait = thread->wait;
	*ret_record = NULL;
	if (process && !process->exit_ns && thread->flags & PP_SWEEP_USER)
		return walk_user(walker, thread, process, ret_swept, ret_record);
	set_flags(ret_swept,
		  thread->flags & PP_SWEEP_COMPAT ? PP_STOP_COMPAT
		  : thread->flags & PP_SWEEP_USER ? PP_STOP_NO_IMAGE
						  : PP_STOP_NO_USER,
		  PP_PY_STOP_NONE);
	return 0;
}

int sweep_walk_state(struct sweep_walker *walker, struct process *process, uint32_t tid,
		     uint64_t thread_state, struct swept *ret_swept,
		     struct pp_stack_record **ret_record)
{
	const struct process_python *python = image_table_python(process);
	struct python_frames *frames = &walker->frames;
	struct pp_miss_record miss = {.key = {.id = process->id, .tid = tid},
				      .stop = PP_STOP_NO_USER};
	const struct decoded_miss decoded = {.record = &miss, .python = frames->frame};
	struct python_where where = {.pid = (pid_t)process->id.tgid};

	if (!python || !python->file || python->is_refused)
		return -ENOENT;
	where.layout = &python->file->python->bpf;
	where.bias = python->bias;
	if (python_process_tls_read(python->file->python, where.pid, where.bias, python->is_musl,
				    where.tls))
		python_process_tls(python->file->python, where.bias, python->is_musl, where.tls);
	python_frames_read(&where, thread_state, frames);
	miss.python = (uint8_t)python->file->python_index;
	miss.py_stop = (uint8_t)frames->stop;
	miss.python_stored = (uint16_t)frames->stored;
	miss.python_count = frames->count;
	ret_swept->flags = frames->count_flags;
	ret_swept->wait = PP_WAIT_NONE;
	set_flags(ret_swept, PP_STOP_NO_USER, frames->stop);
	/* Without the process nothing is walked beyond what is there. */
	return miss_walk(walker->finisher, NULL, &decoded, ret_record);
}
