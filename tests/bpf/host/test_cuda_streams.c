/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/cuda_streams.bpf.h: what calls of CUDA prove of the work that a process has queued.
 * Threads call in the order in which the test lets them: a call that waits begins and ends. */
#include "host.h"

/* The maps of CUDA's object. */
static struct {
	struct host_hash threads, claims, wholes;
	struct {
		struct pp_process_id id;
		_Alignas(8) uint8_t streams[2048];
		bool is_taken;
	} process[4];
	uint64_t rounds[256];
	bool has_no_room;
} cuda;

static void *cuda_lookup(void *map, const void *key);
static long cuda_update(void *map, const void *key, const void *value, uint64_t flags);
static long cuda_delete(void *map, const void *key);
#define bpf_map_lookup_elem cuda_lookup
#define bpf_map_update_elem cuda_update
#define bpf_map_delete_elem cuda_delete
#define HAVE_CMPXCHG
#include <lib/cuda_streams.bpf.h>
#undef bpf_map_lookup_elem
#undef bpf_map_update_elem
#undef bpf_map_delete_elem

/* What only a process with a program has. */
int thread_find_way(__u32 tid)
{
	(void)tid;
	return 0;
}

_Static_assert(sizeof(struct cuda_streams) <= sizeof(cuda.process[0].streams), "room");

static struct host_hash *cuda_hash(const void *map)
{
	if (map == &cuda_threads)
		return &cuda.threads;
	if (map == &cuda_claims)
		return &cuda.claims;
	return map == &cuda_wholes ? &cuda.wholes : NULL;
}

static void *streams_of(const void *key)
{
	for (size_t i = 0; i < 4; i++)
		if (cuda.process[i].is_taken && !memcmp(&cuda.process[i].id, key, 8))
			return cuda.process[i].streams;
	return NULL;
}

static void *cuda_lookup(void *map, const void *key)
{
	static const struct cuda_streams none;
	struct host_entry *entry;

	if (map == &cuda_rounds)
		return &cuda.rounds[*(const uint32_t *)key & 255];
	if (map == &cuda_no_streams)
		return (void *)&none;
	if (map == &cuda_streams)
		return streams_of(key);
	if (!cuda_hash(map))
		return bpf_map_lookup_elem(map, key);
	entry = hash_find(cuda_hash(map), key);
	return entry ? entry->value : NULL;
}

static long add_streams(const void *key, const void *value)
{
	if (streams_of(key))
		return -EEXIST;
	for (size_t i = 0; i < 4 && !cuda.has_no_room; i++)
		if (!cuda.process[i].is_taken) {
			memcpy(&cuda.process[i].id, key, 8);
			memcpy(cuda.process[i].streams, value, sizeof(struct cuda_streams));
			cuda.process[i].is_taken = true;
			return 0;
		}
	return -E2BIG;
}

static long cuda_update(void *map, const void *key, const void *value, uint64_t flags)
{
	struct host_hash *hash = cuda_hash(map);

	if (map == &cuda_streams)
		return add_streams(key, value);
	if (!hash)
		return bpf_map_update_elem(map, key, value, flags);
	if (hash->refuses)
		return hash->refuses;
	if (flags == BPF_NOEXIST && hash_find(hash, key))
		return -EEXIST;
	for (size_t i = 0; i < HOST_ENTRIES; i++) {
		struct host_entry *entry = &hash->entry[i];

		if (entry->is_taken)
			continue;
		entry->is_taken = true;
		memcpy(entry->key, key, hash->key_bytes);
		memcpy(entry->value, value, hash->value_bytes);
		return 0;
	}
	return -E2BIG;
}

static long cuda_delete(void *map, const void *key)
{
	struct host_hash *hash = cuda_hash(map);
	struct host_entry *entry = hash ? hash_find(hash, key) : NULL;

	if (!hash)
		return bpf_map_delete_elem(map, key);
	if (!entry)
		return -ENOENT;
	entry->is_taken = false;
	return 0;
}

/* ---- threads ---- */

