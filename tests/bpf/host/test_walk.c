/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/walk.bpf.h: the memory of a walk, kernel stacks, and what the agent is to finish;
 * bpf/lib/walk.bpf.h: when a walk reads the clock and when its time is over. */
#define HOST_WHOLE_PROGRAM
#include "host.h"

/* ---- the clock ---- */

#define NOW_NS 5000000ULL

static struct pp_walk *started(uint64_t limit_ns)
{
	walk_clock_start(&host->walk, NOW_NS, limit_ns);
	return &host->walk;
}

/* Up to 40 us is the limit of a switch, whose steps are watched more closely. */
static void walk_clock__short_limit_is_urgent(void **state)
{
	(void)state;
	host->walk.steps = 9;
	started(40000);
	assert_int_equal(host->walk.is_urgent, 1);
	assert_int_equal(host->walk.steps, 0);
	assert_int_equal(host->walk.deadline_ns, NOW_NS + 40000);
	started(40001);
	assert_int_equal(host->walk.is_urgent, 0);
	assert_int_equal(host->walk.deadline_ns, NOW_NS + 40001);
}

static void walk_clock__each_32nd_step_reads_it(void **state)
{
	struct pp_walk *w = started(100000);

	(void)state;
	host->now_ns = NOW_NS + 100000; /* the time is over: who reads the clock sees that */
	for (uint32_t step = 1; step <= 96; step++) {
		assert_int_equal(walk_clock_is_due(w), step % 32 == 0);
		assert_int_equal(walk_clock_step(w), step % 32 == 0);
		assert_int_equal(w->steps, step);
	}
}

static void walk_clock__time_is_over_at_the_deadline(void **state)
{
	struct pp_walk *w = started(100000);

	(void)state;
	w->steps = 31;
	host->now_ns = NOW_NS + 99999;
	assert_false(walk_clock_step(w));
	w->steps = 31;
	host->now_ns = NOW_NS + 100000;
	assert_true(walk_clock_step(w));
}

/* A hurried step makes the next one read the clock, from wherever the count was. */
static void walk_clock__hurry_makes_the_next_step_read_it(void **state)
{
	struct pp_walk *w = started(100000);

	(void)state;
	for (uint32_t steps = 0; steps < 64; steps++) {
		w->steps = steps;
		walk_clock_hurry(w);
		assert_true(walk_clock_is_due(w));
		assert_int_equal(w->steps, steps < 32 ? 31 : 63);
	}
}

static void walk_clock__grant_puts_the_reading_off_by_16_steps(void **state)
{
	struct pp_walk *w = started(40000);
	uint32_t steps = 0;

	(void)state;
	w->steps = 31;
	walk_clock_grant(w);
	assert_int_equal(w->is_urgent, 0);
	host->now_ns = NOW_NS + 40000;
	do
		steps++;
	while (!walk_clock_step(w));
	assert_int_equal(steps, 16);
}

/* Steps from one reading to the next at `left_ns` before the deadline. */
static uint32_t steps_between(uint64_t limit_ns, uint64_t left_ns)
{
	struct pp_walk *w = started(limit_ns);
	uint32_t steps = 0;

	w->steps = 31;
	host->now_ns = NOW_NS + limit_ns - left_ns;
	assert_false(walk_clock_step(w));
	host->now_ns = NOW_NS + limit_ns;
	do
		steps++;
	while (!walk_clock_step(w));
	return steps;
}

/* Of an urgent walk each 16th step reads it, and in its last 8 us each. */
static void walk_clock__urgent_walks_read_it_more_often(void **state)
{
	(void)state;
	assert_int_equal(steps_between(40001, 1), 32);
	assert_int_equal(steps_between(40001, 40000), 32);
	assert_int_equal(steps_between(40000, 8001), 16);
	assert_int_equal(steps_between(40000, 8000), 1);
	assert_int_equal(steps_between(40000, 1), 1);
}

/* ---- what the agent finishes ---- */

static void is_incomplete__tells_what_the_agent_can_finish(void **state)
{
	struct pp_walk *w = &host->walk;

	(void)state;
	for (uint32_t stop = 0; stop < PP_STOP_COUNT; stop++) {
		const bool wanted = stop == PP_STOP_NO_ROWS || stop == PP_STOP_NO_MAPPING ||
				    stop == PP_STOP_NO_IMAGE || stop == PP_STOP_MAX_TIME;

		w->stop = stop;
		w->id.generation = 3;
		w->py_stop = PP_PY_STOP_ROOT;
		assert_int_equal(is_incomplete(w), wanted);
		w->is_resumable = 1;
		assert_true(is_incomplete(w));
		w->is_resumable = 0;
		w->py_stop = PP_PY_STOP_MAX_TIME;
		assert_true(is_incomplete(w));
		/* The process is not known, or is about to end. */
		w->id.generation = 0;
		assert_false(is_incomplete(w));
	}
}

/* ---- memory ---- */

static void scratch__cpu_without_walks_gets_none(void **state)
{
	struct scratch taken = {};

	(void)state;
	host->cpu_place = 0;
	scratch_enter(&taken);
	assert_null(taken.walk);
	assert_int_equal(host->scratch_claims.is_taken[SCRATCH_INTERRUPT], 0);
	assert_int_equal(host->losses[PP_LOSS_NO_SCRATCH], 1);
	host->cpu_place = 1;
	scratch_enter(&taken);
	assert_ptr_equal(taken.walk, &host->walk);
	scratch_leave(&taken);
	assert_int_equal(host->losses[PP_LOSS_NO_SCRATCH], 1);
}

