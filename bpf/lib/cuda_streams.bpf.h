/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which streams of a process may have work queued, as its calls prove it (include/pyprofd/cuda.h).
 *
 * A process goes through rounds: each of its synchronisations begins the next one.
 *
 *   launch           1. says that its thread is inside of one, and of which stream: cuda_queue()
 *                    2. reads the round, and marks the stream with it: cuda_mark()
 *   synchronisation  1. begins round n: cuda_sync_begin()
 *                    2. looks whether another thread is inside: cuda_others_launch()
 *                    3. has returned without an error: its streams are synced as of n, which is
 *                       that all marked in rounds before n has ended: cuda_synced()
 *
 * A stream is dirty while its mark is not older than what it is synced as of.  Of a launch in
 * another thread there are three cases, as both sides write first and read then:
 *   - it reads round n or a later one: its mark stays, whether it is waited for or not;
 *   - it has read an earlier one, and is seen inside: the synchronisation proves nothing;
 *   - it has read an earlier one, and has returned: what it queued is waited for.
 *
 * Nothing is locked.  Marks never go back (cuda_raise()), and who marks reads the round once more,
 * and marks again when it has changed: a mark that is written late, after others have looked at the
 * rows, is that of a round that they know nothing of.  Whether any row is dirty a sample reads from
 * two numbers of the process: its last mark, and the round before which all rows are clean.
 *
 * Of a process that is not whole, a row CUDA_BEFORE for each context stands for what was queued
 * there before we looked: a synchronisation of that context alone ends it.  It has such a pair of
 * numbers of its own (unsure, sure).  docs/design/gpu.md. */
#ifndef BPF_LIB_CUDA_STREAMS_H
#define BPF_LIB_CUDA_STREAMS_H

#include "lib/count.bpf.h"
#include "lib/cuda_launchers.bpf.h"
#include "lib/identify.bpf.h"
#include "lib/threads.bpf.h"

/* CU_STREAM_LEGACY and CU_STREAM_PER_THREAD of cuda.h; a stream's handle is a pointer. */
#define CUDA_LEGACY 1ULL
#define CUDA_PER_THREAD 2ULL
/* With a thread's id: its own default stream; its context, which is not known. */
#define CUDA_OF_THREAD (1ULL << 63)
/* Instead of a stream: what was queued before we looked; streams that were destroyed with work in
 * them; those that found no row. */
#define CUDA_BEFORE (3ULL << 62)
#define CUDA_GONE (CUDA_BEFORE + 1)
#define CUDA_OTHERS (CUDA_BEFORE + 2)
/* Instead of a context: that of device 0, where no thread chose one; more than one. */
#define CUDA_CONTEXT_FIRST 1ULL
#define CUDA_CONTEXT_MIXED CUDA_BEFORE
/* Of a stream without kernels so far: copies do not tell in which one it is. */
#define CUDA_CONTEXT_UNTOLD (CUDA_BEFORE + 1)
/* A thread that is late three times in a row marks so many rounds ahead. */
#define CUDA_ROUNDS_AHEAD 64U

#define CUDA_ROW_OF_OTHERS (CUDA_STREAMS - 1)

/* ---- rounds ---- */

static __always_inline __u64 *cuda_rounds_of(__u32 tgid)
{
	__u32 index = tgid * 0x9e3779b1U >> 24;

	_Static_assert(CUDA_ROUNDS == 1 << 8, "the hash has 8 bits");
	return bpf_map_lookup_elem(&cuda_rounds, &index);
}

static __always_inline __u64 cuda_round(const __u64 *rounds)
{
	return *(const volatile __u64 *)rounds + 1;
}

/* Raises a number that several may raise at the same time: it never goes back. */
static __always_inline void cuda_raise(__u64 *number, __u64 to)
{
#pragma unroll
	for (int i = 0; i < 4 && has_cmpxchg; i++) {
		const __u64 was = *(volatile __u64 *)number;

		if (was >= to || __sync_val_compare_and_swap(number, was, to) == was)
			return;
	}
	if (*(volatile __u64 *)number < to)
		*(volatile __u64 *)number = to;
}

