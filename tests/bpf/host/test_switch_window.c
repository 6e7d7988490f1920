/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waits cut at the edges of windows, by bpf/lib/threads.bpf.h and drain/thread_slots.c together. */
#include "switch.h"

/* ---- windows ---- */

static void window__open_wait_is_cut_at_each_edge(void **state)
{
	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 4 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 6 * MS);
	harvest_drop();
	window_close(20 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 0, 10 * MS);
	harvest_drop();
	switch_in(&one, 23 * MS);
	window_close(30 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 0, 3 * MS);
	harvest_drop();
	window_close(40 * MS);
	assert_int_equal(harvested.count, 0);
}

static void window__wait_that_ends_before_the_reading_is_in_both_windows(void **state)
{
	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 4 * MS);
	window_edge(10 * MS);
	switch_in(&one, 11 * MS);
	window_harvest();
	assert_waited(&one, PP_WAIT_SLEEP, 1, 6 * MS);
	harvest_drop();
	window_close(20 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 0, 1 * MS);
}

static void window__wait_since_long_ago_that_ends_before_the_reading(void **state)
{
	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 4 * MS);
	window_close(10 * MS);
	window_close(20 * MS);
	harvest_drop();
	window_edge(30 * MS);
	switch_in(&one, 31 * MS);
	switch_out(&one, 32 * MS);
	window_harvest();
	assert_waited(&one, PP_WAIT_SLEEP, 0, 10 * MS);
	harvest_drop();
	window_close(40 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 9 * MS);
}

static void window__sum_of_another_site_stays_with_its_window(void **state)
{
	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 4 * MS);
	switch_in(&one, 6 * MS);
	window_edge(10 * MS);
	actor_stands(&one, 2);
	switch_out(&one, 11 * MS);
	window_harvest();
	assert_int_equal(harvested.count, 1);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 2 * MS);
	harvest_drop();
	window_close(20 * MS);
	assert_int_equal(harvested.count, 1);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 9 * MS);
}

/* Three new wait sites from 11 ms on, 1 ms each: the one before has to give way. */
static void waits_at_three_other_sites(void)
{
	for (uint32_t i = 0; i < 3; i++) {
		actor_stands(&one, 2 + i);
		switch_out(&one, (11 + 2 * i) * MS);
		switch_in(&one, (12 + 2 * i) * MS);
	}
}

static void window__site_that_gives_way_before_the_reading_stays_with_its_window(void **state)
{
	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 4 * MS);
	switch_in(&one, 6 * MS);
	window_edge(10 * MS);
	waits_at_three_other_sites();
	window_harvest();
	assert_int_equal(harvested.count, 1);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 2 * MS);
	harvest_drop();
	window_close(20 * MS);
	assert_int_equal(harvested.count, 3);
	assert_waited(&one, PP_WAIT_SLEEP, 3, 3 * MS);
}

/* The map of the configuration begins as zeros. */
static void window__first_one_has_the_sums_of_a_thread_that_ends_before_the_reading(void **state)
{
	(void)state;
	host->config.window = host->config.slots_read = 0;
	thread_slots_open(&host->config, 0, START_NS);
	switch_in(&one, 0);
	switch_out(&one, 4 * MS);
	switch_in(&one, 6 * MS);
	window_edge(10 * MS);
	dies(&one, 11 * MS);
	window_harvest();
	assert_int_equal(harvested.count, 1);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 2 * MS);
}

/* Its window's counters are closed when it gives way: late by a window, but there. */
static void window__slot_that_could_not_be_read_is_late(void **state)
{
	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 4 * MS);
	switch_in(&one, 6 * MS);
	window_edge(10 * MS);
	host->config.slots_read = host->config.window - 1;
	waits_at_three_other_sites();
	window_close(20 * MS);
	assert_int_equal(harvested.count, 4);
	assert_waited(&one, PP_WAIT_SLEEP, 4, 5 * MS);
}

/* The agent's mark says so: what it has taken does not go to the counters once more. */
static void window__site_that_gives_way_after_the_reading_is_not_counted_twice(void **state)
{
	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 4 * MS);
	switch_in(&one, 6 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 2 * MS);
	waits_at_three_other_sites();
	window_close(20 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 4, 5 * MS);
}

/* 60 windows of 10 ms: each has its own 10 ms, whoever looks in between. */
static void window__wait_over_many_has_each_windows_length(void **state)
{
	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 3 * MS);
	for (uint64_t i = 1; i <= 60; i++) {
		window_close(10 * i * MS);
		assert_waited(&one, PP_WAIT_SLEEP, i == 1, i == 1 ? 7 * MS : 10 * MS);
		assert_int_equal(harvested.count, 1);
		harvest_drop();
	}
	switch_in(&one, 604 * MS);
	window_close(610 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 0, 4 * MS);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_SLEEP], 601 * MS);
}

