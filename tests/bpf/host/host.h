/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel around bpf/lib, in user space: maps are arrays, a process's memory is a table of
 * regions with faults where a test wants them, the clock advances by a fixed step at each reading.
 * One CPU, one walk.  Include it once, first, in each program.
 *
 * * The process: a library (file 16) and an interpreter (file 17), each one 64 KiB page of 256
 * functions of 256 bytes; function i has rule i of its file.  Anonymous executable memory; a stack;
 * a heap. */
#ifndef TESTS_BPF_HOST_H
#define TESTS_BPF_HOST_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <setjmp.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PP_MAP
#define PP_CONST volatile /* tests switch them */
#if defined(HOST_WHOLE_PROGRAM)
#include <walk.bpf.c>
#include <threads.bpf.c>
#include <sample_cpu.bpf.c>
#elif defined(HOST_SWITCH_PROGRAM)
#include <walk.bpf.c>
#include <threads.bpf.c>
#include <look.bpf.c>
#include <switch_thread.bpf.c>
#else
#include <lib/walk_native.bpf.h>
#include <lib/walk_python.bpf.h>
#endif
#if defined(HOST_WHOLE_PROGRAM) || defined(HOST_SWITCH_PROGRAM)
#define on_exit watch_exit /* stdlib.h has another */
int watch_exit(void *ctx, struct task_struct *task);
#include <watch_process.bpf.c>
#undef on_exit
#endif

#define LIBRARY 0x7f0000000000ULL
#define LIBRARY_FILE 16U
#define LIBRARY_PAGE0 1U
#define INTERPRETER 0x7f0000100000ULL
#define INTERPRETER_FILE 17U
#define INTERPRETER_PAGE0 2U
#define FILE_BYTES 0x10000ULL
#define FUNCTION_BYTES 0x100ULL
#define FUNCTIONS 256U
#define ANONYMOUS 0x7f0000200000ULL
#define ANONYMOUS_BYTES 0x1000ULL
#define STACK 0x7ffc00000000ULL /* lowest address */
#define STACK_BYTES 0x40000ULL
#define HEAP 0x555500000000ULL
#define HEAP_BYTES 0x40000ULL

#define HOST_CHUNKS 64U
#define HOST_PAGES 8U
#define HOST_FAULTS 8U
#define HOST_RECORDS 64U
#define HOST_ENTRIES 512U
#define HOST_THREADS 16U

struct host_entry {
	uint64_t key[8], value[32];
	bool is_taken;
};

/* A hash map of any kind: searched from the start. */
struct host_hash {
	struct host_entry entry[HOST_ENTRIES];
	uint32_t key_bytes, value_bytes, room;
	long refuses; /* what an update answers; 0: it works */
};

/* A map of the test's own, beside those that are named below. */
#define HOST_MORE 10U
struct host_more {
	void *map;
	struct host_hash *hash; /* NULL: an array */
	void *array;
	uint32_t count, value_bytes;
};

struct host_record {
	void *data;
	size_t size;
	const void *ring;
	uint64_t flags;
};

struct host {
	struct pp_config config;
	struct pp_walk walk;
	uint64_t losses[PP_LOSS_COUNT];
	struct pp_map_chunk chunk[HOST_CHUNKS];
	uint64_t page[HOST_PAGES];
	struct row_shard shard;
	struct pp_rule rule[2 * FUNCTIONS];
	struct pp_python python;
	struct pp_resync resync;
	struct pp_user_share user_share[PP_USER_SHARE_ROWS];
	struct pp_user_range user_range[2 * PP_USER_RANGES];
	struct cred cred;
	uint64_t ring_used; /* bytes of the megabyte */
	struct scratch_claims scratch_claims;
	uint64_t cpu_place;
	struct sampling sampling;
	struct pp_sample_timer timer;
	struct pp_times times[PP_PROGRAM_COUNT];
	struct pp_thread thread[HOST_THREADS];
	struct pp_timeline_record timeline_record;
	struct switch_state switch_state;
	struct counting counting[COUNTING_COUNT];