/* ---- how long the process was in each state ---- */

/* Notes the state that the process has now.  Two may come here at the same time: the one that
 * changes `since` counts, and looks once more at what the other may have seen first. */
static __always_inline void gpu_turn(struct pp_gpu_process *process)
{
#pragma unroll
	for (int i = 0; i < 2; i++) {
		const __u64 was = *(volatile __u64 *)&process->since;
		const __u64 state = pp_gpu_of(process);
		const __u32 old = was & (PP_GPU_COUNT - 1);
		const __u64 now_ns = bpf_ktime_get_ns();

		if (old == state)
			return;
		if (!has_cmpxchg)
			*(volatile __u64 *)&process->since = now_ns << PP_GPU_SINCE_SHIFT | state;
		else if (__sync_val_compare_and_swap(&process->since, was,
						     now_ns << PP_GPU_SINCE_SHIFT | state) != was)
			continue;
		if (old < PP_GPU_WAIT)
			__sync_fetch_and_add(&process->total_ns[old],
					     now_ns - (was >> PP_GPU_SINCE_SHIFT));
	}
}

/* ---- processes ---- */

static __always_inline bool cuda_is_whole(const struct pp_process_id *id)
{
	const __u32 *generation = bpf_map_lookup_elem(&cuda_wholes, &id->tgid);

	return generation && *generation == id->generation;
}

/* Returns whether a user has as many processes with a state as he may. */
static __always_inline bool gpu_processes_are_refused(__u32 user)
{
	const struct pp_user_share *share = share_of(user);

	return share && share->gpu_processes >= PP_GPU_PROCESSES_MAX / PP_GPU_USERS;
}

static __always_inline void gpu_processes_count(__u32 user, __s32 more)
{
	struct pp_user_share *share = share_of(user);

	if (share && (more > 0 || share->gpu_processes))
		__sync_fetch_and_add(&share->gpu_processes, more);
}

/* Makes the streams of a process, and sets what its state is with them.  Returns false when there
 * is no room. */
static __always_inline bool cuda_streams_make(const struct pp_process_id *id,
					      struct pp_gpu_process *state)
{
	const struct pp_config *cfg = config_get();
	__u32 zero = 0;
	const struct cuda_streams *none = bpf_map_lookup_elem(&cuda_no_streams, &zero);
	struct cuda_streams *streams;
	bool is_first;

	if (!none || !cfg)
		return false;
	is_first = !bpf_map_update_elem(&cuda_streams, id, none, BPF_NOEXIST);
	streams = bpf_map_lookup_elem(&cuda_streams, id);
	if (!streams)
		return false;
	if (cuda_is_whole(id))
		streams->is_whole = 1;
	/* Had it streams before, or is not all seen, a synchronisation must tell. */
	state->idle = state->sure = is_first && streams->is_whole && !cfg->gpu_is_blind;
	state->since = bpf_ktime_get_ns() << PP_GPU_SINCE_SHIFT | pp_gpu_of(state);
	return true;
}

/* Makes the state of the current thread's process, which a user has.  Returns nonzero when there is
 * no room. */