#define TGID 70U
#define GENERATION 3U
#define STREAM 0x7f0000001000ULL
#define OTHER_STREAM 0x7f0000002000ULL
#define CONTEXT 0x5000ULL
#define OTHER_CONTEXT 0x6000ULL
#define CALL_SP 0x7ffc0000f000ULL /* at the first instruction of each call */
#define STACK_BOTTOM_TO_REGISTERS 16216

struct caller {
	struct task_struct task;
	struct pt_regs regs;
};
static struct caller callers[CUDA_LAUNCHERS + 4];

static struct caller *caller(uint32_t i)
{
	return &callers[i];
}

/* Makes a thread the current one. */
static struct cuda_thread *as(uint32_t i)
{
	const uint64_t key = (uint64_t)TGID << 32 | (TGID + i);

	host->current = &callers[i].task;
	host->saved_registers = &callers[i].regs;
	return cuda_lookup(&cuda_threads, &key);
}

static struct cuda_streams *streams(void)
{
	const struct pp_process_id id = {.tgid = TGID, .generation = GENERATION};

	return streams_of(&id);
}

static int setup(void **state)
{
	host_setup(state);
	memset(&cuda, 0, sizeof(cuda));
	memset(callers, 0, sizeof(callers));
	host_hash_init(&cuda.threads, 8, sizeof(struct cuda_thread));
	host_hash_init(&cuda.claims, 8, 4);
	host_hash_init(&cuda.wholes, 4, 4);
	host->config.gpu_sight = 1;
	host->config.thread_mask = HOST_THREADS - 1;
	for (uint32_t i = 0; i < CUDA_LAUNCHERS + 4; i++) {
		const uint64_t key = (uint64_t)TGID << 32 | (TGID + i);
		const struct cuda_thread thread = {.generation = GENERATION, .is_wanted = 1};

		callers[i].task = (struct task_struct){.tgid = TGID,
						       .pid = (int)(TGID + i),
						       .stack = (char *)&callers[i].regs -
								STACK_BOTTOM_TO_REGISTERS};
		/* Asleep, with less of the stack in use than in a call. */
		callers[i].regs.rsp = CALL_SP + 0x100;
		cuda_update(&cuda_threads, &key, &thread, 0);
	}
	return 0;
}

static void is_whole(void)
{
	const uint32_t tgid = TGID, generation = GENERATION;

	cuda_update(&cuda_wholes, &tgid, &generation, 0);
}

static enum pp_gpu now(void)
{
	const uint32_t tgid = TGID;
	const struct pp_gpu_process *process = bpf_map_lookup_elem(&gpu_processes, &tgid);

	return process ? pp_gpu_of(process) : PP_GPU_UNKNOWN;
}

/* As lib/cuda.bpf.h: cuda_queue(). */
static void launch(uint32_t i, uint64_t stream)
{
	struct cuda_thread *thread = as(i);

	thread->sp = CALL_SP;
	if (thread->stream != stream || thread->round != cuda_round(cuda_rounds_of(TGID)))
		cuda_mark(stream);
}

static void begin_stream(uint32_t i, uint64_t stream)
{
	cuda_launch_left(as(i), CALL_SP);
	cuda_wait_begin(CALL_SP, PP_CUDA_SYNC_STREAM, stream);
}

static void begin_context(uint32_t i, uint64_t context)
{
	cuda_launch_left(as(i), CALL_SP);
	cuda_wait_begin(CALL_SP, PP_CUDA_SYNC_CONTEXT, context);
}

static void end_stream(uint32_t i, uint32_t result)
{
	as(i);
	cuda_wait_end(CALL_SP, PP_CUDA_SYNC_STREAM, result);
}

static void end_context(uint32_t i, uint32_t result)
{
	as(i);
	cuda_wait_end(CALL_SP, PP_CUDA_SYNC_CONTEXT, result);
}

static void sync_stream(uint32_t i, uint64_t stream)
{
	begin_stream(i, stream);
	end_stream(i, 0);
}

