/* SPDX-License-Identifier: BSD-2-Clause */
/* Incomplete stacks of processes that are gone: nothing can be added to what was walked.  Turns of
 * the users and their shares are the queue's (test_incomplete_queue.c). */
#include <cmocka.h>
#include <string.h>

#include "agent/stack_intake.h"
#include "base/clock.h"
#include "base/slice.h"
#include "drain/counts.h"
#include "drain/decode.h"
#include "drain/incomplete_queue.h"
#include "finish/user_unwind.h"

#define GENERATION 3U
#define WAIT_HASH 0x77ULL
#define QUEUE_BYTES (16U << 10)

static struct finisher finisher;
static struct counts counts;
static struct incomplete_counts incompletes;
static struct incomplete_queue *queue;
static struct process *known; /* what find_process() finds */
static unsigned int followed;
static uint64_t sent_again; /* the last hash; 0: none */
static uint32_t user;

static struct process *find_process(void *context, struct pp_process_id id)
{
	(void)context;
	assert_int_equal(id.generation, GENERATION);
	return known;
}

/* The process is gone when the side-band was read. */
static int follow_processes(void *context)
{
	(void)context;
	followed++;
	known = NULL;
	return 0;
}

static void send_again(void *context, uint64_t hash)
{
	(void)context;
	sent_again = hash;
}

/* Two native frames of a thread whose process nobody knows any more. */
static void queue_of(uint64_t user_stack, enum pp_stop stop, enum pp_py_stop py_stop)
{
	struct {
		struct pp_incomplete_record record;
		struct pp_frame native[2];
	} sent = {.native = {{.where = 0x1000, .what = 1}, {.where = 0x2000, .what = 1}}};
	struct decoded_incomplete incomplete;

	sent.record = (struct pp_incomplete_record){
		.record.size = sizeof(sent),
		.user = user,
		.key = {.user_stack = user_stack,
			.id = {.tgid = 0x7ffffffe, .generation = GENERATION},
			.tid = 0x7ffffffe,
			.flags = 0xffffU << PP_COUNT_STOP_SHIFT | PP_COUNT_GIL_HELD},
		.weight = 500,
		.native_stored = 2,
		.native_count = 2,
		.stop = (uint8_t)stop,
		.py_stop = (uint8_t)py_stop,
	};
	decoded_incomplete_set(&sent.record, &incomplete);
	incomplete_counts_on_record(&incompletes, &incomplete);
}

static void incomplete_of(uint64_t user_stack, enum pp_stop stop, enum pp_py_stop py_stop)
{
	queue_of(user_stack, stop, py_stop);
	assert_int_equal(incomplete_counts_step(&incompletes, NULL), 0);
}

static void incomplete_now(uint64_t user_stack)
{
	incomplete_of(user_stack, PP_STOP_NO_ROWS, PP_PY_STOP_NONE);
}

static int setup(void **state)
{
	(void)state;
	counts = (struct counts){};
	known = NULL;
	followed = 0;
	sent_again = 0;
	finisher = (struct finisher){.find_process = find_process,
				     .follow_processes = follow_processes,
				     .send_again = send_again};
	user = 1000;
	assert_int_equal(incomplete_queue_new(QUEUE_BYTES, &queue), 0);
	incompletes = (struct incomplete_counts){
		.finisher = &finisher, .counts = &counts, .queue = queue};
	return dictionary_new(1 << 20, &finisher.dictionary);
}

static int teardown(void **state)
{
	(void)state;
	counts_release(&counts);
	incomplete_queue_free(queue);
	dictionary_free(finisher.dictionary);
	return 0;
}

static void incomplete__of_a_sample_is_counted_under_what_it_holds(void **state)
{
	(void)state;
	incomplete_now(0);
	assert_int_equal(counts.count, 1);
	assert_int_equal(counts.entry[0].count.samples, 1);
	assert_int_equal(counts.entry[0].count.weight, 500);
	assert_non_null(dictionary_find_stack(finisher.dictionary, counts.entry[0].key.user_stack));
}

static void incomplete__of_a_wait_is_only_kept_under_its_hash(void **state)
{
	(void)state;
	incomplete_now(WAIT_HASH);
	assert_int_equal(counts.count, 0);
	assert_non_null(dictionary_find_stack(finisher.dictionary, WAIT_HASH));
	/* Another walk that ended elsewhere found the same stack: it is kept once. */
	incomplete_now(WAIT_HASH + 1);
	assert_ptr_equal(dictionary_find_stack(finisher.dictionary, WAIT_HASH + 1),
			 dictionary_find_stack(finisher.dictionary, WAIT_HASH));
}