__noinline int cuda_process_make(__u32 generation, __u32 sight, __u32 user)
{
	struct pp_process_id id = {.tgid = bpf_get_current_pid_tgid() >> 32,
				   .generation = generation};
	struct pp_gpu_process fresh = {.generation = generation, .sight = sight, .user = user};
	const struct pp_gpu_process *known = bpf_map_lookup_elem(&gpu_processes, &id.tgid);
	int err = 0;

	if (!generation)
		return 1;
	/* Another process that had this id, or another program. */
	if (known && (known->generation != generation || known->sight != sight)) {
		gpu_processes_count(known->user, -1);
		bpf_map_delete_elem(&gpu_processes, &id.tgid);
		known = NULL;
	}
	if ((!known && gpu_processes_are_refused(fresh.user)) || !cuda_streams_make(&id, &fresh))
		err = -7; /* E2BIG */
	else if (!known)
		err = bpf_map_update_elem(&gpu_processes, &id.tgid, &fresh, BPF_NOEXIST);
	if (!err && !known)
		gpu_processes_count(fresh.user, 1);
	if (err == -7)
		count_loss(PP_LOSS_GPU_FULL);
	else
		processes_changed(); /* walks and slots of threads look again */
	return err == -7;
}

/* Returns the state of a process; NULL: it has none, or an earlier one. */
static __always_inline struct pp_gpu_process *gpu_process_of(__u32 tgid, __u32 generation,
							     const struct pp_config *cfg)
{
	struct pp_gpu_process *process = bpf_map_lookup_elem(&gpu_processes, &tgid);

	return process && process->generation == generation && process->sight == cfg->gpu_sight
		       ? process
		       : NULL;
}

/* Marks a row, of work or of what may be left from before. */
static __always_inline void cuda_row_mark(struct cuda_streams *streams,
					  struct pp_gpu_process *process, __u32 row, __u64 round,
					  bool is_before)
{
	BARRIER(row);
	if (row >= CUDA_STREAMS)
		return;
	cuda_raise(&streams->stream[row].marked, round);
	cuda_raise(is_before ? &process->unsure : &process->marked, round);
}

/* ---- contexts ---- */

/* Returns the context of the current thread.  One that chose none is in that of device 0, if we
 * have seen all calls; else it counts as in the only one that is seen, 0 here. */
static __always_inline __u64 cuda_context_of(const struct cuda_thread *thread,
					     const struct cuda_streams *streams)
{
	if (thread->context)
		return thread->context;
	if (streams->is_whole)
		return CUDA_CONTEXT_FIRST;
	if (!streams->is_divided)
		return 0;
	return CUDA_OF_THREAD | (__u32)bpf_get_current_pid_tgid();
}

static __always_inline bool cuda_is_default(__u64 handle)
{
	return handle == CUDA_LEGACY || handle & CUDA_OF_THREAD;
}

/* A process turns out to use several contexts.  What was queued in "the only one" was queued in
 * device 0's if we have seen all calls; else nobody knows in which. */
__noinline int cuda_divide(__u32 generation)
{
	struct pp_process_id id = {.tgid = bpf_get_current_pid_tgid() >> 32,
				   .generation = generation};
	struct cuda_streams *streams = bpf_map_lookup_elem(&cuda_streams, &id);
	struct pp_gpu_process *process = bpf_map_lookup_elem(&gpu_processes, &id.tgid);
	const __u64 *rounds = cuda_rounds_of(id.tgid);

	if (!streams || !process || !rounds)
		return 1;
	streams->is_divided = 1;
	for (__u32 i = 0; i < CUDA_STREAMS; i++) {
		struct cuda_stream *stream = &streams->stream[i];

		if (!stream->handle || stream->context)
			continue;
		stream->context = streams->is_whole ? CUDA_CONTEXT_FIRST : CUDA_CONTEXT_MIXED;
		if (streams->is_whole || !cuda_is_default(stream->handle))
			continue;
		stream->handle = CUDA_BEFORE;
		cuda_row_mark(streams, process, i, cuda_round(rounds), true);
	}
	return 0;
}

/* Notes that a context is used. */
static __always_inline void cuda_context_see(struct cuda_streams *streams, __u64 context,
					     bool is_another, __u32 generation)
{
	if (!context || streams->is_divided)
		return;
	if (streams->context != context && (streams->context || is_another))
		cuda_divide(generation);
	else
		streams->context = context;
}

/* Notes that the current thread's context is used, and returns it.  A thread that chooses one after
 * it has worked without was probably in another one before. */