/* The switch began before the edge and saw the new window. */
static void window__switch_that_read_the_clock_before_the_edge_ends_there(void **state)
{
	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 4 * MS);
	window_edge(10 * MS);
	switch_in(&one, 9 * MS);
	switch_out(&one, 9 * MS);
	switch_in(&one, 12 * MS);
	window_harvest();
	assert_waited(&one, PP_WAIT_NONE, 1, 6 * MS);
	harvest_drop();
	window_close(20 * MS);
	assert_waited(&one, PP_WAIT_NONE, 1, 2 * MS);
}

/* ---- the clock ---- */

/* Clocks of two CPUs may differ by a little. */
static void clock__that_goes_back_makes_no_time(void **state)
{
	uint64_t total_ns = 0;

	(void)state;
	switch_in(&one, 5 * MS);
	switch_out(&one, 5 * MS - 3);
	switch_in(&one, 5 * MS - 9);
	switch_out(&one, 5 * MS - 12);
	for (uint32_t i = 0; i < PP_LEDGER_COUNT; i++)
		assert_int_equal(slot_of(&one)->total_ns[i], 0);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 2, 5 * MS);
	switch_in(&one, 11 * MS);
	dies(&one, 11 * MS - 4);
	for (uint32_t i = 0; i < PP_LEDGER_COUNT; i++)
		total_ns += ledger_of(70, GENERATION)->total_ns[i];
	assert_int_equal(total_ns, 6 * MS);
	assert_int_equal(ledger_of(70, GENERATION)->life_ns, 6 * MS);
}

/* A machine that slept: CLOCK_MONOTONIC stands still, another clock would jump. */
static void clock__jump_over_windows_is_cut_like_any_wait(void **state)
{
	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 4 * MS);
	window_close(10 * MS);
	harvest_drop();
	switch_in(&one, 3600000 * MS);
	window_close(3600001 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 0, 3599990 * MS);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_SLEEP], 3599996 * MS);
}

/* ---- offcpu-min ---- */

static void min__shorter_waits_are_in_the_ledger_only(void **state)
{
	(void)state;
	host->config.wait_min_ns = 2 * MS;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	switch_in(&one, 3 * MS - 1);
	window_close(4 * MS);
	assert_int_equal(harvested.count, 0);
	switch_out(&one, 5 * MS);
	switch_in(&one, 7 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_NONE, 1, 2 * MS);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_SLEEP], 4 * MS - 1);
}

/* Whole: 1 ms before the edge and half a ms behind it. */
static void min__short_wait_over_an_edge_is_in_no_window(void **state)
{
	(void)state;
	host->config.wait_min_ns = 2 * MS;
	switch_in(&one, 0);
	switch_out(&one, 9 * MS);
	window_close(10 * MS);
	switch_in(&one, 10 * MS + 500 * US);
	window_close(20 * MS);
	assert_int_equal(harvested.count, 0);
	/* The same, back before the reading. */
	switch_out(&one, 29 * MS);
	window_edge(30 * MS);
	switch_in(&one, 30 * MS + 500 * US);
	window_harvest();
	window_close(40 * MS);
	assert_int_equal(harvested.count, 0);
}

/* At the edge it was too short for the agent: all of it comes with its end. */
static void min__wait_that_was_short_at_the_edge_is_counted_at_its_end(void **state)
{
	(void)state;
	host->config.wait_min_ns = 2 * MS;
	switch_in(&one, 0);
	switch_out(&one, 9 * MS);
	window_close(10 * MS);
	assert_int_equal(harvested.count, 0);
	switch_in(&one, 14 * MS);
	window_close(20 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 5 * MS);
}

/* Over many windows: the first did not have it, the second has both. */
static void min__wait_that_was_short_at_the_first_of_many_edges(void **state)
{
	(void)state;
	host->config.wait_min_ns = 2 * MS;
	switch_in(&one, 0);
	switch_out(&one, 9 * MS);
	window_close(10 * MS);
	assert_int_equal(harvested.count, 0);
	window_close(20 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 0, 11 * MS);
	window_close(30 * MS);
	switch_in(&one, 33 * MS);
	window_close(40 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 24 * MS);
}

/* ---- all of it at once ---- */

/* A thread's switches by a fixed generator: what it must have waited up to now is added up here. */
struct model {
	struct actor *actor;
	uint64_t created_ns, changed_ns, off_ns;
	bool is_off;
};

static void model_cut(struct model *model, uint64_t at_ns)
{
	if (model->is_off)
		model->off_ns += at_ns - model->changed_ns;
	model->changed_ns = at_ns;
}

static void model_step(struct model *model, uint64_t at_ns)
{
	model_cut(model, at_ns);
	if (model->is_off) {
		if (bpf_get_prandom_u32() % 2)
			is_woken(model->actor, at_ns - bpf_get_prandom_u32() % (20 * US));
		switch_in(model->actor, at_ns);
	} else {
		actor_stands(model->actor, 1 + bpf_get_prandom_u32() % 5);
		if (bpf_get_prandom_u32() % 4)
			switch_out(model->actor, at_ns);
		else
			is_preempted(model->actor, at_ns);
	}
	model->is_off = !model->is_off;
}