	struct {
		uint64_t start, size;
		uint8_t *bytes;
	} region[4];
	struct {
		uint64_t start, end;
	} fault[HOST_FAULTS];
	uint32_t fault_count;
	uint64_t now_ns, ns_a_reading, ns_a_copy; /* of the clock; of user memory */
	uint64_t ns_kernel_stack;		  /* what the kernel's own walk takes */

	uint64_t random; /* the generator's state; never 0 */
	const char *missing_field[2]; /* bpf_core_field_exists() says no to these */
	bool missing_helper; /* and bpf_core_enum_value_exists() to all */

	struct host_hash processes, contexts, thread_states, codes, sent, counts[2], ledgers,
		claims, share_rows, waits[2], coarse[2], gpu_processes, gpu_waits;
	struct host_more more[HOST_MORE];
	uint32_t more_count;
	struct pp_fill fill[PP_FILL_COUNT];
	struct pp_count rest[2 * PP_REST_ROWS];
	struct host_record record[HOST_RECORDS];
	uint32_t record_count;
	bool ring_is_full;

	struct task_struct task;
	struct task_struct *current;	 /* NULL: `task` */
	struct pt_regs *saved_registers; /* NULL: none to be had */
	uint64_t kernel_stack[PP_MAX_KERNEL_FRAMES + 1];
	uint32_t kernel_frames;
	uint64_t user_reads;
	uint32_t share_free[PP_USER_SHARES], share_free_count; /* the last one goes first */
	/* What another CPU does before an update of `slot_claims` or `share_rows`, and before a
	 * deletion of the former. */
	void (*before_claim)(void), (*before_release)(void);
	/* Memory for the test's own use in heap and stack. */
	uint64_t heap_used;
};

static struct host *host;

/* ---- maps ---- */

static void *array_at(void *array, const void *key, uint32_t count, size_t size)
{
	uint32_t index = *(const uint32_t *)key;

	return index < count ? (uint8_t *)array + index * size : NULL;
}

static struct host_entry *hash_find(struct host_hash *hash, const void *key)
{
	for (uint32_t i = 0; i < HOST_ENTRIES; i++)
		if (hash->entry[i].is_taken && !memcmp(hash->entry[i].key, key, hash->key_bytes))
			return &hash->entry[i];
	return NULL;
}

static struct host_more *more_of(void *map)
{
	for (uint32_t i = 0; i < host->more_count; i++)
		if (host->more[i].map == map)
			return &host->more[i];
	return NULL;
}

static struct host_hash *hash_of(void *map)
{
	if (more_of(map))
		return more_of(map)->hash;
	if (map == &processes)
		return &host->processes;
	if (map == &contexts)
		return &host->contexts;
	if (map == &thread_states)
		return &host->thread_states;
	if (map == &codes)
		return &host->codes;
	if (map == &sent)
		return &host->sent;
	if (map == &counts_0)
		return &host->counts[0];
	if (map == &counts_1)
		return &host->counts[1];
	if (map == &waits_0)
		return &host->waits[0];
	if (map == &waits_1)
		return &host->waits[1];
	if (map == &coarse_0)
		return &host->coarse[0];
	if (map == &coarse_1)
		return &host->coarse[1];
	if (map == &slot_claims)
		return &host->claims;
	if (map == &share_rows)
		return &host->share_rows;
	if (map == &gpu_processes)
		return &host->gpu_processes;
	if (map == &gpu_waits)
		return &host->gpu_waits;
	return map == &ledgers ? &host->ledgers : NULL;
}