static __always_inline __u64 cuda_context_use(struct cuda_streams *streams,
					      struct cuda_thread *thread)
{
	cuda_context_see(streams, cuda_context_of(thread, streams),
			 !streams->is_whole && thread->was_unknown, thread->generation);
	if (!thread->context)
		thread->was_unknown = 1;
	return cuda_context_of(thread, streams);
}

/* ---- rows of streams ---- */

/* Returns a stream's name among the rows. */
static __always_inline __u64 cuda_stream_name(__u64 handle, bool per_thread)
{
	if (handle > CUDA_PER_THREAD)
		return handle;
	if (handle == CUDA_PER_THREAD || (!handle && per_thread))
		return CUDA_OF_THREAD | (__u32)bpf_get_current_pid_tgid();
	return CUDA_LEGACY;
}

static __always_inline bool cuda_is_stream(const struct cuda_streams *streams,
					   const struct cuda_stream *stream, __u64 handle,
					   __u64 context)
{
	return stream->handle == handle &&
	       (stream->context == context || !streams->is_divided || !cuda_is_default(handle));
}

/* Takes a free row. */
static __always_inline bool cuda_row_take(struct cuda_stream *stream, __u32 row, __u64 handle,
					  __u64 context)
{
	bool is_taken;

	if (!cuda_claim(row))
		return false;
	is_taken = !*(volatile __u64 *)&stream->handle;
	if (is_taken) {
		stream->context = context;
		/* What another stream has left there. */
		stream->marked = stream->synced = 0;
		*(volatile __u64 *)&stream->handle = handle;
	}
	cuda_unclaim(row);
	return is_taken;
}

/* Returns the index of a stream's row, which is made when there is none. */
__noinline int cuda_row(__u32 generation, __u64 handle, __u64 context)
{
	struct pp_process_id id = {.tgid = bpf_get_current_pid_tgid() >> 32,
				   .generation = generation};
	struct cuda_streams *streams = bpf_map_lookup_elem(&cuda_streams, &id);
	struct cuda_stream *others;

	if (!streams)
		return 0;
	for (__u32 i = 0; i < CUDA_ROW_OF_OTHERS; i++) {
		struct cuda_stream *stream = &streams->stream[i];

		if (!cuda_is_stream(streams, stream, handle, context))
			continue;
		if (stream->context == CUDA_CONTEXT_UNTOLD)
			stream->context = context;
		else if (stream->context != context && context != CUDA_CONTEXT_UNTOLD)
			stream->context = streams->is_divided ? CUDA_CONTEXT_MIXED : 0;
		return i;
	}
	for (__u32 i = 0; i < CUDA_ROW_OF_OTHERS; i++)
		if (!streams->stream[i].handle &&
		    cuda_row_take(&streams->stream[i], i, handle, context))
			return i;
	others = &streams->stream[CUDA_ROW_OF_OTHERS];
	if (others->handle && others->context != context)
		context = streams->is_divided ? CUDA_CONTEXT_MIXED : 0;
	others->context = context;
	others->handle = CUDA_OTHERS;
	return CUDA_ROW_OF_OTHERS;
}

/* Makes the row of what was queued in a context before we looked, if anything may have been: when
 * the context is first used. */
static __always_inline void cuda_see_before(struct cuda_streams *streams,
					    struct pp_gpu_process *process, __u32 generation,
					    __u64 context, const __u64 *rounds)
{
	__u32 row;

	if (streams->is_whole)
		return;
	row = cuda_row(generation, CUDA_BEFORE, context);
	BARRIER(row);
	if (row < CUDA_STREAMS && !streams->stream[row].marked)
		cuda_row_mark(streams, process, row, cuda_round(rounds), true);
}

/* ---- calls ---- */

