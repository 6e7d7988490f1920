/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/identify.bpf.h at switches: label `gpu` of waits, and waits for the GPU. */
#include "switch.h"

#define FUTEX_WORD 0x7f00dead0000ULL

static struct pp_gpu_process process;

static void put_process(void)
{
	const uint32_t tgid = 70;

	bpf_map_update_elem(&gpu_processes, &tgid, &process, BPF_ANY);
}

/* A process with work queued. */
static int gpu_setup(void **state)
{
	switch_setup(state);
	set_time(0);
	host->config.gpu_sight = 1;
	process = (struct pp_gpu_process){
		.generation = GENERATION, .sight = 1, .marked = 7, .idle = 7, .sure = 1};
	put_process();
	return 0;
}

static void is_drained(bool drained)
{
	process.idle = process.marked + drained;
	put_process();
}

static void waits_for_gpu(const struct actor *actor, uint64_t sp)
{
	const uint32_t tid = actor->task.pid;
	const struct pp_gpu_wait wait = {.sp = sp};

	bpf_map_update_elem(&gpu_waits, &tid, &wait, BPF_ANY);
}

static enum pp_gpu gpu_of(const struct actor *actor)
{
	return (wait_site_of(actor)->flags & PP_COUNT_GPU_BITS) >> PP_COUNT_GPU_SHIFT;
}

/* Runs for 1 ms and sleeps in a futex. */
static void sleeps(struct actor *actor, uint64_t at_ns)
{
	actor->regs.orig_rax = __NR_futex;
	actor->regs.rdi = FUTEX_WORD;
	switch_in(actor, at_ns);
	switch_out(actor, at_ns + MS);
}

static void wait__has_the_state_in_which_it_begins(void **state)
{
	(void)state;
	sleeps(&one, 0);
	assert_int_equal(gpu_of(&one), PP_GPU_QUEUED);
	assert_int_equal(wait_site_reason(wait_site_of(&one)), PP_WAIT_LOCK);
	/* At the same instruction: a site of its own. */
	is_drained(true);
	sleeps(&one, 10 * MS);
	assert_int_equal(gpu_of(&one), PP_GPU_DRAINED);
	is_drained(false);
	sleeps(&one, 20 * MS);
	assert_int_equal(gpu_of(&one), PP_GPU_QUEUED);
	assert_int_equal(sum_of(&one)->ns, 9 * MS);
}

static void wait__inside_of_a_synchronisation_is_for_the_gpu(void **state)
{
	(void)state;
	waits_for_gpu(&one, one.regs.rsp + 0x100);
	sleeps(&one, 0);
	assert_int_equal(gpu_of(&one), PP_GPU_WAIT);
	assert_int_equal(wait_site_reason(wait_site_of(&one)), PP_WAIT_GPU);
	switch_in(&one, 6 * MS);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_GPU], 5 * MS);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_LOCK], 0);
	/* Another thread of the process does not wait for it. */
	sleeps(&two, 10 * MS);
	assert_int_equal(gpu_of(&two), PP_GPU_QUEUED);
}

static void wait__that_nobody_chose_stays_what_it_is(void **state)
{
	(void)state;
	waits_for_gpu(&one, one.regs.rsp + 0x100);
	switch_in(&one, 0);
	one.regs.orig_rax = ~0UL; /* touched memory that is not there */
	switch_out(&one, MS);
	assert_int_equal(wait_site_reason(wait_site_of(&one)), PP_WAIT_FAULT);
	assert_int_equal(gpu_of(&one), PP_GPU_WAIT);
	switch_in(&one, 2 * MS);
	is_preempted(&one, 3 * MS);
	assert_int_equal(wait_site_reason(wait_site_of(&one)), PP_WAIT_RUN_QUEUE);
	assert_int_equal(gpu_of(&one), PP_GPU_WAIT);
}

