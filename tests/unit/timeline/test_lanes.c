/* SPDX-License-Identifier: BSD-2-Clause */
#include "timeline/lanes.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "recorder.h"

#define TID 7U
#define MS 1000000ULL

struct bench {
	struct intern *strings;
	struct recorder recorder;
	struct lanes *lanes;
	const char *thread_name;
};

static void find_names(void *context, struct pp_process_id id, uint32_t tid,
		       const char **ret_process_name, const char **ret_thread_name)
{
	struct bench *bench = context;

	(void)id;
	(void)tid;
	*ret_process_name = "python3";
	*ret_thread_name = bench->thread_name;
}

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	struct lanes_names names = {.context = bench, .find = find_names};
	struct trace_sink sink;

	assert_non_null(bench);
	bench->thread_name = "";
	assert_int_equal(intern_new(&bench->strings), 0);
	bench->recorder.strings = bench->strings;
	sink = recorder_sink(&bench->recorder);
	assert_int_equal(lanes_new(bench->strings, &sink, &names, &bench->lanes), 0);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	lanes_free(bench->lanes);
	intern_free(bench->strings);
	free(bench);
	return 0;
}

static uint32_t id_of(struct bench *bench, const char *text)
{
	uint32_t id;

	assert_int_equal(intern_string(bench->strings, text, &id), 0);
	return id;
}

/* One switch cycle of thread 7; the stack's text is its function's name. */
struct cycle {
	uint64_t run, leave, woken, back;
	enum pp_wait wait;
	uint8_t flags;
	const char *function;
};

static void add(struct bench *bench, const struct cycle *cycle)
{
	const struct pp_timeline_record record = {.record = {.type = PP_TIMELINE_SWITCH,
							     .size = sizeof(record)},
						  .id = {.tgid = 5, .generation = 1},
						  .tid = TID,
						  .wait = cycle->wait,
						  .flags = cycle->flags,
						  .run_ns = cycle->run,
						  .leave_ns = cycle->leave,
						  .woken_ns = cycle->woken,
						  .back_ns = cycle->back};
	struct lanes_event event = {.record = &record, .is_python = true};

	if (cycle->function)
		event.function = event.stack = id_of(bench, cycle->function);
	assert_int_equal(lanes_add(bench->lanes, &event), 0);
}

static void add_sample(struct bench *bench, uint64_t ns, const char *function, uint8_t flags)
{
	const struct pp_timeline_record record = {.record = {.type = PP_TIMELINE_SAMPLE,
							     .size = sizeof(record)},
						  .id = {.tgid = 5, .generation = 1},
						  .tid = TID,
						  .flags = flags,
						  .leave_ns = ns};
	struct lanes_event event = {.record = &record, .is_python = true};

	event.function = event.stack = id_of(bench, function);
	assert_int_equal(lanes_add(bench->lanes, &event), 0);
}

static void add_exit(struct bench *bench, uint64_t run, uint64_t leave)
{
	const struct pp_timeline_record record = {.record = {.type = PP_TIMELINE_LAST,
							     .size = sizeof(record)},
						  .id = {.tgid = 5, .generation = 1},
						  .tid = TID,
						  .run_ns = run,
						  .leave_ns = leave,
						  .woken_ns = leave,
						  .back_ns = leave};
	const struct lanes_event event = {.record = &record};

	assert_int_equal(lanes_add(bench->lanes, &event), 0);
}

/* Ends the timeline; the lines of one lane must be these. */
static void expect(struct bench *bench, const char *lane, const char *expected)
{
	char got[sizeof(bench->recorder.text)] = "", text[sizeof(got)], word[16];
	char *line, *rest = text;

	memcpy(text, bench->recorder.text, sizeof(text));
	snprintf(word, sizeof(word), "7 %s ", lane);
	while ((line = strsep(&rest, "\n")))
		if (!strncmp(line, word, strlen(word))) {
			strcat(got, line + strlen(word));
			strcat(got, "\n");
		}
	assert_string_equal(got, expected);
}

