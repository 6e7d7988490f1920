/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/cuda_streams.bpf.h: what calls of CUDA prove of the work that a process has queued. */
#include "cuda.h"

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
	cuda_wait_begin(CALL_SP - 0x200, PP_CUDA_SYNC_STREAM, STREAM, user_of_current());
	cuda_wait_end(CALL_SP - 0x200, PP_CUDA_SYNC_STREAM, 0);
	assert_non_null(bpf_map_lookup_elem(&gpu_waits, &tid));
	assert_int_equal(now(), PP_GPU_QUEUED);
	end_context(0, 0);
	assert_null(bpf_map_lookup_elem(&gpu_waits, &tid));
	assert_int_equal(now(), PP_GPU_DRAINED);
	/* One that was left by longjmp() has no end. */
	cuda_wait_begin(CALL_SP - 0x200, PP_CUDA_SYNC_STREAM, STREAM, user_of_current());
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

/* The default stream of each is another one. */
static void contexts__one_thread_may_use_several_in_a_round(void **state)
{
	(void)state;
	is_whole();
	choose(0, CONTEXT);
	launch(0, CUDA_LEGACY);
	choose(0, OTHER_CONTEXT);
	launch(0, CUDA_LEGACY);
	choose(0, CONTEXT);
	sync_context(0);
	sync_stream(0, CUDA_LEGACY);
	assert_int_equal(now(), PP_GPU_QUEUED);
	choose(0, OTHER_CONTEXT);
	sync_context(0);
	assert_int_equal(now(), PP_GPU_DRAINED);
}

/* A copy may go to a stream of another context than its thread's, where no kernel runs. */
static void contexts__copies_do_not_tell_that_of_their_stream(void **state)
{
	(void)state;
	is_whole();
	choose(1, OTHER_CONTEXT); /* it has made a stream there */
	choose(0, CONTEXT);
	copy(0, STREAM);
	sync_context(0);
	assert_int_equal(now(), PP_GPU_QUEUED);
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_DRAINED);
	/* Kernels do. */
	launch(1, STREAM);
	copy(0, STREAM);
	sync_context(0);
	assert_int_equal(now(), PP_GPU_QUEUED);
	sync_context(1);
	assert_int_equal(now(), PP_GPU_DRAINED);
}

/* Its row has been another stream's. */
static void contexts__what_was_queued_before_in_a_further_one_is_not_known(void **state)
{
	(void)state;
	choose(0, CONTEXT);
	launch(0, STREAM);
	sync_context(0);
	assert_int_equal(now(), PP_GPU_DRAINED);
	cuda_stream_drop(GENERATION, STREAM);
	choose(1, OTHER_CONTEXT);
	launch(1, OTHER_STREAM);
	sync_stream(1, OTHER_STREAM);
	assert_int_equal(now(), PP_GPU_UNKNOWN);
	sync_context(1);
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
	as(0)->user = user;
}

static void user__has_a_part_of_the_processes(void **state)
{
	struct pp_user_share *share = share_of(1001);
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
	struct pp_user_share *share = share_of(1001);
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
	/* A process that is first seen meanwhile: its samples ask for its waits. */
	host->config.gpu_is_blind = 1;
	bpf_map_delete_elem(&gpu_processes, &tid);
	begin_stream(0, STREAM);
	assert_non_null(bpf_map_lookup_elem(&gpu_processes, &tid));
	assert_int_equal(now(), PP_GPU_UNKNOWN);
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
		CUDA_TEST(late__nothing_is_known_before_the_context_is_synchronised),
		CUDA_TEST(late__is_whole_when_the_agent_says_so),
		CUDA_TEST(late__thread_that_chooses_no_context_is_in_that_of_others),
		CUDA_TEST(late__thread_that_has_worked_and_chooses_was_somewhere_else),
		CUDA_TEST(contexts__are_synchronised_each_for_itself),
		CUDA_TEST(contexts__one_thread_may_use_several_in_a_round),
		CUDA_TEST(contexts__copies_do_not_tell_that_of_their_stream),
		CUDA_TEST(contexts__what_was_queued_before_in_a_further_one_is_not_known),
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