/* It has left the call without its return, by longjmp(). */
static void wait__above_the_calls_frame_is_not_inside_of_it(void **state)
{
	(void)state;
	waits_for_gpu(&one, one.regs.rsp - 8);
	sleeps(&one, 0);
	assert_int_equal(gpu_of(&one), PP_GPU_QUEUED);
	assert_int_equal(wait_site_reason(wait_site_of(&one)), PP_WAIT_LOCK);
}

static void preempted__has_the_state_of_each_time(void **state)
{
	(void)state;
	switch_in(&one, 0);
	is_preempted(&one, MS);
	assert_int_equal(gpu_of(&one), PP_GPU_QUEUED);
	switch_in(&one, 3 * MS);
	is_drained(true);
	is_preempted(&one, 4 * MS);
	assert_int_equal(gpu_of(&one), PP_GPU_DRAINED);
	switch_in(&one, 9 * MS);
	assert_int_equal(sum_of(&one)->queue_ns + sum_of(&one)->ns, 5 * MS);
}

static void state__of_another_program_or_sight_is_none(void **state)
{
	(void)state;
	process.generation = GENERATION - 1;
	put_process();
	sleeps(&one, 0);
	assert_int_equal(gpu_of(&one), PP_GPU_UNKNOWN);
	process.generation = GENERATION;
	put_process();
	host->config.gpu_sight = 2;
	sleeps(&one, 10 * MS);
	assert_int_equal(gpu_of(&one), PP_GPU_UNKNOWN);
	process.sight = 2;
	put_process();
	sleeps(&one, 20 * MS);
	assert_int_equal(gpu_of(&one), PP_GPU_QUEUED);
}

/* Whether it may be, is looked up again as often as whether its process matches. */
static void state__is_looked_up_only_where_cuda_was_seen(void **state)
{
	const uint32_t tgid = 70;

	(void)state;
	bpf_map_delete_elem(&gpu_processes, &tgid);
	sleeps(&one, 0);
	assert_int_equal(slot_of(&one)->gpu, 0);
	put_process();
	sleeps(&one, 50 * MS);
	assert_int_equal(gpu_of(&one), PP_GPU_UNKNOWN);
	sleeps(&one, 150 * MS);
	assert_int_equal(slot_of(&one)->gpu, 1);
	assert_int_equal(gpu_of(&one), PP_GPU_QUEUED);
}

static void thread__that_ends_waits_no_more(void **state)
{
	struct signal_struct signal = {.live.counter = 1};
	const uint32_t tid = one.task.pid;

	(void)state;
	waits_for_gpu(&one, one.regs.rsp);
	one.task.signal = &signal;
	assert_int_equal(watch_exit(NULL, &one.task), 0);
	assert_null(bpf_map_lookup_elem(&gpu_waits, &tid));
}

static void blame__has_the_state_of_who_waits(void **state)
{
	struct pp_wait_site site = {.flags = PP_WAIT_GIL << PP_COUNT_WAIT_SHIFT |
					     PP_GPU_DRAINED << PP_COUNT_GPU_SHIFT};
	struct pp_count_key key = {};

	(void)state;
	pp_wait_key_to_blame(&key, &site);
	assert_int_equal(key.flags & PP_COUNT_GPU_BITS, PP_GPU_DRAINED << PP_COUNT_GPU_SHIFT);
}

int main(void)
{
#define GPU_TEST(test) cmocka_unit_test_setup_teardown(test, gpu_setup, switch_teardown)
	const struct CMUnitTest tests[] = {
		GPU_TEST(wait__has_the_state_in_which_it_begins),
		GPU_TEST(wait__inside_of_a_synchronisation_is_for_the_gpu),
		GPU_TEST(wait__that_nobody_chose_stays_what_it_is),
		GPU_TEST(wait__above_the_calls_frame_is_not_inside_of_it),
		GPU_TEST(preempted__has_the_state_of_each_time),
		GPU_TEST(state__of_another_program_or_sight_is_none),
		GPU_TEST(state__is_looked_up_only_where_cuda_was_seen),
		GPU_TEST(thread__that_ends_waits_no_more),
		GPU_TEST(blame__has_the_state_of_who_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