enum {
	KNOWN = PP_TIMELINE_GIL,
	HELD = KNOWN | PP_TIMELINE_GIL_HELD,
	LAST = KNOWN | PP_TIMELINE_GIL_LAST
};

static void lanes__cycle_is_a_run_a_wait_and_the_run_queue(void **state)
{
	add(*state, &(struct cycle){10, 20, 50, 53, PP_WAIT_SLEEP, 0, "nap"});
	add(*state, &(struct cycle){53, 60, 60, 70, PP_WAIT_RUN_QUEUE, 0, "work"});
	assert_int_equal(lanes_end(((struct bench *)*state)->lanes), 0);
	expect(*state, "cpu",
	       "10-20 on CPU\n20-50 sleep\n50-53 run queue\n53-60 on CPU\n60-70 run queue\n");
}

static void lanes__function_goes_on_while_it_is_the_same(void **state)
{
	add(*state, &(struct cycle){10, 20, 50, 53, PP_WAIT_SLEEP, 0, "nap"});
	add(*state, &(struct cycle){53, 60, 70, 70, PP_WAIT_SLEEP, 0, "nap"});
	add(*state, &(struct cycle){70, 80, 90, 90, PP_WAIT_LOCK, 0, "wait"});
	assert_int_equal(lanes_end(((struct bench *)*state)->lanes), 0);
	expect(*state, "function", "10-70 nap\n70-90 wait\n");
}

static void lanes__samples_divide_a_run_and_are_instants(void **state)
{
	add(*state, &(struct cycle){10, 20, 30, 30, PP_WAIT_SLEEP, 0, "nap"});
	add_sample(*state, 40, "a", 0);
	add_sample(*state, 50, "a", 0);
	add_sample(*state, 60, "b", 0);
	add(*state, &(struct cycle){30, 70, 80, 80, PP_WAIT_SLEEP, 0, "nap"});
	assert_int_equal(lanes_end(((struct bench *)*state)->lanes), 0);
	expect(*state, "function", "10-30 nap\n30-50 a\n50-60 b\n60-80 nap\n");
	expect(*state, "sample", "40-40 a\n50-50 a\n60-60 b\n");
}

static void lanes__sample_outside_of_the_run_divides_nothing(void **state)
{
	add_sample(*state, 5, "lost", HELD);
	add_sample(*state, 90, "early", HELD);
	add(*state, &(struct cycle){10, 20, 30, 30, PP_WAIT_SLEEP, KNOWN, "nap"});
	assert_int_equal(lanes_end(((struct bench *)*state)->lanes), 0);
	expect(*state, "function", "10-30 nap\n");
	expect(*state, "gil", "");
}

static void lanes__unknown_stack_leaves_a_hole(void **state)
{
	add(*state, &(struct cycle){10, 20, 30, 30, PP_WAIT_SLEEP, 0, "nap"});
	add(*state, &(struct cycle){30, 40, 50, 50, PP_WAIT_SLEEP, 0, NULL});
	add(*state, &(struct cycle){50, 60, 70, 70, PP_WAIT_SLEEP, 0, "nap"});
	assert_int_equal(lanes_end(((struct bench *)*state)->lanes), 0);
	expect(*state, "function", "10-30 nap\n50-70 nap\n");
}

static void gil__held_at_both_ends_is_held_between(void **state)
{
	add(*state, &(struct cycle){10, 20, 20, 30, PP_WAIT_RUN_QUEUE, HELD, "f"});
	add(*state, &(struct cycle){30, 40, 40, 50, PP_WAIT_RUN_QUEUE, HELD, "f"});
	assert_int_equal(lanes_end(((struct bench *)*state)->lanes), 0);
	expect(*state, "gil", "10-50 Holding GIL\n");
}