void *bpf_map_lookup_elem(void *map, const void *key)
{
	const struct host_more *more = more_of(map);
	struct host_entry *entry;
	struct host_hash *hash;

	if (more && !more->hash)
		return array_at(more->array, key, more->count, more->value_bytes);
	if (map == &config)
		return array_at(&host->config, key, 1, sizeof(host->config));
	if (map == &scratch)
		return *(const uint32_t *)key < scratch_levels ? &host->walk : NULL;
	if (map == &scratch_claims)
		return array_at(&host->scratch_claims, key, 1, sizeof(host->scratch_claims));
	if (map == &cpu_slots)
		return array_at(&host->cpu_place, key, 1, sizeof(host->cpu_place));
	if (map == &sample_timers)
		return array_at(&host->timer, key, 1, sizeof(host->timer));
	if (map == &sampling)
		return array_at(&host->sampling, key, 1, sizeof(host->sampling));
	if (map == &times)
		return array_at(host->times, key, PP_PROGRAM_COUNT, sizeof(host->times[0]));
	if (map == &losses)
		return array_at(host->losses, key, PP_LOSS_COUNT, sizeof(uint64_t));
	if (map == &map_sets)
		return array_at(host->chunk, key, HOST_CHUNKS, sizeof(host->chunk[0]));
	if (map == &pages)
		return array_at(host->page, key, HOST_PAGES, sizeof(uint64_t));
	if (map == &rows)
		return array_at(&host->shard, key, 1, sizeof(host->shard));
	if (map == &rules)
		return array_at(host->rule, key, 2 * FUNCTIONS, sizeof(host->rule[0]));
	if (map == &pythons)
		return array_at(&host->python, key, 1, sizeof(host->python));
	if (map == &resyncs)
		return array_at(&host->resync, key, 1, sizeof(host->resync));
	if (map == &user_shares)
		return array_at(host->user_share, key, PP_USER_SHARE_ROWS,
				sizeof(host->user_share[0]));
	if (map == &user_ranges)
		return array_at(host->user_range, key, 2 * PP_USER_RANGES,
				sizeof(host->user_range[0]));
	if (map == &fills)
		return array_at(host->fill, key, PP_FILL_COUNT, sizeof(host->fill[0]));
	if (map == &rest)
		return array_at(host->rest, key, 2 * PP_REST_ROWS, sizeof(host->rest[0]));
	if (map == &threads)
		return array_at(host->thread, key, HOST_THREADS, sizeof(host->thread[0]));
	if (map == &timeline_records)
		return array_at(&host->timeline_record, key, 1, sizeof(host->timeline_record));
	if (map == &countings)
		return array_at(host->counting, key, COUNTING_COUNT, sizeof(host->counting[0]));
	if (map == &switches)
		return array_at(&host->switch_state, key, 1, sizeof(host->switch_state));
	hash = hash_of(map);
	assert_non_null(hash);
	entry = hash_find(hash, key);
	return entry ? entry->value : NULL;
}

/* Once: it claims as well. */
static void host_other_cpu(void (**act)(void))
{
	void (*now)(void) = *act;

	*act = NULL;
	if (now)
		now();
}

long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags)
{
	struct host_hash *hash = hash_of(map);
	struct host_entry *entry;
	uint32_t used = 0;

	assert_non_null(hash);
	if (map == &slot_claims || map == &share_rows)
		host_other_cpu(&host->before_claim);
	if (hash->refuses)
		return hash->refuses;
	entry = hash_find(hash, key);
	if (entry && flags == BPF_NOEXIST)
		return -EEXIST;
	for (uint32_t i = 0; i < HOST_ENTRIES && !entry; i++)
		if (!hash->entry[i].is_taken)
			entry = &hash->entry[i];
	for (uint32_t i = 0; i < HOST_ENTRIES; i++)
		used += hash->entry[i].is_taken;
	if (!entry || (!entry->is_taken && used >= hash->room))
		return -E2BIG;
	entry->is_taken = true;
	memcpy(entry->key, key, hash->key_bytes);
	memcpy(entry->value, value, hash->value_bytes);
	return 0;
}

long bpf_map_pop_elem(void *map, void *value)
{
	assert_ptr_equal(map, &share_free);
	if (!host->share_free_count)
		return -ENOENT;
	*(uint32_t *)value = host->share_free[--host->share_free_count];
	return 0;
}