static void sync_context(uint32_t i)
{
	begin_context(i, 0);
	end_context(i, 0);
}

/* ---- one thread ---- */

static void stream__is_queued_until_it_is_synchronised(void **state)
{
	(void)state;
	is_whole();
	assert_int_equal(now(), PP_GPU_UNKNOWN);
	launch(0, STREAM);
	assert_int_equal(now(), PP_GPU_QUEUED);
	sync_stream(0, OTHER_STREAM);
	assert_int_equal(now(), PP_GPU_QUEUED);
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_DRAINED);
	launch(0, STREAM);
	assert_int_equal(now(), PP_GPU_QUEUED);
	launch(0, STREAM);
	launch(0, OTHER_STREAM);
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_QUEUED);
	sync_stream(0, OTHER_STREAM);
	assert_int_equal(now(), PP_GPU_DRAINED);
}

static void context__synchronises_all_of_its_streams(void **state)
{
	(void)state;
	is_whole();
	as(0)->context = CONTEXT;
	launch(0, STREAM);
	launch(0, CUDA_LEGACY);
	launch(0, CUDA_OF_THREAD | TGID);
	sync_context(0);
	assert_int_equal(now(), PP_GPU_DRAINED);
}

static void synchronisation__that_fails_proves_nothing(void **state)
{
	(void)state;
	is_whole();
	launch(0, STREAM);
	begin_stream(0, STREAM);
	end_stream(0, 700);
	assert_int_equal(now(), PP_GPU_QUEUED);
	begin_context(0, 0);
	end_context(0, 700);
	assert_int_equal(now(), PP_GPU_QUEUED);
	sync_context(0);
	assert_int_equal(now(), PP_GPU_DRAINED);
}

/* The driver may call itself: the inner call says what it says, the outer one more. */
static void synchronisation__ends_with_the_outermost_call(void **state)
{
	const uint32_t tid = TGID;

	(void)state;
	is_whole();
	launch(0, STREAM);
	launch(0, OTHER_STREAM);
	begin_context(0, 0);
	cuda_wait_begin(CALL_SP - 0x200, PP_CUDA_SYNC_STREAM, STREAM);
	cuda_wait_end(CALL_SP - 0x200, PP_CUDA_SYNC_STREAM, 0);
	assert_non_null(bpf_map_lookup_elem(&gpu_waits, &tid));
	assert_int_equal(now(), PP_GPU_QUEUED);
	end_context(0, 0);
	assert_null(bpf_map_lookup_elem(&gpu_waits, &tid));
	assert_int_equal(now(), PP_GPU_DRAINED);
	/* One that was left by longjmp() has no end. */
	cuda_wait_begin(CALL_SP - 0x200, PP_CUDA_SYNC_STREAM, STREAM);
	launch(0, STREAM);
	sync_stream(0, STREAM);
	assert_null(bpf_map_lookup_elem(&gpu_waits, &tid));
	assert_int_equal(now(), PP_GPU_DRAINED);
}

static void destroyed_stream__keeps_its_work_until_its_context_is_synchronised(void **state)
{
	(void)state;
	is_whole();
	launch(0, STREAM);
	cuda_stream_drop(GENERATION, STREAM);
	launch(0, STREAM); /* another one, with its handle, in the same round */
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_QUEUED);
	sync_context(0);
	assert_int_equal(now(), PP_GPU_DRAINED);
	/* Of one without work the row is free. */
	for (uint64_t i = 0; i < 10 * CUDA_STREAMS; i++) {
		launch(0, STREAM + i * 64);
		sync_stream(0, STREAM + i * 64);
		assert_int_equal(now(), PP_GPU_DRAINED);
		cuda_stream_drop(GENERATION, STREAM + i * 64);
	}
}

static void streams__without_a_row_need_a_context(void **state)
{
	(void)state;
	is_whole();
	for (uint64_t i = 0; i < 2 * CUDA_STREAMS; i++)
		launch(0, STREAM + i * 64);
	for (uint64_t i = 0; i < 2 * CUDA_STREAMS; i++)
		sync_stream(0, STREAM + i * 64);
	assert_int_equal(now(), PP_GPU_QUEUED);
	sync_context(0);
	assert_int_equal(now(), PP_GPU_DRAINED);
}