/* Finds the state of the current thread's process, and makes it. */
static __always_inline struct cuda_streams *cuda_streams_get(const struct cuda_thread *thread,
							     const struct pp_config *cfg)
{
	struct pp_process_id id = {.tgid = bpf_get_current_pid_tgid() >> 32,
				   .generation = thread->generation};
	struct cuda_streams *streams = bpf_map_lookup_elem(&cuda_streams, &id);

	const bool is_known = gpu_process_of(id.tgid, id.generation, cfg);

	if (likely(streams && is_known && !cfg->gpu_is_blind))
		return streams;
	/* Its waits are told also while nothing else is known. */
	if (cfg->gpu_is_blind && is_known)
		return NULL;
	if (cuda_process_make(id.generation, cfg->gpu_sight, thread->user) || cfg->gpu_is_blind)
		return NULL;
	return bpf_map_lookup_elem(&cuda_streams, &id);
}

/* The current thread goes on with a context.  does: enum pp_cuda_does.  Of those below it one is
 * kept.  The context counts as used: it may have streams that work of other threads goes to. */
__noinline int cuda_context_choose(__u64 context, __u32 does)
{
	const __u64 thread_id = bpf_get_current_pid_tgid();
	const struct pp_config *cfg = config_get();
	struct cuda_thread *thread = bpf_map_lookup_elem(&cuda_threads, &thread_id);
	struct cuda_streams *streams;

	if (!cfg || !thread)
		return 1;
	if (does == PP_CUDA_POP_CONTEXT)
		context = thread->below;
	thread->below = does == PP_CUDA_PUSH_CONTEXT ? thread->context : 0;
	if (thread->context == context)
		return 0;
	thread->context = context;
	thread->round = 0; /* its default stream is another one now */
	streams = cuda_streams_get(thread, cfg);
	if (streams)
		cuda_context_see(streams, context, !streams->is_whole && thread->was_unknown,
				 thread->generation);
	return 0;
}

/* The current thread queues work in a stream.  is_kernel: which is in the thread's context. */
__noinline int cuda_mark(__u64 handle, bool is_kernel)
{
	const __u64 thread_id = bpf_get_current_pid_tgid();
	const struct pp_config *cfg = config_get();
	struct cuda_thread *thread = bpf_map_lookup_elem(&cuda_threads, &thread_id);
	const __u64 *rounds = cuda_rounds_of(thread_id >> 32);
	struct cuda_streams *streams;
	struct pp_gpu_process *process;
	__u64 context, round = 0;
	__u32 row;

	if (!cfg || !thread || !rounds)
		return 1;
	/* Before the round is read: cuda_others_launch() of who begins the next one reads it. */
	*(volatile __u64 *)&thread->round = 0;
	*(volatile __u64 *)&thread->stream = handle;
	cuda_launch_enter(thread, thread->sp);
	streams = cuda_streams_get(thread, cfg);
	process = gpu_process_of(thread_id >> 32, thread->generation, cfg);
	if (!streams || !process)
		return 1;
	if (!cuda_is_launcher(streams, thread))
		cuda_launcher_join(streams, thread);
	context = cuda_context_use(streams, thread);
	cuda_see_before(streams, process, thread->generation, context, rounds);
	if (!is_kernel && !cuda_is_default(handle))
		context = CUDA_CONTEXT_UNTOLD;
	row = cuda_row(thread->generation, handle, context);
	for (int i = 0; i < 3 && round != cuda_round(rounds); i++) {
		round = cuda_round(rounds);
		cuda_row_mark(streams, process, row, round, false);
	}
	/* Others begin rounds as fast as it marks, perhaps of a process with the same hash. */
	if (unlikely(round != cuda_round(rounds)))
		cuda_row_mark(streams, process, row, cuda_round(rounds) + CUDA_ROUNDS_AHEAD, false);
	gpu_turn(process);
	thread->round = round;
	return 0;
}

/* Begins a synchronisation of this kind (enum pp_cuda_sync): what returned calls of earlier rounds
 * have queued there will have ended when it returns.  wait->stream: its name, or a context. */