/* A CPU has one walk for each level: the second CPU's begin behind those of the first. */
static void scratch__slots_are_the_cpus_own(void **state)
{
	struct scratch taken = {};

	(void)state;
	scratch_levels = 3;
	host->cpu_place = 2;
	/* The one walk of the host is not theirs. */
	scratch_enter(&taken);
	assert_int_equal(taken.slot, 3);
	assert_null(taken.walk);
	host->scratch_claims.is_taken[SCRATCH_INTERRUPT] = 1;
	scratch_enter(&taken);
	assert_int_equal(taken.slot, 4);
	assert_int_equal(host->losses[PP_LOSS_NO_SCRATCH], 2);
	assert_int_equal(host->scratch_claims.is_taken[SCRATCH_NMI], 0);
}

static void walk_reset__clears_what_the_walk_before_left(void **state)
{
	struct pp_walk *w = &host->walk;

	(void)state;
	memset(w, 0xa5, sizeof(*w));
	walk_reset(w, 77, NOW_NS, 100000);
	assert_int_equal(w->weight, 77);
	assert_int_equal(w->started_ns, NOW_NS);
	assert_int_equal(w->deadline_ns, NOW_NS + 100000);
	assert_int_equal(w->kind, PP_KIND_CPU);
	assert_int_equal(w->stop, PP_STOP_NONE);
	assert_int_equal(w->py_stop, PP_PY_STOP_NONE);
	assert_int_equal(w->count_flags, 0);
	assert_int_equal(w->hash, 0);
	assert_int_equal(w->kernel_hash, 0);
	assert_int_equal(w->kernel_bytes, 0);
	assert_int_equal(w->detail, 0);
	assert_int_equal(w->has_user, 0);
	assert_int_equal(w->is_resumable, 0);
	assert_int_equal(w->is_modest, 0);
	assert_int_equal(w->by_frame_pointer, 0);
	assert_int_equal(w->native_stored, 0);
	assert_int_equal(w->native_count, 0);
	assert_int_equal(w->since_segment, 0);
	assert_int_equal(w->foldable, 0);
	assert_int_equal(w->thread_state, 0);
	assert_int_equal(w->python_frame, 0);
	assert_int_equal(w->cframe, 0);
	assert_int_equal(w->python_stored, 0);
	assert_int_equal(w->python_count, 0);
	assert_int_equal(w->segment_frames, 0);
	assert_int_equal(w->segment_count, 0);
	assert_int_equal(w->segment_next, 0);
	assert_int_equal(w->steps, 0);
	assert_int_equal(w->window_bytes, 0);
}

/* ---- kernel stacks ---- */

static uint64_t kernel_hash(uint32_t frames, uint64_t first, uint64_t second)
{
	struct pp_walk *w = &host->walk;

	walk_reset(w, 1, NOW_NS, 100000);
	host->kernel_frames = frames;
	host->kernel_stack[0] = first;
	host->kernel_stack[1] = second;
	take_kernel_stack(w, 0, NULL);
	assert_int_equal(w->kernel_bytes, 8 * frames);
	return w->kernel_hash;
}

static void kernel_stack__has_a_hash_of_its_own(void **state)
{
	const uint64_t hash = kernel_hash(2, 0x100, 0x200);

	(void)state;
	assert_int_equal(kernel_hash(0, 0x100, 0x200), 0);
	assert_int_not_equal(hash, 0);
	assert_int_equal(host->walk.kernel.address[0], 0x100);
	assert_int_equal(kernel_hash(2, 0x100, 0x200), hash);
	assert_int_not_equal(kernel_hash(1, 0x100, 0x200), hash);
	assert_int_not_equal(kernel_hash(2, 0x200, 0x100), hash);
	assert_int_not_equal(kernel_hash(2, 0x100, 0x208), hash);
	assert_int_not_equal(kernel_hash(2, 0x108, 0x200), hash);
}

/* As many frames as there is room for; of a deeper stack the innermost. */
static void kernel_stack__is_kept_whole(void **state)
{
	(void)state;
	for (uint32_t frames = PP_MAX_KERNEL_FRAMES; frames <= PP_MAX_KERNEL_FRAMES + 1; frames++) {
		for (uint32_t i = 0; i < frames; i++)
			host->kernel_stack[i] = 0xffffffff81000000 + i;
		host->kernel_frames = frames;
		walk_reset(&host->walk, 1, 0, 1);
		take_kernel_stack(&host->walk, 0, NULL);
		assert_int_equal(host->walk.kernel_bytes, PP_MAX_KERNEL_FRAMES * 8);
		for (uint32_t i = 0; i < PP_MAX_KERNEL_FRAMES; i++)
			assert_int_equal(host->walk.kernel.address[i], 0xffffffff81000000 + i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(walk_clock__short_limit_is_urgent),
		host_test(walk_clock__each_32nd_step_reads_it),
		host_test(walk_clock__time_is_over_at_the_deadline),
		host_test(walk_clock__hurry_makes_the_next_step_read_it),
		host_test(walk_clock__grant_puts_the_reading_off_by_16_steps),
		host_test(walk_clock__urgent_walks_read_it_more_often),
		host_test(is_incomplete__tells_what_the_agent_can_finish),
		host_test(scratch__cpu_without_walks_gets_none),
		host_test(scratch__slots_are_the_cpus_own),
		host_test(walk_reset__clears_what_the_walk_before_left),
		host_test(kernel_stack__has_a_hash_of_its_own),
		host_test(kernel_stack__is_kept_whole),
	};

	return cmocka_run_group_tests_name("bpf/walk", tests, NULL, NULL);
}
