/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/switch_thread.bpf.c: what a thread did between two switch-ins, as a record. */
#include "switch.h"

#include "drain/decode.h"

static int timeline_setup(void **state)
{
	timeline_is_on = true;
	return switch_setup(state);
}

static int timeline_teardown(void **state)
{
	timeline_is_on = false;
	return switch_teardown(state);
}

static void on_timeline(void *context, const struct pp_timeline_record *record)
{
	*(struct pp_timeline_record *)context = *record;
}

/* The n-th record of the ring; all of them decode. */
static struct pp_timeline_record timeline_at(uint32_t n)
{
	struct pp_timeline_record found = {};
	const struct drain_handlers handlers = {.context = &found, .timeline = on_timeline};

	for (uint32_t i = 0; i < host->record_count; i++) {
		if (host->record[i].ring != &timeline)
			continue;
		assert_int_equal(
			decode_timeline(host->record[i].data, host->record[i].size, &handlers), 0);
		if (!n--)
			return found;
	}
	fail_msg("no such record");
	return found;
}

static uint32_t timeline_count(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < host->record_count; i++)
		count += host->record[i].ring == &timeline;
	return count;
}

static void timeline__cycle_has_its_four_moments(void **state)
{
	struct pp_timeline_record record;

	(void)state;
	switch_in(&one, 1 * MS);
	switch_out(&one, 3 * MS);
	is_woken(&one, 7 * MS);
	switch_in(&one, 8 * MS);
	assert_int_equal(timeline_count(), 1);
	record = timeline_at(0);
	assert_int_equal(record.record.type, PP_TIMELINE_SWITCH);
	assert_int_equal(record.id.tgid, 70);
	assert_int_equal(record.id.generation, GENERATION);
	assert_int_equal(record.tid, 71);
	assert_int_equal(record.wait, PP_WAIT_SLEEP);
	assert_int_equal(record.run_ns, START_NS + 1 * MS);
	assert_int_equal(record.leave_ns, START_NS + 3 * MS);
	assert_int_equal(record.woken_ns, START_NS + 7 * MS);
	assert_int_equal(record.back_ns, START_NS + 8 * MS);
	assert_int_equal(record.user_stack, wait_site_of(&one)->user_stack);
	assert_true(record.user_stack);
	assert_int_equal(record.flags, 0); /* no Python */
}

static void timeline__next_run_begins_where_the_thread_came_back(void **state)
{
	struct pp_timeline_record record;

	(void)state;
	switch_in(&one, 1 * MS);
	switch_out(&one, 3 * MS);
	switch_in(&one, 8 * MS);
	is_preempted(&one, 9 * MS);
	switch_in(&one, 11 * MS);
	record = timeline_at(1);
	assert_int_equal(record.wait, PP_WAIT_RUN_QUEUE);
	assert_int_equal(record.run_ns, START_NS + 8 * MS);
	assert_int_equal(record.leave_ns, START_NS + 9 * MS);
	assert_int_equal(record.woken_ns, START_NS + 9 * MS);
	assert_int_equal(record.back_ns, START_NS + 11 * MS);
}

static void timeline__exit_is_the_last_record(void **state)
{
	struct pp_timeline_record record;

	(void)state;
	switch_in(&one, 1 * MS);
	switch_out(&one, 3 * MS);
	switch_in(&one, 8 * MS);
	dies(&one, 9 * MS);
	assert_int_equal(timeline_count(), 2);
	record = timeline_at(1);
	assert_int_equal(record.record.type, PP_TIMELINE_LAST);
	assert_int_equal(record.run_ns, START_NS + 8 * MS);
	assert_int_equal(record.leave_ns, START_NS + 9 * MS);
}

/* The time is told, the stack only where it is known all the same. */
static void timeline__wait_that_was_left_out_has_its_time(void **state)
{
	struct pp_timeline_record record;

	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	switch_in(&one, 2 * MS);
	actor_stands(&one, 2);
	take_scratch(true);
	switch_out(&one, 3 * MS);
	take_scratch(false);
	switch_in(&one, 7 * MS);
	record = timeline_at(1);
	assert_int_equal(record.leave_ns, START_NS + 3 * MS);
	assert_int_equal(record.back_ns, START_NS + 7 * MS);
	assert_int_equal(record.wait, PP_WAIT_SLEEP);
	assert_int_equal(record.user_stack, 0);
}

static void timeline__full_ring_is_counted(void **state)
{
	(void)state;
	switch_in(&one, 1 * MS);
	switch_out(&one, 3 * MS);
	host->ring_is_full = true;
	switch_in(&one, 8 * MS);
	assert_int_equal(host->losses[PP_LOSS_TIMELINE_FULL], 1);
	assert_int_equal(timeline_count(), 0);
}

static void timeline__that_is_off_tells_nothing(void **state)
{
	(void)state;
	timeline_is_on = false;
	switch_in(&one, 1 * MS);
	switch_out(&one, 3 * MS);
	switch_in(&one, 8 * MS);
	dies(&one, 9 * MS);
	assert_int_equal(timeline_count(), 0);
	assert_int_equal(host->losses[PP_LOSS_TIMELINE_FULL], 0);
}

static void timeline__thread_that_does_not_match_is_not_told(void **state)
{
	(void)state;
	host->config.flags = PP_CONFIG_FILTER;
	process_add(80, GENERATION, 0);
	actor_init(&two, 80, 81);
	switch_in(&two, 1 * MS);
	switch_out(&two, 3 * MS);
	switch_in(&two, 8 * MS);
	dies(&two, 9 * MS);
	assert_int_equal(timeline_count(), 0);
}

#define TIMELINE_TEST(name) cmocka_unit_test_setup_teardown(name, timeline_setup, timeline_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TIMELINE_TEST(timeline__cycle_has_its_four_moments),
		TIMELINE_TEST(timeline__next_run_begins_where_the_thread_came_back),
		TIMELINE_TEST(timeline__exit_is_the_last_record),
		TIMELINE_TEST(timeline__wait_that_was_left_out_has_its_time),
		TIMELINE_TEST(timeline__full_ring_is_counted),
		TIMELINE_TEST(timeline__that_is_off_tells_nothing),
		TIMELINE_TEST(timeline__thread_that_does_not_match_is_not_told),
	};

	return cmocka_run_group_tests_name("bpf/timeline", tests, NULL, NULL);
}
