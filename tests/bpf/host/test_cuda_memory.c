/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/cuda_memory.bpf.h: which of the device's memory is live, whose share it takes, and which
 * allocations have their stacks taken. */
#include "host.h"

#include <lib/cuda_memory.bpf.h>

#define TGID 70U
#define GENERATION 5U
#define ROW 0x901ULL
#define SP (STACK + 0x1000)
#define OUT (HEAP + 0x100) /* where addresses are stored */
#define ADDRESS 0x7f1234000000ULL
#define CONTEXT 0x5000ULL
#define KIND PP_CUDA_OBJECT_MEMORY

static struct user_namespace machine;

static int setup(void **state)
{
	const struct cuda_thread thread = {
		.generation = GENERATION, .user = 1000, .context = CONTEXT, .device = 2};
	const uint64_t id = (uint64_t)TGID << 32 | 71;

	assert_int_equal(host_setup(state), 0);
	host_add_hash(&cuda_calls, sizeof(struct cuda_call_key), sizeof(struct cuda_call));
	host_add_hash(&cuda_threads, sizeof(uint64_t), sizeof(struct cuda_thread));
	host_add_hash(&cuda_processes, sizeof(uint32_t), sizeof(struct cuda_process));
	host_add_hash(&cuda_totals, sizeof(uint64_t), sizeof(struct pp_cuda_totals));
	host_add_hash(&cuda_blocks, sizeof(struct pp_cuda_block_key), sizeof(struct pp_cuda_block));
	host_add_hash(&cuda_ended, sizeof(struct pp_cuda_handle), sizeof(uint64_t));
	host_add_array(&cuda_block_counts, PP_CUDA_BLOCK_COUNTS, sizeof(uint64_t));
	host_add_array(&cuda_machine, 1, sizeof(struct cuda_machine));
	assert_int_equal(bpf_map_update_elem(&cuda_threads, &id, &thread, BPF_ANY), 0);
	host->task.tgid = TGID;
	host->task.pid = 71;
	host->ns_a_reading = 1000;
	host->cred = (struct cred){.euid.val = 1000, .user_ns = &machine};
	host->task.cred = &host->cred;
	return 0;
}

/* From now on the thread is this user's. */
static void run_as(uint32_t user)
{
	const uint64_t id = bpf_get_current_pid_tgid();
	struct cuda_thread *thread = bpf_map_lookup_elem(&cuda_threads, &id);

	thread->user = user;
}

/* ---- calls ---- */

static void remember(uint64_t stands_for)
{
	const struct cuda_call_key key = {.thread = bpf_get_current_pid_tgid(), .sp = SP};
	const struct cuda_call call = {
		.id = ROW, .stands_for = stands_for, .row = {.user_stack = 0x77, .flags = 4}};

	assert_int_equal(bpf_map_update_elem(&cuda_calls, &key, &call, BPF_ANY), 0);
}

/* An allocation has begun and returned; 0: what it was given is kept. */
static int allocated(uint64_t address, uint64_t bytes, uint64_t stands_for)
{
	remember(stands_for);
	assert_int_equal(cuda_block_begin(SP, OUT, bytes, GENERATION, KIND), 0);
	memcpy(host->region[1].bytes + (OUT - HEAP), &address, sizeof(address));
	return cuda_block_got(SP, GENERATION, KIND);
}

static void free_begins(uint64_t address)
{
	remember(0);
	assert_int_equal(cuda_block_begin(SP, address, 0, GENERATION, KIND), 0);
}

static void freed(uint64_t address)
{
	free_begins(address);
	cuda_block_freed(SP, KIND);
}

static const struct pp_cuda_block *block_at(uint64_t address, uint32_t object)
{
	const struct pp_cuda_block_key key = {.address = address, .tgid = TGID, .object = object};

	return bpf_map_lookup_elem(&cuda_blocks, &key);
}

static uint64_t count(void)
{
	return *cuda_block_count(PP_CUDA_BLOCKS_ADDED) - *cuda_block_count(PP_CUDA_BLOCKS_REMOVED);
}

static uint32_t share(void)
{
	return share_of(1000)->gpu_blocks;
}

/* ---- blocks ---- */

