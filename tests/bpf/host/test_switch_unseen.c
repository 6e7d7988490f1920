/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Switches for which the kernel does not call the program: times that can be recovered are right,
 * and the others are not counted as CPU time. */
#include "switch.h"

/* The scheduler's notes of a thread that comes at at_ns, woken at woken_ns, and nothing else. */
static void comes_unseen(struct actor *actor, uint64_t woken_ns, uint64_t at_ns)
{
	actor->task.sched_info.run_delay += at_ns - woken_ns;
	actor->task.sched_info.last_queued = 0;
	actor->task.sched_info.last_arrival = START_NS + at_ns + QUEUE_CLOCK_NS;
}

static void coming__that_was_not_seen_is_known_when_the_thread_leaves(void **state)
{
	const struct pp_thread *t;

	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	comes_unseen(&one, 40 * MS, 42 * MS);
	switch_out(&one, 45 * MS);
	t = slot_of(&one);
	assert_int_equal(t->total_ns[PP_LEDGER_CPU], 1 * MS + 3 * MS);
	assert_int_equal(t->total_ns[PP_LEDGER_SLEEP], 39 * MS);
	assert_int_equal(t->total_ns[PP_LEDGER_RUN_QUEUE], 2 * MS);
	assert_int_equal(host->losses[PP_LOSS_SWITCHES_UNSEEN], 1);
	window_close(50 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 2, 39 * MS + 5 * MS);
	assert_waited(&one, PP_WAIT_RUN_QUEUE, 0, 2 * MS);
}

static void coming__without_notes_takes_no_time_on_the_cpu(void **state)
{
	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	one.task.se.cfs_rq = &(struct cfs_rq){.rq = &(struct rq){}};
	switch_out(&one, 45 * MS);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_CPU], 1 * MS);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_SLEEP], 44 * MS);
}

static void coming__that_was_not_seen_is_known_when_the_thread_dies(void **state)
{
	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	comes_unseen(&one, 10 * MS, 10 * MS);
	dies(&one, 11 * MS);
	assert_int_equal(used_slots(), 0);
	assert_int_equal(ledger_of(70, GENERATION)->total_ns[PP_LEDGER_CPU], 2 * MS);
	assert_int_equal(ledger_of(70, GENERATION)->total_ns[PP_LEDGER_SLEEP], 9 * MS);
}

static void leaving__that_was_not_seen_makes_the_time_unknown(void **state)
{
	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	switch_in(&one, 2 * MS);
	switch_in(&one, 900 * MS);
	switch_out(&one, 901 * MS);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_CPU], 2 * MS);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_UNKNOWN], 898 * MS);
	assert_int_equal(host->losses[PP_LOSS_SWITCHES_UNSEEN], 1);
}

/* Filters leave its times out: its slot never says that it waits. */
static void filtered_thread__misses_no_switch(void **state)
{
	(void)state;
	host->config.flags |= PP_CONFIG_FILTER;
	process_add(70, GENERATION, 0);
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	switch_in(&one, 2 * MS);
	assert_int_equal(host->losses[PP_LOSS_SWITCHES_UNSEEN], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		switch_test(coming__that_was_not_seen_is_known_when_the_thread_leaves),
		switch_test(coming__without_notes_takes_no_time_on_the_cpu),
		switch_test(coming__that_was_not_seen_is_known_when_the_thread_dies),
		switch_test(leaving__that_was_not_seen_makes_the_time_unknown),
		switch_test(filtered_thread__misses_no_switch),
	};

	return cmocka_run_group_tests_name("bpf/switch_unseen", tests, NULL, NULL);
}