static __always_inline void cuda_sync_begin(__u32 kind, struct pp_gpu_wait *wait)
{
	const __u64 thread_id = bpf_get_current_pid_tgid();
	const struct pp_config *cfg = config_get();
	struct cuda_thread *thread = bpf_map_lookup_elem(&cuda_threads, &thread_id);
	__u64 *rounds = cuda_rounds_of(thread_id >> 32);
	struct cuda_streams *streams;
	struct pp_gpu_process *process;

	if (!cfg || !thread || !rounds)
		return;
	streams = cuda_streams_get(thread, cfg);
	process = gpu_process_of(thread_id >> 32, thread->generation, cfg);
	if (!streams || !process)
		return;
	if (kind == PP_CUDA_SYNC_CONTEXT && wait->stream)
		cuda_context_see(streams, wait->stream, false, thread->generation);
	wait->context = cuda_context_use(streams, thread);
	cuda_see_before(streams, process, thread->generation, wait->context, rounds);
	if (kind == PP_CUDA_SYNC_CONTEXT && wait->stream)
		wait->context = wait->stream;
	__sync_fetch_and_add(rounds, 1);
	/* It may be that of one that begins at the same time: as good, for both still look. */
	wait->round = cuda_round(rounds);
	/* Who reads the round from here on reads this one, or a later one. */
	if (cuda_others_launch(thread->generation, kind == PP_CUDA_SYNC_STREAM ? wait->stream : 0))
		wait->round = 0;
}

/* What the rows of a process say. */
struct cuda_left {
	__u64 newest; /* the last synchronisation of any row */
	bool has_work, has_before;
};

static __always_inline void cuda_row_look(struct cuda_stream *stream, struct cuda_left *left)
{
	const __u64 marked = *(volatile __u64 *)&stream->marked;
	const __u64 synced = *(volatile __u64 *)&stream->synced;
	const __u64 handle = stream->handle;

	if (!handle)
		return;
	if (synced > left->newest)
		left->newest = synced;
	if (marked >= synced && handle == CUDA_BEFORE)
		left->has_before = true;
	else if (marked >= synced)
		left->has_work = true;
	else if (handle == CUDA_GONE)
		*(volatile __u64 *)&stream->handle = 0;
}

static __always_inline bool cuda_is_synced(const struct cuda_streams *streams,
					   const struct cuda_stream *stream, __u32 kind,
					   const struct pp_gpu_wait *wait)
{
	if (kind == PP_CUDA_SYNC_STREAM)
		return cuda_is_stream(streams, stream, wait->stream, wait->context);
	return !streams->is_divided || stream->context == wait->context;
}

/* Notes in the rows that a synchronisation covers that it has returned, and looks at all. */
static __always_inline void cuda_rows_sync(struct cuda_streams *streams, __u32 kind,
					   const struct pp_gpu_wait *wait, struct cuda_left *left)
{
	for (__u32 i = 0; i < CUDA_STREAMS; i++) {
		struct cuda_stream *stream = &streams->stream[i];

		if (cuda_is_synced(streams, stream, kind, wait) && stream->synced < wait->round)
			*(volatile __u64 *)&stream->synced = wait->round;
		cuda_row_look(stream, left);
	}
}

/* A synchronisation has returned without an error. */
static __always_inline void cuda_synced(__u32 kind, const struct pp_gpu_wait *wait)
{
	const __u64 thread_id = bpf_get_current_pid_tgid(), round = wait->round;
	const struct pp_config *cfg = config_get();
	const struct cuda_thread *thread = bpf_map_lookup_elem(&cuda_threads, &thread_id);
	struct pp_process_id id = {.tgid = thread_id >> 32};
	struct cuda_left left = {.newest = round};
	struct cuda_streams *streams;
	struct pp_gpu_process *process;

	if (!cfg || !thread || !round)
		return;
	id.generation = thread->generation;
	streams = bpf_map_lookup_elem(&cuda_streams, &id);
	process = gpu_process_of(id.tgid, id.generation, cfg);
	if (!streams || !process)
		return;
	if (!streams->is_whole && cuda_is_whole(&id))
		streams->is_whole = 1;
	cuda_rows_sync(streams, kind, wait, &left);
	if (!left.has_work && process->idle < left.newest)
		*(volatile __u64 *)&process->idle = left.newest;
	if ((streams->is_whole || !left.has_before) && process->sure < left.newest)
		*(volatile __u64 *)&process->sure = left.newest;
	gpu_turn(process);
}

