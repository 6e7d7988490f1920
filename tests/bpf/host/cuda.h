/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What tests of bpf/lib/cuda_streams.bpf.h share: its maps, and threads that call in the order in
 * which a test lets them; a call that waits begins and ends. */
#ifndef HOST_CUDA_H
#define HOST_CUDA_H

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
	/* Of the thread that takes a row. */
	uint64_t stream_then, round_then;
} cuda;

static inline void *cuda_lookup(void *map, const void *key);
static inline long cuda_update(void *map, const void *key, const void *value, uint64_t flags);
static inline long cuda_delete(void *map, const void *key);
#define bpf_map_lookup_elem cuda_lookup
#define bpf_map_update_elem cuda_update
#define bpf_map_delete_elem cuda_delete
#include <lib/cuda.bpf.h>
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

static inline struct host_hash *cuda_hash(const void *map)
{
	if (map == &cuda_threads)
		return &cuda.threads;
	if (map == &cuda_claims)
		return &cuda.claims;
	return map == &cuda_wholes ? &cuda.wholes : NULL;
}

static inline void *streams_of(const void *key)
{
	for (size_t i = 0; i < 4; i++)
		if (cuda.process[i].is_taken && !memcmp(&cuda.process[i].id, key, 8))
			return cuda.process[i].streams;
	return NULL;
}

static inline void *cuda_lookup(void *map, const void *key)
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

static inline long add_streams(const void *key, const void *value)
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

static inline void note_thread(void)
{
	const uint64_t id = bpf_get_current_pid_tgid();
	const struct cuda_thread *thread = cuda_lookup(&cuda_threads, &id);

	cuda.stream_then = thread ? thread->stream : 0;
	cuda.round_then = thread ? thread->round : 0;
}

static inline long cuda_update(void *map, const void *key, const void *value, uint64_t flags)
{
	struct host_hash *hash = cuda_hash(map);

	if (map == &cuda_claims)
		note_thread();
	if (map == &cuda_streams)
		return add_streams(key, value);
	if (!hash)
		return bpf_map_update_elem(map, key, value, flags);
	if (hash->refuses)
		return hash->refuses;
	if (hash_find(hash, key)) {
		if (flags != BPF_NOEXIST)
			memcpy(hash_find(hash, key)->value, value, hash->value_bytes);
		return flags == BPF_NOEXIST ? -EEXIST : 0;
	}
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

static inline long cuda_delete(void *map, const void *key)
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

static inline struct caller *caller(uint32_t i)
{
	return &callers[i];
}

/* Makes a thread the current one. */
static inline struct cuda_thread *as(uint32_t i)
{
	const uint64_t key = (uint64_t)TGID << 32 | (TGID + i);
	struct cuda_thread *thread;

	host->current = &callers[i].task;
	host->saved_registers = &callers[i].regs;
	thread = cuda_lookup(&cuda_threads, &key);
	if (!thread)
		abort();
	return thread;
}

static inline struct cuda_streams *streams(void)
{
	const struct pp_process_id id = {.tgid = TGID, .generation = GENERATION};

	return streams_of(&id);
}

static inline int setup(void **state)
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

static inline void is_whole(void)
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

static inline void launch(uint32_t i, uint64_t stream)
{
	cuda_queue(as(i), stream, true, CALL_SP);
}

static inline void copy(uint32_t i, uint64_t stream)
{
	cuda_queue(as(i), stream, false, CALL_SP);
}

static inline void choose(uint32_t i, uint64_t context)
{
	as(i);
	cuda_context_choose(context, PP_CUDA_SET_CONTEXT);
}

static inline void begin_stream(uint32_t i, uint64_t stream)
{
	cuda_launch_left(as(i), CALL_SP);
	cuda_wait_begin(CALL_SP, PP_CUDA_SYNC_STREAM, stream, user_of_current());
}

static inline void begin_context(uint32_t i, uint64_t context)
{
	cuda_launch_left(as(i), CALL_SP);
	cuda_wait_begin(CALL_SP, PP_CUDA_SYNC_CONTEXT, context, user_of_current());
}

static inline void end_stream(uint32_t i, uint32_t result)
{
	as(i);
	cuda_wait_end(CALL_SP, PP_CUDA_SYNC_STREAM, result);
}

static inline void end_context(uint32_t i, uint32_t result)
{
	as(i);
	cuda_wait_end(CALL_SP, PP_CUDA_SYNC_CONTEXT, result);
}

static inline void sync_stream(uint32_t i, uint64_t stream)
{
	begin_stream(i, stream);
	end_stream(i, 0);
}

static inline void sync_context(uint32_t i)
{
	begin_context(i, 0);
	end_context(i, 0);
}

#endif