long bpf_map_push_elem(void *map, const void *value, __u64 flags)
{
	assert_ptr_equal(map, &share_free);
	assert_in_range(host->share_free_count, 0, PP_USER_SHARES - 1);
	assert_int_equal(flags, BPF_ANY);
	host->share_free[host->share_free_count++] = *(const uint32_t *)value;
	return 0;
}

long bpf_map_delete_elem(void *map, const void *key)
{
	struct host_entry *entry;

	if (map == &slot_claims)
		host_other_cpu(&host->before_release);
	entry = hash_find(hash_of(map), key);
	if (!entry)
		return -ENOENT;
	entry->is_taken = false;
	return 0;
}

/* ---- memory, time, rings ---- */

static uint8_t *memory_at(uint64_t address, uint64_t size)
{
	for (size_t i = 0; i < sizeof(host->region) / sizeof(host->region[0]); i++) {
		uint64_t at = address - host->region[i].start;

		if (address >= host->region[i].start && size <= host->region[i].size &&
		    at <= host->region[i].size - size)
			return host->region[i].bytes + at;
	}
	return NULL;
}

long bpf_probe_read_user(void *to, __u32 size, const void *from)
{
	uint64_t address = (uint64_t)from;
	const uint8_t *bytes = memory_at(address, size);

	host->user_reads++;
	host->now_ns += host->ns_a_copy;
	for (uint32_t i = 0; i < host->fault_count; i++)
		if (address < host->fault[i].end && address + size > host->fault[i].start)
			bytes = NULL;
	if (!bytes) {
		memset(to, 0, size); /* as the kernel does */
		return -EFAULT;
	}
	memcpy(to, bytes, size);
	return 0;
}

long bpf_probe_read_kernel(void *to, __u32 size, const void *from)
{
	if (!from) {
		memset(to, 0, size);
		return -EFAULT;
	}
	memcpy(to, from, size);
	return 0;
}

long bpf_probe_read_kernel_str(void *to, __u32 size, const void *from)
{
	return snprintf(to, size, "%s", (const char *)from) + 1;
}

__u64 bpf_ktime_get_ns(void)
{
	__u64 now_ns = host->now_ns;

	host->now_ns += host->ns_a_reading;
	return now_ns;
}

long bpf_ringbuf_output(void *ring, void *data, __u64 size, __u64 flags)
{
	struct host_record *record = &host->record[host->record_count];

	/* An event wakes the agent. */
	assert_true(ring != &events || !(flags & BPF_RB_NO_WAKEUP));
	if (host->ring_is_full)
		return -EAGAIN;
	assert_true(host->record_count < HOST_RECORDS);
	record->data = malloc(size);
	assert_non_null(record->data);
	memcpy(record->data, data, size);
	record->size = size;
	record->ring = ring;
	record->flags = flags;
	host->record_count++;
	return 0;
}

__u64 bpf_ringbuf_query(void *ring, __u64 flags)
{
	(void)ring;
	return flags == BPF_RB_RING_SIZE ? 1 << 20 : host->ring_used;
}

void *bpf_get_current_task_btf(void)
{
	return host->current ? host->current : &host->task;
}

long bpf_get_current_comm(void *to, __u32 size)
{
	const struct task_struct *task = bpf_get_current_task_btf();

	assert_int_equal(size, sizeof(task->comm));
	memcpy(to, task->comm, size);
	return 0;
}

__u64 bpf_get_current_pid_tgid(void)
{
	const struct task_struct *task = bpf_get_current_task_btf();

	return (uint64_t)task->tgid << 32 | (uint32_t)task->pid;
}

__u64 bpf_get_current_task(void)
{
	return (uint64_t)bpf_get_current_task_btf();
}

long bpf_task_pt_regs(void *task)
{
	(void)task;
	return (long)host->saved_registers;
}

void *bpf_rdonly_cast(const void *address, __u32 btf_id)
{
	(void)btf_id;
	return (void *)address;
}