/* ---- several threads ---- */

static void launch__of_another_thread_during_a_synchronisation_stays(void **state)
{
	(void)state;
	is_whole();
	launch(1, STREAM);
	launch(0, STREAM);
	begin_stream(0, STREAM);
	launch(1, STREAM);
	end_stream(0, 0);
	assert_int_equal(now(), PP_GPU_QUEUED);
	begin_context(0, 0);
	launch(1, OTHER_STREAM);
	end_context(0, 0);
	assert_int_equal(now(), PP_GPU_QUEUED);
	sync_context(0);
	assert_int_equal(now(), PP_GPU_DRAINED);
}

/* Its work may not be there yet when the synchronisation begins. */
static void launch__under_way_in_another_thread_is_not_waited_for(void **state)
{
	(void)state;
	is_whole();
	launch(1, STREAM);
	launch(0, STREAM);
	caller(1)->task.on_cpu = 1;
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_QUEUED);
	/* Preempted in it, or asleep as the queue is full. */
	caller(1)->task.on_cpu = 0;
	caller(1)->regs.rsp = CALL_SP;
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_QUEUED);
	caller(1)->regs.rsp = CALL_SP - 8;
	sync_context(0);
	assert_int_equal(now(), PP_GPU_QUEUED);
	/* That of another stream says nothing about this one. */
	as(1)->stream = OTHER_STREAM;
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_DRAINED);
}

static void launch__has_returned_when_its_thread_calls_again_or_has_left_its_frame(void **state)
{
	(void)state;
	is_whole();
	launch(1, STREAM);
	caller(1)->task.on_cpu = 1;
	cuda_launch_left(as(1), CALL_SP - 8); /* the launch itself calls */
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_QUEUED);
	cuda_launch_left(as(1), CALL_SP);
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_DRAINED);
	launch(1, STREAM);
	caller(1)->task.on_cpu = 0;
	caller(1)->regs.rsp = CALL_SP + 8;
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_DRAINED);
}

static void thread__that_ends_or_is_forgotten_is_not_waited_for_forever(void **state)
{
	const uint64_t key = (uint64_t)TGID << 32 | (TGID + 2);

	(void)state;
	is_whole();
	launch(1, STREAM);
	launch(2, STREAM);
	caller(1)->regs.rsp = caller(2)->regs.rsp = CALL_SP;
	caller(1)->task.flags = PF_EXITING;
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_QUEUED);
	cuda_delete(&cuda_threads, &key);
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_QUEUED);
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_DRAINED);
}

static void threads__beyond_those_that_are_kept_make_nothing_known(void **state)
{
	(void)state;
	is_whole();
	for (uint32_t i = 0; i < CUDA_LAUNCHERS; i++)
		launch(i, STREAM);
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_DRAINED);
	launch(CUDA_LAUNCHERS, STREAM);
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_QUEUED);
}

/* Two that take rows at the same time: the second finds the claim. */
static void rows__that_another_thread_takes_are_left_to_it(void **state)
{
	const struct cuda_claim claim = {.tgid = TGID, .row = 0};
	const uint32_t row = 0;

	(void)state;
	is_whole();
	cuda_update(&cuda_claims, &claim, &row, 0);
	launch(0, STREAM);
	assert_int_equal(streams()->stream[0].handle, 0);
	assert_int_equal(streams()->stream[1].handle, STREAM);
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_DRAINED);
}

/* ---- who comes late ---- */

static void late__nothing_is_known_before_the_context_is_synchronised(void **state)
{
	(void)state;
	launch(0, STREAM);
	assert_int_equal(now(), PP_GPU_QUEUED);
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_UNKNOWN);
	sync_context(0);
	assert_int_equal(now(), PP_GPU_DRAINED);
	launch(0, STREAM);
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_DRAINED);
}

