/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/cuda_launchers.bpf.h, cuda_streams.bpf.h: several threads that launch and synchronise. */
#include "cuda.h"

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

static void threads__that_have_ended_make_room(void **state)
{
	(void)state;
	is_whole();
	for (uint32_t i = 0; i < CUDA_LAUNCHERS; i++) {
		launch(i, STREAM);
		sync_stream(i, STREAM);
	}
	for (uint32_t i = 1; i < CUDA_LAUNCHERS; i++)
		caller(i)->task.flags = PF_EXITING;
	for (uint32_t i = CUDA_LAUNCHERS; i < CUDA_LAUNCHERS + 4; i++)
		launch(i, STREAM);
	sync_stream(0, STREAM);
	assert_int_equal(now(), PP_GPU_DRAINED);
}

static void thread__that_gets_the_id_of_an_ended_one_has_chosen_nothing(void **state)
{
	const uint64_t id = (uint64_t)TGID << 32 | TGID;
	const uint32_t tgid = TGID, generation = GENERATION;

	(void)state;
	bpf_map_update_elem(&processes, &tgid, &generation, BPF_ANY);
	callers[0].task.start_time = as(0)->began_ns = 1000;
	choose(0, CONTEXT);
	cuda_thread_note(id);
	assert_int_equal(as(0)->generation, GENERATION);
	assert_int_equal(as(0)->context, CONTEXT);
	callers[0].task.start_time = 2000;
	cuda_thread_note(id);
	assert_int_equal(as(0)->context, 0);
}

/* As after a time in which launches were not probed: cuda_side_see(). */
static void threads__are_listed_again_when_states_begin_anew(void **state)
{
	(void)state;
	is_whole();
	launch(1, STREAM);
	assert_true(as(1)->launcher);
	cuda.process[0].is_taken = false;
	host->config.gpu_sight++;
	as(1)->round = 0;
	launch(1, STREAM);
	caller(1)->task.on_cpu = 1;
	sync_context(0);
	assert_int_equal(now(), PP_GPU_QUEUED);
	/* Nor are they listed twice when the table of threads has lost them. */
	as(1)->launcher = 0;
	launch(1, OTHER_STREAM);
	assert_int_equal(streams()->launcher[1], 0);
}

/* Who begins a round after this thread has read it looks at what it launches where. */
static void launch__tells_its_stream_before_it_reads_the_round(void **state)
{
	(void)state;
	is_whole();
	launch(1, STREAM);
	launch(1, OTHER_STREAM);
	assert_int_equal(cuda.stream_then, OTHER_STREAM);
	assert_int_equal(cuda.round_then, 0);
}

static void rounds__never_go_back(void **state)
{
	const uint32_t tgid = TGID;
	struct pp_gpu_process *process;

	(void)state;
	is_whole();
	launch(0, STREAM);
	process = bpf_map_lookup_elem(&gpu_processes, &tgid);
	cuda_row_mark(streams(), process, 0, 9, false);
	cuda_row_mark(streams(), process, 0, 8, false); /* it comes late */
	assert_int_equal(streams()->stream[0].marked, 9);
	assert_int_equal(process->marked, 9);
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

int main(void)
{
#define CUDA_TEST(test) cmocka_unit_test_setup_teardown(test, setup, host_teardown)
	const struct CMUnitTest tests[] = {
		CUDA_TEST(launch__of_another_thread_during_a_synchronisation_stays),
		CUDA_TEST(launch__under_way_in_another_thread_is_not_waited_for),
		CUDA_TEST(launch__has_returned_when_its_thread_calls_again_or_has_left_its_frame),
		CUDA_TEST(thread__that_ends_or_is_forgotten_is_not_waited_for_forever),
		CUDA_TEST(threads__beyond_those_that_are_kept_make_nothing_known),
		CUDA_TEST(threads__that_have_ended_make_room),
		CUDA_TEST(thread__that_gets_the_id_of_an_ended_one_has_chosen_nothing),
		CUDA_TEST(threads__are_listed_again_when_states_begin_anew),
		CUDA_TEST(launch__tells_its_stream_before_it_reads_the_round),
		CUDA_TEST(rounds__never_go_back),
		CUDA_TEST(rows__that_another_thread_takes_are_left_to_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