__u32 bpf_get_smp_processor_id(void)
{
	return 0;
}

/* xorshift64* */
__u32 bpf_get_prandom_u32(void)
{
	host->random ^= host->random >> 12;
	host->random ^= host->random << 25;
	host->random ^= host->random >> 27;
	return host->random * 0x2545f4914f6cdd1dULL >> 32;
}

bool host_field_exists(const char *field)
{
	for (size_t i = 0; i < sizeof(host->missing_field) / sizeof(host->missing_field[0]); i++)
		if (host->missing_field[i] && !strcmp(field, host->missing_field[i]))
			return false;
	return true;
}

bool host_helper_exists(void)
{
	return !host->missing_helper;
}

long bpf_get_stack(void *context, void *to, __u32 size, __u64 flags)
{
	uint32_t bytes = host->kernel_frames * 8;

	(void)context;
	host->now_ns += host->ns_kernel_stack;
	/* All frames of the kernel: none is left out, no user's. */
	assert_int_equal(flags, 0);
	assert_true(size <= sizeof(host->walk.kernel.address)); /* as the verifier would say */
	memcpy(to, host->kernel_stack, bytes < size ? bytes : size);
	return bytes < size ? bytes : size;
}

/* ---- the process ---- */

static void host_hash_init(struct host_hash *hash, uint32_t key_bytes, uint32_t value_bytes)
{
	assert_true(key_bytes <= sizeof(hash->entry[0].key));
	assert_true(value_bytes <= sizeof(hash->entry[0].value));
	hash->key_bytes = key_bytes;
	hash->value_bytes = value_bytes;
	hash->room = HOST_ENTRIES;
}

static inline void host_add_hash(void *map, uint32_t key_bytes, uint32_t value_bytes)
{
	struct host_more *more = &host->more[host->more_count++];

	assert_true(host->more_count <= HOST_MORE);
	more->map = map;
	more->hash = calloc(1, sizeof(*more->hash));
	assert_non_null(more->hash);
	host_hash_init(more->hash, key_bytes, value_bytes);
}

static inline void host_add_array(void *map, uint32_t count, uint32_t value_bytes)
{
	struct host_more *more = &host->more[host->more_count++];

	assert_true(host->more_count <= HOST_MORE);
	more->map = map;
	more->array = calloc(count, value_bytes);
	assert_non_null(more->array);
	more->count = count;
	more->value_bytes = value_bytes;
}

static void host_add_region(size_t at, uint64_t start, uint64_t size)
{
	host->region[at].start = start;
	host->region[at].size = size;
	host->region[at].bytes = calloc(1, size);
	assert_non_null(host->region[at].bytes);
}

/* Functions of one file: page `page`, rules from `first_rule` on. */
static void host_add_page(uint32_t page, uint32_t first_rule)
{
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		host->shard.row[first_rule + i] = PP_ROW(i * FUNCTION_BYTES, first_rule + i);
	host->page[page] = PP_PAGE(first_rule, FUNCTIONS, PP_PAGE_LOADED);
}

static void host_set_range(uint32_t at, uint64_t start, uint32_t file, uint32_t page0,
			   uint64_t bias)
{
	host->chunk[0].start[at] = start;
	host->chunk[0].range[at] = (struct pp_range){.file = file, .page0 = page0, .bias = bias};
}

static void host_map_files(void)
{
	memset(host->chunk, 0xff, sizeof(host->chunk));
	host_set_range(0, 0, PP_FILE_NONE, 0, 0);
	host_set_range(1, LIBRARY, LIBRARY_FILE, LIBRARY_PAGE0, LIBRARY);
	host_set_range(2, LIBRARY + FILE_BYTES, PP_FILE_NONE, 0, 0);
	host_set_range(3, INTERPRETER, INTERPRETER_FILE, INTERPRETER_PAGE0, INTERPRETER);
	host_set_range(4, INTERPRETER + FILE_BYTES, PP_FILE_NONE, 0, 0);
	host_set_range(5, ANONYMOUS, PP_FILE_ANONYMOUS, 0, 0);
	host_set_range(6, ANONYMOUS + ANONYMOUS_BYTES, PP_FILE_NONE, 0, 0);
}