static void block__is_live_until_it_is_freed(void **state)
{
	const struct pp_cuda_block *block;

	(void)state;
	assert_int_equal(allocated(ADDRESS, 4096, 1), 0);
	block = block_at(ADDRESS, KIND);
	assert_non_null(block);
	assert_int_equal(block->bytes, 4096);
	assert_int_equal(block->user_stack, 0x77);
	assert_int_equal(block->flags, 4);
	assert_int_equal(block->row, ROW);
	assert_int_equal(block->tid, 71);
	assert_int_equal(block->generation, GENERATION);
	assert_int_equal(block->context, CONTEXT);
	assert_int_equal(block->device, 2);
	assert_int_equal(block->user, 1000);
	assert_int_equal(share(), 1);
	freed(ADDRESS);
	assert_null(block_at(ADDRESS, KIND));
	assert_int_equal(count(), 0);
	assert_int_equal(share(), 0);
	assert_int_equal(host->losses[PP_LOSS_CUDA_FREES_UNKNOWN], 0);
}

static void block__whose_call_was_not_walked_is_of_other_stacks(void **state)
{
	(void)state;
	assert_int_equal(allocated(ADDRESS, 1, 0), 0);
	assert_int_equal(block_at(ADDRESS, KIND)->user_stack, PP_STACK_OTHERS);
	assert_int_equal(block_at(ADDRESS, KIND)->flags, 0);
}

/* Of an address that cannot be read, or is none, nothing is known. */
static void block__needs_an_address(void **state)
{
	(void)state;
	assert_int_equal(allocated(0, 4096, 1), 1);
	remember(1);
	cuda_block_begin(SP, 0x10, 4096, GENERATION, KIND);
	assert_int_equal(cuda_block_got(SP, GENERATION, KIND), 1);
	assert_int_equal(cuda_block_got(SP + 8, GENERATION, KIND), 1);
	assert_int_equal(count(), 0);
}

static void free__that_fails_frees_nothing(void **state)
{
	(void)state;
	allocated(ADDRESS, 4096, 1);
	free_begins(ADDRESS);
	assert_non_null(block_at(ADDRESS, KIND));
}

static void free__of_null_is_nothing(void **state)
{
	(void)state;
	freed(0);
	assert_int_equal(host->losses[PP_LOSS_CUDA_FREES_UNKNOWN], 0);
}

static void free__of_what_was_not_seen_is_counted(void **state)
{
	(void)state;
	freed(ADDRESS);
	assert_int_equal(host->losses[PP_LOSS_CUDA_FREES_UNKNOWN], 1);
	assert_int_equal(count(), 0);
}

/* The driver gives the address to another thread before the call that freed it has returned. */
static void free__leaves_the_address_to_its_next_block(void **state)
{
	const struct cuda_call_key key = {.thread = (uint64_t)TGID << 32 | 72, .sp = SP};
	struct cuda_call call;

	(void)state;
	allocated(ADDRESS, 4096, 1);
	free_begins(ADDRESS);
	call = *cuda_call_at(SP);
	assert_int_equal(bpf_map_update_elem(&cuda_calls, &key, &call, BPF_ANY), 0);
	assert_int_equal(allocated(ADDRESS, 100, 1), 0);
	host->task.pid = 72;
	cuda_block_freed(SP, KIND);
	assert_int_equal(block_at(ADDRESS, KIND)->bytes, 100);
	assert_int_equal(count(), 1);
	assert_int_equal(share(), 1);
}

static void free__of_another_program_of_the_process_frees_nothing(void **state)
{
	(void)state;
	allocated(ADDRESS, 4096, 1);
	remember(0);
	cuda_block_begin(SP, ADDRESS, 0, GENERATION + 1, KIND);
	cuda_block_freed(SP, KIND);
	assert_non_null(block_at(ADDRESS, KIND));
	assert_int_equal(host->losses[PP_LOSS_CUDA_FREES_UNKNOWN], 1);
}

static void handles__and_addresses_are_two(void **state)
{
	(void)state;
	allocated(ADDRESS, 4096, 1);
	remember(0);
	cuda_block_begin(SP, ADDRESS, 0, GENERATION, PP_CUDA_OBJECT_PHYSICAL);
	cuda_block_freed(SP, PP_CUDA_OBJECT_PHYSICAL);
	assert_non_null(block_at(ADDRESS, KIND));
}

/* ---- bounds ---- */

static void room__is_shared_by_users(void **state)
{
	(void)state;
	/* Others have all but 10. */
	*cuda_block_count(PP_CUDA_BLOCKS_ADDED) = PP_CUDA_BLOCKS_MAX;
	*cuda_block_count(PP_CUDA_BLOCKS_REMOVED) = 10;
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(allocated(ADDRESS + 512 * i, 512, 1), 0);
	assert_int_equal(allocated(ADDRESS + 0x10000, 512, 1), 1);
	assert_int_equal(host->losses[PP_LOSS_CUDA_BLOCKS_FULL], 1);
	assert_int_equal(share(), 5);
	/* What takes the place of another one needs none. */
	assert_int_equal(allocated(ADDRESS, 100, 1), 0);
	/* Root has all the rest. */
	run_as(0);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(allocated(ADDRESS + 0x20000 + 512 * i, 512, 1), 0);
	assert_int_equal(allocated(ADDRESS + 0x10000, 512, 1), 1);
	assert_int_equal(count(), PP_CUDA_BLOCKS_MAX);
	assert_int_equal(host->losses[PP_LOSS_CUDA_BLOCKS_FULL], 2);
}