static void gil__retries_are_one_wait_and_end_with_the_gil(void **state)
{
	uint64_t at = MS;

	add(*state,
	    &(struct cycle){at - 10, at, at + 5 * MS, at + 5 * MS, PP_WAIT_GIL, KNOWN, "f"});
	at += 5 * MS;
	add(*state,
	    &(struct cycle){at, at + 9000, at + 4 * MS, at + 4 * MS, PP_WAIT_GIL, KNOWN, "f"});
	at += 4 * MS;
	add(*state,
	    &(struct cycle){at, at + MS, at + 2 * MS, at + 2 * MS, PP_WAIT_GIL, KNOWN, "f"});
	assert_int_equal(lanes_end(((struct bench *)*state)->lanes), 0);
	expect(*state, "gil",
	       "1000000-10000000 Waiting for GIL\n10000000-11000000 Holding GIL\n"
	       "11000000-12000000 Waiting for GIL\n");
}

static void gil__let_go_before_a_wait_was_held_up_to_it(void **state)
{
	add(*state, &(struct cycle){10, 20, 20, 30, PP_WAIT_RUN_QUEUE, HELD, "f"});
	add(*state, &(struct cycle){30, 40, 90, 95, PP_WAIT_SLEEP, KNOWN, "f"});
	assert_int_equal(lanes_end(((struct bench *)*state)->lanes), 0);
	expect(*state, "gil", "10-40 Holding GIL\n");
}

static void gil__short_python_between_two_waits_is_inferred(void **state)
{
	add(*state, &(struct cycle){10, 20, 30, 30, PP_WAIT_SLEEP, KNOWN, "f"});
	add(*state, &(struct cycle){30, 40, 50, 50, PP_WAIT_SLEEP, LAST, "f"});	 /* had it last */
	add(*state, &(struct cycle){50, 60, 70, 70, PP_WAIT_SLEEP, KNOWN, "g"}); /* moved */
	add(*state, &(struct cycle){70, 80, 90, 90, PP_WAIT_SLEEP, KNOWN, "g"}); /* no sign */
	assert_int_equal(lanes_end(((struct bench *)*state)->lanes), 0);
	expect(*state, "gil", "30-40 Holding GIL\n50-60 Holding GIL\n");
}

static void gil__not_held_when_preempted_is_not_held_before(void **state)
{
	add(*state, &(struct cycle){10, 20, 30, 30, PP_WAIT_SLEEP, KNOWN, "f"});
	add(*state, &(struct cycle){30, 40, 40, 50, PP_WAIT_RUN_QUEUE, KNOWN, "g"});
	add(*state, &(struct cycle){50, 60, 60, 70, PP_WAIT_RUN_QUEUE, KNOWN, "h"});
	assert_int_equal(lanes_end(((struct bench *)*state)->lanes), 0);
	expect(*state, "gil", "");
}

static void gil__samples_tell_when_it_changed(void **state)
{
	add(*state, &(struct cycle){10, 20, 20, 30, PP_WAIT_RUN_QUEUE, HELD, "f"});
	add_sample(*state, 40, "f", HELD);
	add_sample(*state, 60, "hash", KNOWN);
	add_sample(*state, 80, "hash", KNOWN);
	add(*state, &(struct cycle){30, 90, 90, 100, PP_WAIT_RUN_QUEUE, HELD, "f"});
	assert_int_equal(lanes_end(((struct bench *)*state)->lanes), 0);
	expect(*state, "gil", "10-50 Holding GIL\n85-100 Holding GIL\n");
}

static void gil__record_that_was_lost_tells_nothing(void **state)
{
	add(*state, &(struct cycle){10, 20, 20, 30, PP_WAIT_GIL, KNOWN, "f"});
	/* 30 to 60 is missing: what came before is not the state at its start. */
	add(*state, &(struct cycle){60, 70, 80, 80, PP_WAIT_SLEEP, 0, "g"});
	assert_int_equal(lanes_end(((struct bench *)*state)->lanes), 0);
	expect(*state, "gil", "20-30 Waiting for GIL\n");
}