static void late__is_whole_when_the_agent_says_so(void **state)
{
	(void)state;
	launch(0, STREAM);
	is_whole();
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_DRAINED);
}

static void late__thread_that_chooses_no_context_is_in_that_of_others(void **state)
{
	(void)state;
	launch(0, CUDA_LEGACY);
	as(1)->context = CONTEXT;
	launch(1, CUDA_LEGACY);
	sync_context(1);
	assert_int_equal(now(), PP_GPU_DRAINED);
	launch(0, CUDA_LEGACY);
	sync_stream(1, CUDA_LEGACY);
	assert_int_equal(now(), PP_GPU_DRAINED);
	/* A second one is chosen: nobody knows in which it was. */
	launch(0, CUDA_LEGACY);
	as(2)->context = OTHER_CONTEXT;
	launch(2, STREAM);
	sync_context(1);
	sync_context(2);
	assert_int_equal(now(), PP_GPU_UNKNOWN);
}

static void late__thread_that_has_worked_and_chooses_was_somewhere_else(void **state)
{
	(void)state;
	launch(0, CUDA_LEGACY);
	as(0)->context = CONTEXT;
	sync_context(0);
	sync_stream(0, CUDA_LEGACY);
	assert_int_not_equal(now(), PP_GPU_DRAINED);
}

/* ---- contexts ---- */

static void contexts__are_synchronised_each_for_itself(void **state)
{
	(void)state;
	is_whole();
	as(0)->context = CONTEXT;
	launch(0, CUDA_LEGACY);
	launch(0, STREAM);
	as(1)->context = OTHER_CONTEXT;
	launch(1, CUDA_LEGACY);
	sync_context(1);
	assert_int_equal(now(), PP_GPU_QUEUED);
	sync_stream(1, CUDA_LEGACY); /* that of its own context */
	assert_int_equal(now(), PP_GPU_QUEUED);
	sync_context(0);
	assert_int_equal(now(), PP_GPU_DRAINED);
	launch(0, CUDA_LEGACY);
	begin_context(1, CONTEXT); /* it names one */
	end_context(1, 0);
	assert_int_equal(now(), PP_GPU_DRAINED);
}

/* A copy may go into another context's stream. */
static void contexts__stream_that_two_use_needs_its_own_synchronisation(void **state)
{
	(void)state;
	is_whole();
	as(0)->context = CONTEXT;
	as(1)->context = OTHER_CONTEXT;
	launch(0, CUDA_LEGACY);
	launch(1, STREAM);
	launch(0, STREAM);
	sync_context(0);
	sync_context(1);
	assert_int_equal(now(), PP_GPU_QUEUED);
	sync_stream(1, STREAM);
	assert_int_equal(now(), PP_GPU_DRAINED);
}

static void contexts__whole_runtime_begins_with_device_0(void **state)
{
	(void)state;
	is_whole();
	launch(0, CUDA_LEGACY);
	as(1)->context = 2; /* cudaSetDevice(1) */
	launch(1, CUDA_LEGACY);
	sync_context(1);
	assert_int_equal(now(), PP_GPU_QUEUED);
	sync_context(0);
	assert_int_equal(now(), PP_GPU_DRAINED);
}

/* ---- what is kept ---- */

static void times__of_states_add_up(void **state)
{
	const uint32_t tgid = TGID;
	const struct pp_gpu_process *process;
	uint64_t began_ns;

	(void)state;
	launch(0, STREAM);
	process = bpf_map_lookup_elem(&gpu_processes, &tgid);
	began_ns = (process->since >> PP_GPU_SINCE_SHIFT) - process->total_ns[PP_GPU_UNKNOWN];
	host->now_ns += 1000;
	sync_context(0);
	host->now_ns += 100;
	launch(0, STREAM);
	host->now_ns += 10000;
	sync_context(0);
	assert_int_equal(process->total_ns[PP_GPU_QUEUED], 11000);
	assert_int_equal(process->total_ns[PP_GPU_DRAINED], 100);
	assert_int_equal(process->since >> PP_GPU_SINCE_SHIFT,
			 began_ns + 11100 + process->total_ns[PP_GPU_UNKNOWN]);
	assert_int_equal(process->since & 3, PP_GPU_DRAINED);
}