static int host_setup(void **state)
{
	(void)state;
	/* Parts of a walk lie in cache lines of their own. */
	host = aligned_alloc(64, (sizeof(*host) + 63) & ~63ULL);
	assert_non_null(host);
	memset(host, 0, sizeof(*host));
	host_add_region(0, STACK, STACK_BYTES);
	host_add_region(1, HEAP, HEAP_BYTES);
	host_add_region(2, ANONYMOUS, ANONYMOUS_BYTES);
	host_map_files();
	host_add_page(LIBRARY_PAGE0, 0);
	host_add_page(INTERPRETER_PAGE0, FUNCTIONS);
	for (uint32_t i = 0; i < 2 * FUNCTIONS; i++)
		host->rule[i] = (struct pp_rule){.kind = PP_RULE_STOP};
	host_hash_init(&host->processes, sizeof(uint32_t), sizeof(uint32_t));
	host_hash_init(&host->contexts, sizeof(struct pp_process_id),
		       sizeof(struct pp_process_context));
	host_hash_init(&host->thread_states, sizeof(struct pp_thread_key), sizeof(uint64_t));
	host_hash_init(&host->codes, sizeof(struct code_key), sizeof(uint64_t));
	host_hash_init(&host->sent, sizeof(uint64_t), sizeof(uint32_t));
	for (int i = 0; i < 2; i++) {
		host_hash_init(&host->counts[i], sizeof(struct pp_count_key),
			       sizeof(struct pp_count));
		host_hash_init(&host->waits[i], sizeof(struct pp_count_key),
			       sizeof(struct pp_count));
		host_hash_init(&host->coarse[i], sizeof(struct pp_count_key),
			       sizeof(struct pp_count));
	}
	host->cpu_place = 1;
	host_hash_init(&host->claims, sizeof(uint32_t), sizeof(uint32_t));
	host_hash_init(&host->share_rows, sizeof(uint32_t), sizeof(uint32_t));
	for (uint32_t i = 0; i < PP_USER_SHARES; i++)
		host->share_free[i] = i;
	host->share_free_count = PP_USER_SHARES;
	host_hash_init(&host->gpu_processes, sizeof(uint32_t), sizeof(struct pp_gpu_process));
	host_hash_init(&host->gpu_waits, sizeof(uint32_t), sizeof(struct pp_gpu_wait));
	host_hash_init(&host->ledgers, sizeof(struct pp_process_id), sizeof(struct pp_ledger_sum));
	host->random = 1;
	scratch_levels = PP_WALK_LEVELS;
	has_cmpxchg = has_rdonly_cast = true;
	host->missing_field[0] = "old->state"; /* 5.14 and later */
	host->now_ns = 1000000;
	host->walk.started_ns = host->walk.deadline_ns = UINT64_MAX;
	host->walk.context =
		(struct pp_process_context){.map_set = 1, .map_chunks = 1, .map_version = 1};
	host->walk.native_room = PP_MAX_FRAMES;
	host->walk.is_leaf = 1;
	host->python.file = INTERPRETER_FILE;
	/* Users whose processes began. */
	share_claim(1000);
	share_claim(1001);
	return 0;
}

static void host_drop_records(void)
{
	for (uint32_t i = 0; i < host->record_count; i++)
		free(host->record[i].data);
	host->record_count = 0;
}

static int host_teardown(void **state)
{
	(void)state;
	host_drop_records();
	for (size_t i = 0; i < sizeof(host->region) / sizeof(host->region[0]); i++)
		free(host->region[i].bytes);
	for (uint32_t i = 0; i < host->more_count; i++) {
		free(host->more[i].hash);
		free(host->more[i].array);
	}
	free(host);
	host = NULL;
	return 0;
}

/* ---- what tests write ---- */