static void lanes__thread_that_exits_is_closed_and_forgotten(void **state)
{
	struct bench *bench = *state;

	add(bench, &(struct cycle){10, 20, 30, 30, PP_WAIT_SLEEP, 0, "nap"});
	add_exit(bench, 30, 40);
	expect(bench, "function", "10-30 nap\n");
	expect(bench, "cpu", "10-20 on CPU\n20-30 sleep\n30-40 on CPU\n");
	/* The number comes again: another thread, which is told of. */
	add(bench, &(struct cycle){50, 60, 70, 70, PP_WAIT_SLEEP, 0, "nap"});
	assert_int_equal(bench->recorder.threads, 2);
}

static void lanes__name_that_came_late_is_told_at_the_end(void **state)
{
	struct bench *bench = *state;

	add(bench, &(struct cycle){10, 20, 30, 30, PP_WAIT_SLEEP, 0, "nap"});
	bench->thread_name = "worker";
	add(bench, &(struct cycle){30, 40, 50, 50, PP_WAIT_SLEEP, 0, "nap"});
	assert_int_equal(bench->recorder.threads, 1);
	assert_int_equal(lanes_end(bench->lanes), 0);
	assert_int_equal(bench->recorder.threads, 2);
}

static void lanes__many_samples_of_one_run_are_thinned_out(void **state)
{
	struct bench *bench = *state;

	for (uint64_t i = 0; i < 100 * LANES_MAX_MARKS; i++)
		add_sample(bench, 11 + i, "f", HELD);
	bench->recorder.text[0] = '\0';
	bench->recorder.used = 0;
	add(bench, &(struct cycle){10, 1000000, 1000000, 1000001, PP_WAIT_RUN_QUEUE, HELD, "f"});
	assert_int_equal(lanes_end(bench->lanes), 0);
	expect(bench, "gil", "10-1000001 Holding GIL\n");
	expect(bench, "function", "10-1000001 f\n");
}

static void lanes__full_sink_is_told(void **state)
{
	struct bench *bench = *state;
	const struct pp_timeline_record record = {.record = {.type = PP_TIMELINE_SWITCH,
							     .size = sizeof(record)},
						  .tid = TID,
						  .run_ns = 1,
						  .leave_ns = 2,
						  .woken_ns = 3,
						  .back_ns = 3};
	const struct lanes_event event = {.record = &record};

	bench->recorder.slices_left = 1;
	assert_int_equal(lanes_add(bench->lanes, &event), -EFBIG);
}

#define LANES_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LANES_TEST(lanes__cycle_is_a_run_a_wait_and_the_run_queue),
		LANES_TEST(lanes__function_goes_on_while_it_is_the_same),
		LANES_TEST(lanes__samples_divide_a_run_and_are_instants),
		LANES_TEST(lanes__sample_outside_of_the_run_divides_nothing),
		LANES_TEST(lanes__unknown_stack_leaves_a_hole),
		LANES_TEST(gil__held_at_both_ends_is_held_between),
		LANES_TEST(gil__retries_are_one_wait_and_end_with_the_gil),
		LANES_TEST(gil__let_go_before_a_wait_was_held_up_to_it),
		LANES_TEST(gil__short_python_between_two_waits_is_inferred),
		LANES_TEST(gil__not_held_when_preempted_is_not_held_before),
		LANES_TEST(gil__samples_tell_when_it_changed),
		LANES_TEST(gil__record_that_was_lost_tells_nothing),
		LANES_TEST(lanes__thread_that_exits_is_closed_and_forgotten),
		LANES_TEST(lanes__name_that_came_late_is_told_at_the_end),
		LANES_TEST(lanes__many_samples_of_one_run_are_thinned_out),
		LANES_TEST(lanes__full_sink_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