static void process__that_is_another_program_begins_anew(void **state)
{
	const uint32_t tgid = TGID;
	const struct pp_gpu_process *process;

	(void)state;
	is_whole();
	launch(0, STREAM);
	as(1)->generation = GENERATION + 1;
	launch(1, STREAM);
	process = bpf_map_lookup_elem(&gpu_processes, &tgid);
	assert_int_equal(process->generation, GENERATION + 1);
	assert_int_equal(process->sure, 0);
	assert_true(host->config.process_changes > 0);
}

static void tables__that_are_full_are_counted_and_tell_nothing(void **state)
{
	(void)state;
	is_whole();
	cuda.has_no_room = true;
	launch(0, STREAM);
	assert_int_equal(now(), PP_GPU_UNKNOWN);
	assert_int_equal(host->losses[PP_LOSS_GPU_FULL], 1);
	launch(0, STREAM);
	assert_int_equal(host->losses[PP_LOSS_GPU_FULL], 2);
	cuda.has_no_room = false;
	host->gpu_waits.refuses = -E2BIG;
	launch(0, STREAM);
	assert_int_equal(now(), PP_GPU_QUEUED);
	sync_stream(0, STREAM);
	assert_int_equal(host->losses[PP_LOSS_GPU_FULL], 3);
	assert_int_equal(now(), PP_GPU_QUEUED);
}

/* The agent may have removed the state of another process that had this id. */
static void whole__is_not_drained_by_losing_its_state(void **state)
{
	const uint32_t tgid = TGID;

	(void)state;
	is_whole();
	launch(0, STREAM);
	bpf_map_delete_elem(&gpu_processes, &tgid);
	launch(0, OTHER_STREAM);
	assert_int_equal(now(), PP_GPU_QUEUED);
	bpf_map_delete_elem(&gpu_processes, &tgid);
	sync_stream(0, OTHER_STREAM);
	assert_int_equal(now(), PP_GPU_UNKNOWN);
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_DRAINED);
}

/* ---- users ---- */

static void set_user(uint32_t user)
{
	static struct user_namespace machine;

	host->cred = (struct cred){.euid.val = user, .uid.val = user, .user_ns = &machine};
	callers[0].task.cred = &host->cred;
}

static void user__has_a_part_of_the_processes(void **state)
{
	struct pp_user_share *share = &host->user_share[1001];
	const uint32_t tgid = TGID;

	(void)state;
	is_whole();
	set_user(1001);
	launch(0, STREAM);
	assert_int_equal(share->gpu_processes, 1);
	/* Another program has the id. */
	as(0)->generation = GENERATION + 1;
	launch(0, OTHER_STREAM);
	assert_int_equal(share->gpu_processes, 1);
	bpf_map_delete_elem(&gpu_processes, &tgid);
	share->gpu_processes = PP_GPU_PROCESSES_MAX / PP_GPU_USERS;
	launch(0, STREAM);
	assert_null(bpf_map_lookup_elem(&gpu_processes, &tgid));
	assert_int_equal(host->losses[PP_LOSS_GPU_FULL], 1);
	set_user(0);
	launch(0, STREAM);
	assert_non_null(bpf_map_lookup_elem(&gpu_processes, &tgid));
	assert_int_equal(host->losses[PP_LOSS_GPU_FULL], 1);
}

static void user__has_a_part_of_the_waits(void **state)
{
	struct pp_user_share *share = &host->user_share[1001];
	const uint32_t tid = TGID;

	(void)state;
	set_user(1001);
	begin_stream(0, STREAM);
	assert_int_equal(share->gpu_waits, 1);
	/* It has left that one by longjmp(). */
	begin_stream(0, STREAM);
	assert_int_equal(share->gpu_waits, 1);
	end_stream(0, 0);
	assert_int_equal(share->gpu_waits, 0);
	end_stream(0, 0);
	assert_int_equal(share->gpu_waits, 0);
	share->gpu_waits = PP_GPU_WAITS_MAX / PP_GPU_USERS;
	begin_stream(0, STREAM);
	assert_null(bpf_map_lookup_elem(&gpu_waits, &tid));
	assert_int_equal(host->losses[PP_LOSS_GPU_FULL], 1);
	set_user(0);
	begin_stream(0, STREAM);
	assert_non_null(bpf_map_lookup_elem(&gpu_waits, &tid));
}