static void incomplete__of_a_wait_that_is_torn_is_sent_again(void **state)
{
	(void)state;
	incomplete_of(WAIT_HASH, PP_STOP_TORN, PP_PY_STOP_NONE);
	assert_int_equal(sent_again, WAIT_HASH);
}

static void incomplete__of_a_wait_whose_python_frames_are_torn_is_sent_again(void **state)
{
	(void)state;
	incomplete_of(0, PP_STOP_NO_ROWS, PP_PY_STOP_TORN);
	assert_int_equal(sent_again, 0); /* a sample has no name that others share */
	incomplete_of(WAIT_HASH, PP_STOP_NO_ROWS, PP_PY_STOP_TORN);
	assert_int_equal(sent_again, WAIT_HASH);
}

static void incomplete__keeps_the_flags_and_gets_the_stop_of_the_whole_walk(void **state)
{
	(void)state;
	incomplete_now(0);
	/* Nobody can walk on: the stop remains. */
	assert_int_equal(counts.entry[0].key.flags >> PP_COUNT_STOP_SHIFT & 0xff, PP_STOP_NO_ROWS);
	assert_int_equal(counts.entry[0].key.flags >> PP_COUNT_PY_STOP_SHIFT & 0xff, 0);
	assert_int_equal(counts.entry[0].key.flags & PP_COUNT_GIL_HELD, PP_COUNT_GIL_HELD);
}

/* The first one is taken to cost half of a millisecond; a sixteenth of the mean is new. */
static void incomplete__changes_the_mean_cost_slowly(void **state)
{
	(void)state;
	incomplete_now(0);
	assert_true(incompletes.mean_ns >= 500000 - 500000 / 16);
	incompletes.mean_ns = 1ULL << 50;
	incomplete_now(0);
	/* Thirteen days become a sixteenth less, as this one took less than a minute. */
	assert_in_range(incompletes.mean_ns, 15ULL << 46, (15ULL << 46) + (60 * NS_PER_SEC >> 4));
}

static void incomplete__without_a_mapping_reads_the_side_band_first(void **state)
{
	static struct process process = {.id = {.tgid = 0x7ffffffe, .generation = GENERATION}};

	(void)state;
	incomplete_of(0, PP_STOP_NO_MAPPING, PP_PY_STOP_NONE);
	assert_int_equal(followed, 0); /* nobody knows the process */
	known = &process;
	incomplete_of(0, PP_STOP_NO_MAPPING, PP_PY_STOP_NONE);
	assert_int_equal(followed, 1);
	known = &process;
	incomplete_of(0, PP_STOP_NO_IMAGE, PP_PY_STOP_NONE);
	assert_int_equal(followed, 2);
}

/* The ring is free again before anything is completed. */
static void incomplete__waits_in_the_queue_until_its_turn(void **state)
{
	struct slice over = {};

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		queue_of(0, PP_STOP_NO_ROWS, PP_PY_STOP_NONE);
	assert_int_equal(counts.count, 0);
	/* One at least. */
	assert_int_equal(incomplete_counts_step(&incompletes, &over), 1);
	assert_int_equal(counts.entry[0].count.samples, 1);
	assert_int_equal(incomplete_counts_step(&incompletes, &over), 1);
	assert_int_equal(incomplete_counts_step(&incompletes, &over), 0);
	assert_int_equal(counts.entry[0].count.samples, 3);
	assert_int_equal(incomplete_counts_step(&incompletes, &over), 0);
}

/* Beyond the user's share: counted at once, with what was walked, and why there is no more. */
static void incomplete__beyond_its_users_share_is_counted_and_says_so(void **state)
{
	const struct dict_stack *stack;
	unsigned int queued = 0;

	(void)state;
	while (!counts.count) {
		queue_of(0, PP_STOP_NO_ROWS, PP_PY_STOP_NONE);
		queued++;
	}
	assert_true(queued > 4);
	assert_int_equal(incomplete_queue_quota(queue)->refused, 1);
	assert_int_equal(counts.entry[0].key.flags >> PP_COUNT_STOP_SHIFT & 0xff, PP_STOP_LEFT_OUT);
	assert_int_equal(counts.entry[0].count.weight, 500);
	stack = dictionary_find_stack(finisher.dictionary, counts.entry[0].key.user_stack);
	assert_non_null(stack);
	assert_int_equal(stack->native_count, 2);
	assert_int_equal(stack->stop, PP_STOP_LEFT_OUT);
	/* A wait's next walk is sent again. */
	queue_of(WAIT_HASH, PP_STOP_NO_ROWS, PP_PY_STOP_NONE);
	assert_int_equal(sent_again, WAIT_HASH);
	/* Another user has his own. */
	user = 1001;
	queue_of(0, PP_STOP_NO_ROWS, PP_PY_STOP_NONE);
	assert_int_equal(incomplete_queue_quota(queue)->refused, 2);
	assert_int_equal(incomplete_counts_step(&incompletes, NULL), 0);
	/* What was left out is not what the same frames of a completed walk are. */
	assert_int_equal(counts.count, 2);
	assert_int_equal(counts.entry[1].count.samples, queued);
	assert_int_equal(counts.entry[1].key.flags >> PP_COUNT_STOP_SHIFT & 0xff, PP_STOP_NO_ROWS);
	stack = dictionary_find_stack(finisher.dictionary, counts.entry[1].key.user_stack);
	assert_int_equal(stack->stop, PP_STOP_NO_ROWS);
}