/* A stream is destroyed: what is queued in it still runs, and another one may get its handle. */
__noinline int cuda_stream_drop(__u32 generation, __u64 handle)
{
	struct pp_process_id id = {.tgid = bpf_get_current_pid_tgid() >> 32,
				   .generation = generation};
	struct cuda_streams *streams = bpf_map_lookup_elem(&cuda_streams, &id);

	if (!streams || handle <= CUDA_PER_THREAD)
		return 1;
	for (__u32 i = 0; i < CUDA_ROW_OF_OTHERS; i++) {
		struct cuda_stream *stream = &streams->stream[i];

		if (stream->handle == handle)
			stream->handle = stream->marked >= stream->synced ? CUDA_GONE : 0;
	}
	return 0;
}

/* ---- threads inside of a call ---- */

/* Returns 0 when the current thread is noted as waiting, in place of what it waited for before. */
static __always_inline int gpu_wait_set(const __u32 *tid, struct pp_gpu_wait *wait)
{
	const struct pp_gpu_wait *known = bpf_map_lookup_elem(&gpu_waits, tid);
	struct pp_user_share *share = share_of(known ? known->user : wait->user);

	if (known)
		wait->user = known->user;
	if (!known && share && share->gpu_waits >= PP_GPU_WAITS_MAX / PP_GPU_USERS)
		return 1;
	if (bpf_map_update_elem(&gpu_waits, tid, wait, BPF_ANY))
		return 1;
	if (!known && share)
		__sync_fetch_and_add(&share->gpu_waits, 1);
	return 0;
}

/* The current thread goes into a call that waits for the device.  sp: at its first instruction.
 * kind: enum pp_cuda_sync.  stream: struct pp_gpu_wait.  user: whose thread it is.  One call may
 * make another: the outermost counts. */
__noinline int cuda_wait_begin(__u64 sp, __u32 kind, __u64 stream, __u32 user)
{
	struct pp_gpu_wait wait = {.sp = sp, .stream = stream, .user = user};
	const struct pp_config *cfg = config_get();
	const struct pp_gpu_wait *known;
	__u32 tid = bpf_get_current_pid_tgid();
	struct pp_thread *slot = cfg ? thread_at(tid, 0, cfg) : NULL;

	if (!cfg || !cfg->gpu_sight)
		return 1;
	known = bpf_map_lookup_elem(&gpu_waits, &tid);
	if (known && sp < known->sp)
		return 0;
	if (kind)
		cuda_sync_begin(kind, &wait);
	if (gpu_wait_set(&tid, &wait)) {
		count_loss(PP_LOSS_GPU_FULL);
		return 1;
	}
	/* Else its slot is told so a little later: thread_identify(). */
	if (slot && slot->tid == tid)
		slot->gpu = 1;
	return 0;
}

/* It has returned with this CUresult. */
__noinline int cuda_wait_end(__u64 sp, __u32 kind, __u32 result)
{
	__u32 tid = bpf_get_current_pid_tgid();
	const struct pp_gpu_wait *known = bpf_map_lookup_elem(&gpu_waits, &tid);

	if (!known || known->sp > sp)
		return 1;
	if (known->sp == sp && kind && !result)
		cuda_synced(kind, known);
	gpu_wait_drop(&tid);
	return 0;
}

#endif