static inline void put_bytes(uint64_t address, const void *bytes, size_t size)
{
	uint8_t *to = memory_at(address, size);

	assert_non_null(to);
	memcpy(to, bytes, size);
}

static inline void put_word(uint64_t address, uint64_t word)
{
	put_bytes(address, &word, sizeof(word));
}

/* Reading any byte of [start, start + size) fails. */
static inline void put_fault(uint64_t start, uint64_t size)
{
	assert_true(host->fault_count < HOST_FAULTS);
	host->fault[host->fault_count].start = start;
	host->fault[host->fault_count++].end = start + size;
}

/* Memory of the heap, 16 bytes aligned, zeros. */
static inline uint64_t heap_take(uint64_t size)
{
	uint64_t at = HEAP + host->heap_used;

	host->heap_used += (size + 15) & ~15ULL;
	assert_true(host->heap_used <= HEAP_BYTES);
	return at;
}

static inline struct pp_rule *library_rule(uint32_t function)
{
	return &host->rule[function];
}
static inline struct pp_rule *interpreter_rule(uint32_t function)
{
	return &host->rule[FUNCTIONS + function];
}
/* An address inside a function: also a return address there. */
static inline uint64_t library_pc(uint32_t function)
{
	return LIBRARY + function * FUNCTION_BYTES + 0x10;
}
static inline uint64_t interpreter_pc(uint32_t function)
{
	return INTERPRETER + function * FUNCTION_BYTES + 0x10;
}

static inline struct pp_rule rule_sp(int32_t cfa_offset)
{
	return (struct pp_rule){.kind = PP_RULE_CFA_SP, .cfa_offset = cfa_offset, .ra_offset = -8};
}
/* A frame of `bytes` that saves the frame pointer below the return address. */
static inline struct pp_rule rule_sp_fp(int32_t cfa_offset)
{
	return (struct pp_rule){.kind = PP_RULE_CFA_SP,
				.cfa_offset = cfa_offset,
				.ra_offset = -8,
				.fp_kind = PP_FP_AT_CFA,
				.fp_offset = -16};
}

static inline const struct pp_frame *native_frame(uint32_t at)
{
	return &host->walk.out.frame[host->walk.python_stored + at];
}
static inline const struct pp_frame *python_frame(uint32_t at)
{
	return &host->walk.out.frame[at];
}

/* Others are at all walks of the CPU, or none. */
static inline void take_scratch(bool is_taken)
{
	for (uint32_t i = 0; i < PP_WALK_LEVELS; i++)
		host->scratch_claims.is_taken[i] = is_taken;
}

/* One step of the walk at hand.  Nonzero: done. */
static inline int native_step(void)
{
	return !walk_plain_step(&host->walk, 0, python_of(&host->walk)) && walk_any_step(0);
}
static inline int python_step(void)
{
	return walk_python_step(&host->walk, &host->python, 0);
}

#define assert_frame(frame, frame_kind, frame_where, frame_what)                                   \
	do {                                                                                       \
		assert_int_equal((frame)->kind, frame_kind);                                       \
		assert_int_equal((frame)->where, frame_where);                                     \
		assert_int_equal((frame)->what, frame_what);                                       \
	} while (0)

/* A frame of the library or interpreter at the address in the file of `pc`. */
#define assert_library(at, function, is_leaf)                                                      \
	assert_frame(native_frame(at), PP_FRAME_NATIVE,                                            \
		     (function) * FUNCTION_BYTES + 0x10 - !(is_leaf), LIBRARY_FILE)
#define assert_interpreter(at, function)                                                           \
	assert_frame(native_frame(at), PP_FRAME_NATIVE, (function) * FUNCTION_BYTES + 0xf,         \
		     INTERPRETER_FILE)
#define assert_segment(at, frames) assert_frame(native_frame(at), PP_FRAME_SEGMENT, frames, 0)

#define host_test(test) cmocka_unit_test_setup_teardown(test, host_setup, host_teardown)

#endif