static uint64_t models_run(struct model models[2], uint64_t at, uint32_t steps, bool may_swap)
{
	while (steps--) {
		if (may_swap && bpf_get_prandom_u32() % 8 == 0)
			tables_swap();
		at += 30 * US + bpf_get_prandom_u32() % (3 * MS);
		model_step(&models[bpf_get_prandom_u32() % 2], at);
	}
	return at + 30 * US;
}

/* Each second of a thread is in exactly one site. */
static void assert_ledger_is_whole(const struct model *model, uint64_t end_ns)
{
	uint64_t total_ns[PP_LEDGER_COUNT], sum_ns = 0, off_ns = 0;

	thread_slot_totals(slot_of(model->actor), START_NS + end_ns, total_ns);
	for (uint32_t i = 0; i < PP_LEDGER_COUNT; i++) {
		sum_ns += total_ns[i];
		off_ns += i == PP_LEDGER_CPU ? 0 : total_ns[i];
	}
	assert_int_equal(sum_ns, end_ns - model->created_ns);
	assert_int_equal(off_ns, model->off_ns);
}

/* Long waits, short ones, edges within waits, five wait sites, tables swapped early, switches
 * between an edge and its reading.  Where tables are too small as well, only the sum of both
 * threads is known. */
static void compare_windows(bool are_small)
{
	struct model models[2] = {{.actor = &one, .created_ns = 1},
				  {.actor = &two, .created_ns = 1}};
	uint64_t at = 1;

	switch_in(&one, at);
	switch_in(&two, at);
	for (int window = 0; window < 400; window++) {
		uint32_t gap_steps = bpf_get_prandom_u32() % 8;
		uint64_t off_ns[2], got_ns[2];

		gap_steps = gap_steps < 4 ? 0 : gap_steps;
		host->waits[0].room = host->waits[1].room = are_small ? 2 : HOST_ENTRIES;
		host->coarse[0].room = host->coarse[1].room = window % 2;
		at = models_run(models, at, bpf_get_prandom_u32() % 12, true);
		window_edge(at);
		host_drop_records();
		for (int i = 0; i < 2; i++) {
			model_cut(&models[i], at);
			off_ns[i] = models[i].off_ns;
			assert_ledger_is_whole(&models[i], at);
		}
		at = models_run(models, at, gap_steps, false);
		window_harvest();
		for (int i = 0; i < 2; i++)
			got_ns[i] = waited(models[i].actor->task.pid, PP_WAIT_NONE).weight;
		if (are_small)
			got_ns[0] += waited(0, PP_WAIT_NONE).weight;
		else
			assert_int_equal(got_ns[0], off_ns[0]);
		assert_int_equal(got_ns[0] + got_ns[1], off_ns[0] + off_ns[1]);
	}
	assert_int_equal(host->losses[PP_LOSS_WAITS_WEIGHTED], 0);
}

static void window__nothing_is_lost_or_counted_twice(void **state)
{
	(void)state;
	compare_windows(false);
	assert_int_equal(host->losses[PP_LOSS_WAITS_FULL], 0);
}

static void window__nothing_is_lost_where_tables_are_too_small(void **state)
{
	(void)state;
	compare_windows(true);
	assert_true(host->losses[PP_LOSS_WAITS_FULL] > 100);
	assert_true(host->losses[PP_LOSS_COARSE_FULL] > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		switch_test(window__open_wait_is_cut_at_each_edge),
		switch_test(window__wait_that_ends_before_the_reading_is_in_both_windows),
		switch_test(window__wait_since_long_ago_that_ends_before_the_reading),
		switch_test(window__sum_of_another_site_stays_with_its_window),
		switch_test(window__site_that_gives_way_before_the_reading_stays_with_its_window),
		switch_test(
			window__first_one_has_the_sums_of_a_thread_that_ends_before_the_reading),
		switch_test(window__slot_that_could_not_be_read_is_late),
		switch_test(window__site_that_gives_way_after_the_reading_is_not_counted_twice),
		switch_test(window__wait_over_many_has_each_windows_length),
		switch_test(window__switch_that_read_the_clock_before_the_edge_ends_there),
		switch_test(clock__that_goes_back_makes_no_time),
		switch_test(clock__jump_over_windows_is_cut_like_any_wait),
		switch_test(min__shorter_waits_are_in_the_ledger_only),
		switch_test(min__short_wait_over_an_edge_is_in_no_window),
		switch_test(min__wait_that_was_short_at_the_edge_is_counted_at_its_end),
		switch_test(min__wait_that_was_short_at_the_first_of_many_edges),
		switch_test(window__nothing_is_lost_or_counted_twice),
		switch_test(window__nothing_is_lost_where_tables_are_too_small),
	};

	return cmocka_run_group_tests_name("bpf/switch_window", tests, NULL, NULL);
}