static void room__is_given_back_where_the_table_refuses(void **state)
{
	(void)state;
	more_of(&cuda_blocks)->hash->refuses = -16; /* EBUSY */
	assert_int_equal(allocated(ADDRESS, 512, 1), 1);
	assert_int_equal(count(), 0);
	assert_int_equal(share(), 0);
	assert_int_equal(host->losses[PP_LOSS_CUDA_BLOCKS_FULL], 1);
}

/* ---- walks ---- */

static struct pp_cuda_totals *totals_make(void)
{
	const struct pp_cuda_totals totals = {.what.id = {.tgid = TGID, .generation = GENERATION},
					      .gap = 1};
	const uint64_t id = ROW;

	assert_int_equal(bpf_map_update_elem(&cuda_totals, &id, &totals, BPF_ANY), 0);
	return bpf_map_lookup_elem(&cuda_totals, &id);
}

/* Of so many calls one after the other: how many have their stacks taken. */
static uint32_t walked(struct pp_cuda_totals *totals, uint32_t calls)
{
	uint32_t walks = 0;

	for (uint32_t i = 0; i < calls; i++) {
		totals->calls++;
		walks += cuda_block_walk(ROW) != 0;
	}
	return walks;
}

static void walks__are_of_each_allocation_within_the_budget(void **state)
{
	struct pp_cuda_totals *totals = totals_make();
	const uint32_t saved = PP_CUDA_SAVED_NS / PP_CUDA_PROCESS_NS;

	(void)state;
	host->ns_a_reading = 0;
	host->config.window = 1;
	assert_int_equal(walked(totals, saved), saved);
	assert_int_equal(totals->squares, saved); /* each stands for one */
	/* Beyond it, as of any call: of which as many are saved. */
	assert_in_range(walked(totals, 2 * saved), saved / 2, saved - 1);
	host->now_ns += PP_CUDA_PROCESS_NS * 100ULL;
	assert_true(walked(totals, 100) >= 99);
}

static void walks__of_the_machine_are_bounded_as_well(void **state)
{
	struct pp_cuda_totals *totals = totals_make();

	(void)state;
	host->ns_a_reading = 0;
	cuda_machine_get()->blocks_until_ns = host->now_ns + 2 * PP_CUDA_SAVED_NS;
	cuda_machine_get()->walks_until_ns = host->now_ns + 2 * PP_CUDA_SAVED_NS;
	assert_int_equal(walked(totals, 100), 0);
	assert_int_equal(cuda_block_walk(ROW + 2), 0);
}

/* ---- contexts ---- */

static void context__that_ends_is_told_with_its_time(void **state)
{
	const struct pp_cuda_handle key = {.id = {.tgid = TGID, .generation = GENERATION},
					   .handle = CONTEXT};
	const uint64_t *ns;

	(void)state;
	allocated(ADDRESS, 4096, 1);
	assert_int_equal(cuda_memory_ended(GENERATION, CONTEXT), 0);
	ns = bpf_map_lookup_elem(&cuda_ended, &key);
	assert_non_null(ns);
	assert_true(*ns > block_at(ADDRESS, KIND)->since_ns);
	more_of(&cuda_ended)->hash->refuses = -7;
	assert_int_equal(cuda_memory_ended(GENERATION, CONTEXT + 1), 1);
	assert_int_equal(host->losses[PP_LOSS_CUDA_BLOCKS_FULL], 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, host_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(block__is_live_until_it_is_freed),
		TEST(block__whose_call_was_not_walked_is_of_other_stacks),
		TEST(block__needs_an_address),
		TEST(free__that_fails_frees_nothing),
		TEST(free__of_null_is_nothing),
		TEST(free__of_what_was_not_seen_is_counted),
		TEST(free__leaves_the_address_to_its_next_block),
		TEST(free__of_another_program_of_the_process_frees_nothing),
		TEST(handles__and_addresses_are_two),
		TEST(room__is_shared_by_users),
		TEST(room__is_given_back_where_the_table_refuses),
		TEST(walks__are_of_each_allocation_within_the_budget),
		TEST(walks__of_the_machine_are_bounded_as_well),
		TEST(context__that_ends_is_told_with_its_time),
	};

	return cmocka_run_group_tests_name("bpf/cuda_memory", tests, NULL, NULL);
}