/* Launches are not probed: their threads wait all the same. */
static void blind__nothing_is_marked_or_proven(void **state)
{
	const uint32_t tid = TGID;

	(void)state;
	is_whole();
	launch(0, STREAM);
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_DRAINED);
	host->config.gpu_is_blind = 1;
	launch(0, STREAM);
	assert_int_equal(now(), PP_GPU_DRAINED); /* which nobody asks for */
	begin_stream(0, STREAM);
	assert_non_null(bpf_map_lookup_elem(&gpu_waits, &tid));
	end_stream(0, 0);
	assert_null(bpf_map_lookup_elem(&gpu_waits, &tid));
	/* In the same round: it was not noted as marked. */
	host->config.gpu_is_blind = 0;
	launch(0, STREAM);
	assert_int_equal(now(), PP_GPU_QUEUED);
}

static void thread__in_a_wait_is_told_its_slot(void **state)
{
	const uint32_t index = TGID & (HOST_THREADS - 1);
	struct pp_thread *slot = bpf_map_lookup_elem(&threads, &index);

	(void)state;
	slot->tid = TGID;
	begin_stream(0, STREAM);
	assert_int_equal(slot->gpu, 1);
}

int main(void)
{
#define CUDA_TEST(test) cmocka_unit_test_setup_teardown(test, setup, host_teardown)
	const struct CMUnitTest tests[] = {
		CUDA_TEST(stream__is_queued_until_it_is_synchronised),
		CUDA_TEST(context__synchronises_all_of_its_streams),
		CUDA_TEST(synchronisation__that_fails_proves_nothing),
		CUDA_TEST(synchronisation__ends_with_the_outermost_call),
		CUDA_TEST(destroyed_stream__keeps_its_work_until_its_context_is_synchronised),
		CUDA_TEST(streams__without_a_row_need_a_context),
		CUDA_TEST(launch__of_another_thread_during_a_synchronisation_stays),
		CUDA_TEST(launch__under_way_in_another_thread_is_not_waited_for),
		CUDA_TEST(launch__has_returned_when_its_thread_calls_again_or_has_left_its_frame),
		CUDA_TEST(thread__that_ends_or_is_forgotten_is_not_waited_for_forever),
		CUDA_TEST(threads__beyond_those_that_are_kept_make_nothing_known),
		CUDA_TEST(rows__that_another_thread_takes_are_left_to_it),
		CUDA_TEST(late__nothing_is_known_before_the_context_is_synchronised),
		CUDA_TEST(late__is_whole_when_the_agent_says_so),
		CUDA_TEST(late__thread_that_chooses_no_context_is_in_that_of_others),
		CUDA_TEST(late__thread_that_has_worked_and_chooses_was_somewhere_else),
		CUDA_TEST(contexts__are_synchronised_each_for_itself),
		CUDA_TEST(contexts__stream_that_two_use_needs_its_own_synchronisation),
		CUDA_TEST(contexts__whole_runtime_begins_with_device_0),
		CUDA_TEST(times__of_states_add_up),
		CUDA_TEST(process__that_is_another_program_begins_anew),
		CUDA_TEST(tables__that_are_full_are_counted_and_tell_nothing),
		CUDA_TEST(whole__is_not_drained_by_losing_its_state),
		CUDA_TEST(user__has_a_part_of_the_processes),
		CUDA_TEST(user__has_a_part_of_the_waits),
		CUDA_TEST(blind__nothing_is_marked_or_proven),
		CUDA_TEST(thread__in_a_wait_is_told_its_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