static void incomplete__at_the_end_of_the_run_is_counted_as_it_came(void **state)
{
	struct slice over = {};

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		queue_of(0, PP_STOP_NO_ROWS, PP_PY_STOP_NONE);
	assert_int_equal(incomplete_counts_step(&incompletes, &over), 1);
	incomplete_counts_leave_out(&incompletes);
	assert_true(incomplete_queue_is_empty(queue));
	assert_int_equal(incompletes.left_out, 3);
	assert_int_equal(counts.count, 2);
	assert_int_equal(counts.entry[1].count.samples, 3);
	assert_int_equal(counts.entry[1].key.flags >> PP_COUNT_STOP_SHIFT & 0xff, PP_STOP_LEFT_OUT);
	incomplete_counts_leave_out(&incompletes);
	assert_int_equal(incompletes.left_out, 3);
}

static void queue_limit__grows_with_cpus_within_the_budget(void **state)
{
	(void)state;
	assert_int_equal(incomplete_queue_limit(0, 2), 6 << 20);
	assert_int_equal(incomplete_queue_limit(0, 240), 32 << 20);
	assert_int_equal(incomplete_queue_limit(64 << 20, 2), 4 << 20);
	assert_int_equal(incomplete_queue_limit(1 << 30, 2), 6 << 20);
}

/* Half of a millisecond is assumed for a walk, and 30 % of the time may be spent: 600 in a
 * second. */
static void tokens__are_what_samples_need_as_long_as_that_can_be_paid(void **state)
{
	(void)state;
	/* 100 samples a second, a quarter more as ticks may be late, and 48 for bursts; twice, as
	 * one user may take half. */
	assert_int_equal(incomplete_counts_tokens(&incompletes, 100, NS_PER_SEC), 2 * (125 + 48));
	assert_int_equal(incomplete_counts_tokens(&incompletes, 40, NS_PER_SEC / 4),
			 2 * (10 + 2 + 48));
	assert_int_equal(incomplete_counts_tokens(&incompletes, 100000, NS_PER_SEC), 2 * 600);
	incompletes.mean_ns = 3000000; /* 3 ms */
	assert_int_equal(incomplete_counts_tokens(&incompletes, 100000, NS_PER_SEC), 2 * 100);
	incompletes.mean_ns = 300000000;
	assert_int_equal(incomplete_counts_tokens(&incompletes, 100000, NS_PER_SEC), 2 * 48);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			incomplete__of_a_sample_is_counted_under_what_it_holds, setup, teardown),
		cmocka_unit_test_setup_teardown(incomplete__of_a_wait_is_only_kept_under_its_hash,
						setup, teardown),
		cmocka_unit_test_setup_teardown(incomplete__of_a_wait_that_is_torn_is_sent_again,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			incomplete__of_a_wait_whose_python_frames_are_torn_is_sent_again, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			incomplete__keeps_the_flags_and_gets_the_stop_of_the_whole_walk, setup,
			teardown),
		cmocka_unit_test_setup_teardown(incomplete__changes_the_mean_cost_slowly, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			incomplete__without_a_mapping_reads_the_side_band_first, setup, teardown),
		cmocka_unit_test_setup_teardown(incomplete__waits_in_the_queue_until_its_turn,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			incomplete__at_the_end_of_the_run_is_counted_as_it_came, setup, teardown),
		cmocka_unit_test_setup_teardown(
			incomplete__beyond_its_users_share_is_counted_and_says_so, setup, teardown),
		cmocka_unit_test_setup_teardown(queue_limit__grows_with_cpus_within_the_budget,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			tokens__are_what_samples_need_as_long_as_that_can_be_paid, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
