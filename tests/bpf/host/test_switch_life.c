/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Slots of threads: which thread gets one, when the slot is freed, and which thread its times
 * belong to; bpf/lib/threads.bpf.h: how many of them a user gets. */
#include "switch.h"

/* ---- slots ---- */

static void slot__one_switch_serves_both_threads(void **state)
{
	(void)state;
	switch_in(&one, 0);
	one.task.__state = INTERRUPTIBLE;
	two.task.__state = INTERRUPTIBLE;
	switch_at(1 * MS, false, &one, &two);
	switch_at(3 * MS, false, &two, &one);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 2 * MS);
	assert_waited(&two, PP_WAIT_SLEEP, 1, 7 * MS);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_CPU], 1 * MS);
	assert_int_equal(slot_of(&two)->total_ns[PP_LEDGER_CPU], 2 * MS);
}

static void slot__thread_has_two_places(void **state)
{
	(void)state;
	actor_init(&two, 70, 71 + HOST_THREADS); /* the first place is the same */
	switch_in(&one, 0);
	switch_in(&two, 0);
	switch_out(&one, 1 * MS);
	switch_out(&two, 2 * MS);
	assert_ptr_not_equal(slot_of(&one), slot_of(&two));
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 9 * MS);
	assert_waited(&two, PP_WAIT_SLEEP, 1, 8 * MS);
	assert_int_equal(host->losses[PP_LOSS_THREADS_FULL], 0);
}

static void slot__full_pair_is_counted(void **state)
{
	(void)state;
	host->config.thread_mask = 0;
	switch_in(&one, 0);
	switch_in(&two, 1 * MS);
	switch_out(&two, 2 * MS);
	switch_out(&one, 3 * MS);
	assert_int_equal(host->losses[PP_LOSS_THREADS_FULL], 2);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 7 * MS);
	assert_int_equal(waited(72, PP_WAIT_NONE).weight, 0);
}

static void exit__ledger_and_counters_get_everything(void **state)
{
	const struct pp_ledger_sum *sum;

	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 4 * MS);
	is_woken(&one, 8 * MS);
	switch_in(&one, 9 * MS);
	dies(&one, 15 * MS);
	assert_int_equal(used_slots(), 0);
	sum = ledger_of(70, GENERATION);
	assert_non_null(sum);
	assert_int_equal(sum->threads, 1);
	assert_int_equal(sum->life_ns, 15 * MS);
	assert_int_equal(sum->total_ns[PP_LEDGER_CPU], 10 * MS);
	assert_int_equal(sum->total_ns[PP_LEDGER_SLEEP], 4 * MS);
	assert_int_equal(sum->total_ns[PP_LEDGER_RUN_QUEUE], 1 * MS);
	assert_int_equal(ledger_total(sum), sum->life_ns);
	switch_in(&two, 16 * MS);
	dies(&two, 18 * MS);
	assert_int_equal(sum->threads, 2);
	assert_int_equal(sum->life_ns, 17 * MS);
	window_close(20 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 4 * MS);
	assert_waited(&one, PP_WAIT_RUN_QUEUE, 0, 1 * MS);
}

/* Between the edge and the reading. */
static void exit__before_the_reading_leaves_each_window_its_sums(void **state)
{
	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 4 * MS);
	switch_in(&one, 9 * MS);
	window_edge(10 * MS);
	switch_out(&one, 11 * MS);
	switch_in(&one, 12 * MS);
	dies(&one, 13 * MS);
	assert_int_equal(used_slots(), 0);
	window_harvest();
	assert_waited(&one, PP_WAIT_SLEEP, 1, 5 * MS);
	harvest_drop();
	window_close(20 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 1 * MS);
}

static void exit__after_the_reading_counts_nothing_twice(void **state)
{
	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 4 * MS);
	switch_in(&one, 9 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 5 * MS);
	dies(&one, 11 * MS);
	window_close(20 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 5 * MS);
	assert_int_equal(ledger_of(70, GENERATION)->life_ns, 11 * MS);
}

/* Killed while it is blocked: it comes once more, in the kernel, and dies. */
static void exit__of_a_blocked_thread_ends_its_wait(void **state)
{
	const struct pp_ledger_sum *sum;

	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 4 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 6 * MS);
	switch_in(&one, 13 * MS);
	dies(&one, 13 * MS + 50 * US);
	sum = ledger_of(70, GENERATION);
	assert_non_null(sum);
	assert_int_equal(sum->total_ns[PP_LEDGER_SLEEP], 9 * MS);
	assert_int_equal(ledger_total(sum), 13 * MS + 50 * US);
	assert_int_equal(sum->life_ns, 13 * MS + 50 * US);
	window_close(20 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 9 * MS);
}

/* The id is soon another thread's, of another process. */
static void exit__reused_tid_is_another_thread(void **state)
{
	const struct pp_ledger_sum *first, *second;

	(void)state;
	process_add(80, GENERATION + 5, PP_CONTEXT_MATCHES);
	switch_in(&one, 0);
	switch_out(&one, 4 * MS);
	switch_in(&one, 9 * MS);
	window_edge(10 * MS);
	dies(&one, 11 * MS);
	actor_init(&two, 80, 71);
	switch_in(&two, 12 * MS);
	window_harvest();
	switch_out(&two, 13 * MS);
	switch_in(&two, 20 * MS);
	dies(&two, 21 * MS);
	first = ledger_of(70, GENERATION);
	second = ledger_of(80, GENERATION + 5);
	assert_int_equal(first->threads, 1);
	assert_int_equal(first->life_ns, 11 * MS);
	assert_int_equal(ledger_total(first), 11 * MS);
	assert_int_equal(second->threads, 1);
	assert_int_equal(second->life_ns, 9 * MS);
	assert_int_equal(second->total_ns[PP_LEDGER_SLEEP], 7 * MS);
	assert_int_equal(ledger_total(second), 9 * MS);
	window_close(30 * MS);
	assert_int_equal(harvested.count, 2);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(harvested.entry[i].count.weight,
				 harvested.entry[i].key.id.tgid == 70 ? 5 * MS : 7 * MS);
}

/* Else who has no slot would be counted under who had it before. */
static void exit__slot_given_back_is_empty(void **state)
{
	(void)state;
	host->config.thread_mask = 0;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	switch_in(&one, 5 * MS);
	switch_in(&two, 5 * MS);
	assert_int_equal(host->losses[PP_LOSS_THREADS_FULL], 1);
	dies(&one, 6 * MS);
	switch_in(&two, 7 * MS);
	switch_out(&two, 8 * MS);
	assert_int_equal(host->losses[PP_LOSS_THREADS_FULL], 1);
	assert_int_equal(host->thread[0].tid, 72);
	assert_int_equal(host->thread[0].created_ns, START_NS + 7 * MS);
	assert_int_equal(host->thread[0].sequence % 2, 0);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 4 * MS);
	assert_waited(&two, PP_WAIT_SLEEP, 1, 2 * MS);
}

static void exit__full_ledger_sums_up_who_found_no_row(void **state)
{
	const struct pp_ledger_sum *rest = &host->user_share[PP_USER_SHARE_COMMON].rest;

	(void)state;
	host->ledgers.room = 0;
	host->config.ledgers_taken = PP_LEDGER_ROWS;
	switch_in(&one, 0);
	switch_in(&two, 0);
	switch_out(&one, 4 * MS);
	switch_in(&one, 5 * MS);
	dies(&one, 6 * MS);
	dies(&two, 7 * MS);
	assert_int_equal(host->losses[PP_LOSS_LEDGERS_FULL], 2);
	assert_int_equal(host->losses[PP_LOSS_LEDGERS_SHARE], 0);
	assert_int_equal(used_slots(), 0);
	assert_int_equal(rest->threads, 2);
	assert_int_equal(rest->leaders, 0); /* of process 70, which has another first thread */
	assert_int_equal(rest->life_ns, 13 * MS);
	assert_int_equal(rest->total_ns[PP_LEDGER_CPU], 12 * MS);
	assert_int_equal(ledger_total(rest), rest->life_ns);
}

/* What the agent has counted for its process, it would count once more for the sum. */
static void exit__thread_of_an_older_window_keeps_its_slot_with_a_full_ledger(void **state)
{
	struct pp_thread *slot;

	(void)state;
	host->ledgers.room = 0;
	switch_in(&one, 0);
	window_close(10 * MS);
	slot = slot_of(&one);
	dies(&one, 16 * MS);
	assert_int_equal(host->losses[PP_LOSS_LEDGERS_FULL], 0);
	assert_int_equal(host->user_share[PP_USER_SHARE_COMMON].rest.threads, 0);
	assert_int_equal(slot->tid, one.task.pid | PP_TID_ENDED);
	assert_int_equal(slot->sequence % 2, 0);
	assert_int_equal(slot->since_ns - slot->created_ns, 16 * MS);
	assert_int_equal(slot->total_ns[PP_LEDGER_CPU], 16 * MS);
	assert_int_equal(host->config.slots_taken, 1); /* until the agent frees it */
	/* Its tid is soon another thread's. */
	switch_in(&one, 17 * MS);
	assert_ptr_not_equal(slot_of(&one), slot);
	assert_int_equal(slot_of(&one)->created_ns, START_NS + 17 * MS);
}

static void exec__leaves_times_in_a_slot_while_the_ledger_is_full(void **state)
{
	struct pp_thread *slot;

	(void)state;
	host->ledgers.room = 0;
	switch_in(&one, 0);
	switch_out(&one, 4 * MS);
	switch_in(&one, 5 * MS);
	window_close(10 * MS);
	slot = slot_of(&one);
	set_time(15 * MS);
	assert_int_equal(on_exec(NULL, &one.task, one.task.pid), 0);
	assert_int_equal(slot->tid, one.task.pid | PP_TID_ENDED);
	assert_int_equal(slot->total_ns[PP_LEDGER_CPU], 14 * MS);
	assert_non_null(slot_of(&one));
	assert_int_equal(slot_of(&one)->created_ns, START_NS + 15 * MS);
}

/* Many more threads than slots: some are not measured, the others are exact. */
static void slot__full_table_makes_no_total_wrong(void **state)
{
	static struct actor crowd[4 * HOST_THREADS];
	uint64_t at = 0, measured = 0;

	(void)state;
	for (uint32_t i = 0; i < 4 * HOST_THREADS; i++) {
		actor_init(&crowd[i], 70, 1000 + i);
		switch_in(&crowd[i], at += 10 * US);
		switch_out(&crowd[i], at += 10 * US);
	}
	for (uint32_t i = 0; i < 4 * HOST_THREADS; i++)
		switch_in(&crowd[i], 100 * MS + i * MS);
	window_close(200 * MS);
	for (uint32_t i = 0; i < 4 * HOST_THREADS; i++) {
		struct pp_count count = waited(1000 + i, PP_WAIT_NONE);

		if (!count.weight)
			continue;
		measured++;
		assert_int_equal(count.weight, 100 * MS + i * MS - (2 * i + 2) * 10 * US);
		assert_int_equal(count.samples, 1);
	}
	assert_int_equal(measured, used_slots());
	assert_true(measured > HOST_THREADS / 2);
	assert_int_equal(host->losses[PP_LOSS_THREADS_FULL], 3 * (4 * HOST_THREADS - measured));
	for (uint32_t i = 0; i < 4 * HOST_THREADS; i++)
		dies(&crowd[i], 300 * MS);
	assert_int_equal(used_slots(), 0);
}

/* ---- who is wanted ---- */

static void filter__thread_left_out_costs_no_walk_and_appears_nowhere(void **state)
{
	(void)state;
	host->config.flags = PP_CONFIG_FILTER;
	process_add(70, GENERATION, 0);
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	switch_in(&one, 5 * MS);
	switch_out(&one, 6 * MS);
	assert_int_equal(host->user_reads, 0);
	assert_int_equal(host->record_count, 0);
	window_close(10 * MS);
	assert_int_equal(harvested.count, 0);
	switch_in(&one, 11 * MS);
	dies(&one, 12 * MS);
	assert_null(ledger_of(70, GENERATION));
	window_close(20 * MS);
	assert_int_equal(harvested.count, 0);
}

/* Else the threads of everybody fill the table of a profiler that asked for one process. */
static void filter__thread_left_out_that_exits_gives_its_slot_back(void **state)
{
	(void)state;
	host->config.flags = PP_CONFIG_FILTER;
	process_add(70, GENERATION, 0);
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	switch_in(&one, 5 * MS);
	dies(&one, 6 * MS);
	assert_int_equal(used_slots(), 0);
}

static void filter__thread_matches_within_100_ms(void **state)
{
	(void)state;
	host->config.flags = PP_CONFIG_FILTER;
	process_add(70, GENERATION, 0);
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	process_add(70, GENERATION, PP_CONTEXT_MATCHES);
	switch_in(&one, 50 * MS);
	switch_out(&one, 51 * MS);
	assert_int_equal(host->user_reads, 0);
	switch_in(&one, 130 * MS);
	switch_out(&one, 131 * MS);
	switch_in(&one, 134 * MS);
	window_close(140 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 3 * MS);
}

/* What it did before is not known: it was not looked at. */
static void filter__time_before_a_thread_matched_is_nobodys(void **state)
{
	const struct pp_ledger_sum *sum;

	(void)state;
	host->config.flags = PP_CONFIG_FILTER;
	process_add(70, GENERATION, 0);
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	process_add(70, GENERATION, PP_CONTEXT_MATCHES);
	switch_in(&one, 5000 * MS);
	switch_out(&one, 5001 * MS);
	switch_in(&one, 5003 * MS);
	dies(&one, 5010 * MS);
	sum = ledger_of(70, GENERATION);
	assert_non_null(sum);
	assert_int_equal(sum->life_ns, 9 * MS);
	assert_int_equal(sum->total_ns[PP_LEDGER_CPU], 7 * MS);
	assert_int_equal(ledger_total(sum), sum->life_ns);
}

static void filter__thread_that_matches_no_more_is_settled(void **state)
{
	const struct pp_ledger_sum *sum;

	(void)state;
	host->config.flags = PP_CONFIG_FILTER;
	switch_in(&one, 0);
	switch_out(&one, 10 * MS);
	switch_in(&one, 30 * MS);
	process_add(70, GENERATION, 0);
	switch_out(&one, 150 * MS);
	sum = ledger_of(70, GENERATION);
	assert_non_null(sum);
	assert_int_equal(sum->life_ns, 150 * MS);
	assert_int_equal(ledger_total(sum), sum->life_ns);
	window_close(200 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 20 * MS);
}

/* Another program in the same thread: what it did before is the old one's. */
static void exec__times_before_it_are_the_old_programs(void **state)
{
	const struct pp_ledger_sum *before, *after;

	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 10 * MS);
	switch_in(&one, 30 * MS);
	process_add(70, GENERATION + 1, PP_CONTEXT_MATCHES);
	switch_out(&one, 150 * MS);
	switch_in(&one, 160 * MS);
	dies(&one, 165 * MS);
	before = ledger_of(70, GENERATION);
	after = ledger_of(70, GENERATION + 1);
	assert_non_null(before);
	assert_non_null(after);
	assert_int_equal(before->life_ns, 150 * MS);
	assert_int_equal(ledger_total(before), before->life_ns);
	assert_int_equal(after->life_ns, 15 * MS);
	assert_int_equal(after->total_ns[PP_LEDGER_SLEEP], 10 * MS);
	assert_int_equal(ledger_total(after), after->life_ns);
	window_close(200 * MS);
	for (size_t i = 0; i < harvested.count; i++)
		assert_int_equal(harvested.entry[i].count.weight,
				 harvested.entry[i].key.id.generation == GENERATION ? 20 * MS :
										      10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 2, 30 * MS);
}

/* exec() by another thread than the leader: it goes on under the leader's id, and its own is
 * nobody's. */
static void exec__by_another_thread_than_the_leader_leaves_no_slot_behind(void **state)
{
	const struct pp_ledger_sum *before, *after;
	const uint32_t tgid = 70;
	uint32_t generation;

	(void)state;
	actor_init(&two, 70, 70); /* the leader */
	switch_in(&two, 0);
	switch_out(&two, 1 * MS);
	switch_in(&one, 1 * MS);
	switch_out(&one, 2 * MS);
	switch_in(&one, 5 * MS);
	switch_in(&two, 6 * MS);
	dies(&two, 7 * MS);
	set_time(10 * MS);
	one.task.pid = 70;
	assert_int_equal(on_exec(NULL, &one.task, 71), 0);
	assert_int_equal(used_slots(), 1);
	generation = *(uint32_t *)bpf_map_lookup_elem(&processes, &tgid);
	assert_int_not_equal(generation, GENERATION);
	before = ledger_of(70, GENERATION);
	assert_int_equal(before->threads, 2);
	assert_int_equal(before->life_ns, 7 * MS + 9 * MS);
	assert_int_equal(ledger_total(before), before->life_ns);
	switch_out(&one, 12 * MS);
	switch_in(&one, 20 * MS);
	dies(&one, 21 * MS);
	after = ledger_of(70, generation);
	assert_int_equal(after->threads, 1);
	assert_int_equal(after->life_ns, 11 * MS);
	assert_int_equal(ledger_total(after), after->life_ns);
	window_close(30 * MS);
	assert_int_equal(waited(71, PP_WAIT_SLEEP).weight, 3 * MS);
	assert_int_equal(waited(70, PP_WAIT_SLEEP).weight, 5 * MS + 8 * MS);
	assert_int_equal(used_slots(), 0);
}

/* By the leader, or by the only thread; the clock of this CPU is a little behind. */
static void exec__by_the_leader_begins_new_times(void **state)
{
	const struct pp_ledger_sum *before;

	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	switch_in(&one, 3 * MS);
	set_time(3 * MS - 5);
	assert_int_equal(on_exec(NULL, &one.task, 71), 0);
	assert_int_equal(used_slots(), 1);
	before = ledger_of(70, GENERATION);
	assert_non_null(before);
	assert_int_equal(ledger_total(before), 3 * MS);
	for (uint32_t i = 0; i < PP_LEDGER_COUNT; i++)
		assert_int_equal(slot_of(&one)->total_ns[i], 0);
	window_close(10 * MS);
	assert_int_equal(harvested.count, 1);
	assert_int_equal(harvested.entry[0].key.id.generation, GENERATION);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 2 * MS);
}

/* Its only switch out is its last one: by then the process is not known any more. */
static void exit__of_a_process_that_never_slept_is_in_its_ledger(void **state)
{
	static struct signal_struct nobody_is_left;
	const struct pp_ledger_sum *sum;

	(void)state;
	host->config.flags |= PP_CONFIG_FILTER;
	one.task.signal = &nobody_is_left;
	switch_in(&one, 0);
	set_time(4 * MS);
	assert_int_equal(watch_exit(NULL, &one.task), 0);
	dies(&one, 5 * MS);
	sum = ledger_of(70, GENERATION);
	assert_non_null(sum);
	assert_int_equal(sum->total_ns[PP_LEDGER_CPU], 5 * MS);
	assert_null(ledger_of(70, 0));
}

/* A process that nobody has told of: its first walk does. */
static void process__that_was_not_known_is_one_in_the_ledger(void **state)
{
	const struct pp_process_id *id;

	(void)state;
	actor_init(&two, 90, 91);
	switch_in(&two, 0);
	switch_out(&two, 1 * MS);
	assert_int_equal(host->record_count, 2); /* it is told of, with its stack */
	id = &slot_of(&two)->id;
	assert_int_equal(id->tgid, 90);
	assert_int_not_equal(id->generation, 0);
	assert_int_equal(id->generation,
			 *(uint32_t *)bpf_map_lookup_elem(&processes, &id->tgid));
	window_close(10 * MS);
	assert_int_equal(harvested.entry[0].key.id.generation, id->generation);
	switch_in(&two, 500 * MS);
	dies(&two, 501 * MS);
	assert_null(ledger_of(90, 0));
	assert_int_equal(ledger_of(90, (START_NS + 1 * MS) >> 10)->life_ns, 501 * MS);
}

/* A sample of the thread that runs. */
static void sampled_at(const struct actor *actor, uint64_t at_ns)
{
	set_time(at_ns);
	host->walk.tid = actor->task.pid;
	host->walk.id = (struct pp_process_id){.tgid = actor->task.tgid, .generation = GENERATION};
	assert_int_equal(thread_see(0), 0);
}

/* Its first switch gave it a slot and could not tell whose it is; it passes no other. */
static void running__thread_that_came_once_has_its_time(void **state)
{
	uint64_t total_ns[PP_LEDGER_COUNT];

	(void)state;
	switch_in(&one, 2 * MS);
	sampled_at(&one, 10 * MS);
	sampled_at(&one, 20 * MS);
	window_close(100 * MS);
	assert_true(slot_of(&one)->flags & PP_THREAD_MATCHES);
	assert_int_equal(slot_of(&one)->id.generation, GENERATION);
	assert_int_equal(slot_of(&one)->created_ns, START_NS + 2 * MS);
	thread_slot_totals(slot_of(&one), START_NS + 100 * MS, total_ns);
	assert_int_equal(total_ns[PP_LEDGER_CPU], 98 * MS);
}

static void running__thread_has_no_time_from_before_it_matched(void **state)
{
	uint64_t total_ns[PP_LEDGER_COUNT];

	(void)state;
	host->config.flags |= PP_CONFIG_FILTER;
	process_add(70, GENERATION, 0);
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	switch_in(&one, 5 * MS);
	assert_false(slot_of(&one)->flags & PP_THREAD_MATCHES);
	sampled_at(&one, 10 * MS);
	thread_slot_totals(slot_of(&one), START_NS + 100 * MS, total_ns);
	assert_int_equal(total_ns[PP_LEDGER_CPU], 90 * MS);
}

/* ---- shares of users ---- */

static struct user_namespace machine_users;
static const struct cred of_alice = {.euid.val = 1000, .user_ns = &machine_users};
static const struct cred of_bob = {.euid.val = 1001, .user_ns = &machine_users};

static void share__one_users_threads_leave_two_thirds(void **state)
{
	static struct actor crowd[4 * HOST_THREADS];
	uint64_t at = 0;

	(void)state;
	for (uint32_t i = 0; i < 4 * HOST_THREADS; i++) {
		actor_init(&crowd[i], 70, 1000 + i);
		crowd[i].task.cred = &of_alice;
		switch_in(&crowd[i], at += 10 * US);
		switch_out(&crowd[i], at += 10 * US);
	}
	assert_int_equal(used_slots(), HOST_THREADS / 3);
	assert_int_equal(host->losses[PP_LOSS_THREADS_FULL], 0);
	assert_int_equal(host->losses[PP_LOSS_THREADS_SHARE],
			 2 * (4 * HOST_THREADS - HOST_THREADS / 3));
	/* Of another user, and root's. */
	one.task.cred = &of_bob;
	switch_in(&one, 10 * MS);
	switch_out(&one, 11 * MS);
	switch_in(&two, 12 * MS);
	switch_out(&two, 13 * MS);
	window_close(20 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 9 * MS);
	assert_waited(&two, PP_WAIT_SLEEP, 1, 7 * MS);
	/* What is given back may be taken again, by whom it was. */
	for (uint32_t i = 0; i < 4 * HOST_THREADS; i++)
		dies(&crowd[i], 30 * MS);
	assert_int_equal(share_of(1000)->slots, 0);
	assert_int_equal(share_of(1001)->slots, 1);
	assert_int_equal(host->config.slots_taken, 2);
	assert_int_equal(used_slots(), 2);
}

static void share__of_a_thread_that_changes_its_user_stays_with_the_first(void **state)
{
	(void)state;
	one.task.cred = &of_alice;
	switch_in(&one, 0);
	assert_int_equal(share_of(1000)->slots, 1);
	one.task.cred = &of_bob;
	dies(&one, 1 * MS);
	assert_int_equal(share_of(1000)->slots, 0);
	assert_int_equal(share_of(1001)->slots, 0);
	assert_int_equal(host->config.slots_taken, 0);
}

static void share__of_a_thread_without_a_slot_is_given_back(void **state)
{
	(void)state;
	host->config.thread_mask = 3; /* of which another user's slots are all that it may take */
	for (uint32_t i = 0; i < 4; i++)
		host->thread[i].tid = 9000 + i;
	one.task.cred = &of_alice;
	switch_in(&one, 0);
	assert_int_equal(host->losses[PP_LOSS_THREADS_FULL], 1);
	assert_int_equal(share_of(1000)->slots, 0);
	assert_int_equal(host->config.slots_taken, 0);
}

/* As long as what is free then is twice what the user has with it. */
static void share__last_slot_is_taken_by_who_has_none(void **state)
{
	(void)state;
	host->config.thread_mask = 3;
	host->config.slots_taken = 1;
	one.task.cred = &of_alice;
	two.task.cred = &of_bob;
	switch_in(&one, 0);
	assert_int_equal(share_of(1000)->slots, 1);
	assert_int_equal(host->config.slots_taken, 2);
	switch_in(&two, 1 * MS);
	assert_int_equal(share_of(1001)->slots, 0);
	assert_int_equal(host->losses[PP_LOSS_THREADS_SHARE], 1);
}

static void share__follows_an_exec(void **state)
{
	(void)state;
	one.task.cred = &of_alice;
	switch_in(&one, 0);
	set_time(1 * MS);
	assert_int_equal(on_exec(NULL, &one.task, one.task.pid), 0);
	assert_int_equal(share_of(1000)->slots, 1);
	assert_int_equal(host->config.slots_taken, 1);
}

/* Ends threads of three processes of a user. */
static void ends_three(const struct cred *cred, uint64_t at)
{
	for (uint32_t i = 0; i < 3; i++) {
		process_add(90 + i, GENERATION, PP_CONTEXT_MATCHES);
		actor_init(&two, 90 + i, 90 + i);
		two.task.cred = cred;
		switch_in(&two, at);
		dies(&two, at += 1 * MS);
	}
}

static void share__of_the_ledger_is_what_is_free(void **state)
{
	const struct pp_ledger_sum *rest = &share_of(1000)->rest;

	(void)state;
	host->config.ledgers_taken = PP_LEDGER_ROWS - 3;
	ends_three(&of_alice, 0); /* 3 and 2 are free, and he has 0 and 1; then 1, and he has 2 */
	assert_non_null(ledger_of(90, GENERATION));
	assert_int_equal(ledger_of(90, GENERATION)->user, 1000);
	assert_non_null(ledger_of(91, GENERATION));
	assert_null(ledger_of(92, GENERATION));
	assert_int_equal(host->losses[PP_LOSS_LEDGERS_SHARE], 1);
	assert_int_equal(host->losses[PP_LOSS_LEDGERS_FULL], 0);
	assert_int_equal(rest->threads, 1);
	assert_int_equal(rest->leaders, 1);
	assert_int_equal(rest->life_ns, 1 * MS);
	/* Another user's, and one more thread of a process that has its row. */
	one.task.cred = &of_bob;
	switch_in(&one, 4 * MS);
	dies(&one, 5 * MS);
	assert_int_equal(ledger_of(70, GENERATION)->user, 1001);
	actor_init(&two, 91, 191);
	two.task.cred = &of_alice;
	switch_in(&two, 6 * MS);
	dies(&two, 7 * MS);
	assert_int_equal(ledger_of(91, GENERATION)->threads, 2);
	assert_int_equal(rest->threads, 1);
	/* When the agent has emptied it, everybody begins anew. */
	for (uint32_t i = 0; i < HOST_ENTRIES; i++)
		host->ledgers.entry[i].is_taken = false;
	host->config.ledgers_taken = PP_LEDGER_ROWS - 3;
	host->config.ledger_turn++;
	ends_three(&of_alice, 8 * MS);
	assert_non_null(ledger_of(91, GENERATION));
	assert_int_equal(host->losses[PP_LOSS_LEDGERS_SHARE], 2);
}

static void share__of_the_ledger_bounds_all_but_root(void **state)
{
	static const struct cred of_root = {.user_ns = &machine_users};

	(void)state;
	host->config.ledgers_taken = PP_LEDGER_ROWS - 1;
	ends_three(&of_root, 0);
	assert_non_null(ledger_of(92, GENERATION));
	assert_int_equal(host->losses[PP_LOSS_LEDGERS_SHARE], 0);
}

/* ---- two CPUs want one slot ---- */

#define OURS 5U
#define THEIRS (OURS + HOST_THREADS) /* points to the same slot */

static void they_claim(void)
{
	assert_non_null(thread_claim(THEIRS, 80, 0, 2000, &host->config));
}

static void they_look(void)
{
	/* Their first slot is being taken; they have another one. */
	they_claim();
	assert_int_equal(host->thread[pp_thread_index(THEIRS, 0, host->config.thread_mask,
					 host->config.thread_seed)].tid,
			 OURS);
}

static void assert_whole(uint32_t tid, uint32_t tgid, uint64_t since_ns)
{
	struct pp_thread *t = thread_find(tid, &host->config);

	assert_non_null(t);
	assert_int_equal(t->id.tgid, tgid);
	assert_int_equal(t->since_ns, since_ns);
	assert_int_equal(t->created_ns, since_ns);
	assert_int_equal(t->sequence & 1, 0);
}

static void assert_both_have_one(void)
{
	assert_null(host->before_claim);
	assert_null(host->before_release);
	assert_whole(OURS, 70, 1000);
	assert_whole(THEIRS, 80, 2000);
	assert_ptr_not_equal(thread_find(OURS, &host->config), thread_find(THEIRS, &host->config));
	assert_int_equal(host->losses[PP_LOSS_THREADS_FULL], 0);
	for (uint32_t i = 0; i < HOST_ENTRIES; i++)
		assert_false(host->claims.entry[i].is_taken);
}

static void claim__another_cpu_is_done_between_look_and_claim(void **state)
{
	(void)state;
	host->config.thread_mask = HOST_THREADS - 1;
	host->before_claim = they_claim;
	assert_non_null(thread_claim(OURS, 70, 0, 1000, &host->config));
	assert_both_have_one();
}

static void claim__another_cpu_comes_meanwhile(void **state)
{
	(void)state;
	host->config.thread_mask = HOST_THREADS - 1;
	host->before_release = they_look;
	assert_non_null(thread_claim(OURS, 70, 0, 1000, &host->config));
	assert_both_have_one();
}

/* The slot's tid is written first: who comes then sees that it is taken; before, the claim
 * tells. */
static void claim__a_slot_that_is_being_taken_is_not_free(void **state)
{
	const uint32_t index = OURS, they = THEIRS;

	(void)state;
	host->config.thread_mask = HOST_THREADS - 1;
	assert_int_equal(bpf_map_update_elem(&slot_claims, &index, &they, BPF_NOEXIST), 0);
	assert_ptr_equal(thread_claim(OURS, 70, 0, 1000, &host->config),
			 &host->thread[pp_thread_index(OURS, 1, host->config.thread_mask,
					 host->config.thread_seed)]);
	assert_int_equal(host->thread[OURS].tid, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(claim__another_cpu_is_done_between_look_and_claim),
		host_test(claim__another_cpu_comes_meanwhile),
		host_test(claim__a_slot_that_is_being_taken_is_not_free),
		switch_test(share__one_users_threads_leave_two_thirds),
		switch_test(share__of_a_thread_that_changes_its_user_stays_with_the_first),
		switch_test(share__of_a_thread_without_a_slot_is_given_back),
		switch_test(share__of_the_ledger_is_what_is_free),
		switch_test(share__of_the_ledger_bounds_all_but_root),
		switch_test(share__last_slot_is_taken_by_who_has_none),
		switch_test(share__follows_an_exec),
		switch_test(slot__one_switch_serves_both_threads),
		switch_test(slot__thread_has_two_places),
		switch_test(slot__full_pair_is_counted),
		switch_test(exit__ledger_and_counters_get_everything),
		switch_test(exit__before_the_reading_leaves_each_window_its_sums),
		switch_test(exit__after_the_reading_counts_nothing_twice),
		switch_test(exit__of_a_blocked_thread_ends_its_wait),
		switch_test(exit__reused_tid_is_another_thread),
		switch_test(exit__slot_given_back_is_empty),
		switch_test(exit__thread_of_an_older_window_keeps_its_slot_with_a_full_ledger),
		switch_test(exec__leaves_times_in_a_slot_while_the_ledger_is_full),
		switch_test(exit__full_ledger_sums_up_who_found_no_row),
		switch_test(slot__full_table_makes_no_total_wrong),
		switch_test(filter__thread_left_out_costs_no_walk_and_appears_nowhere),
		switch_test(filter__thread_left_out_that_exits_gives_its_slot_back),
		switch_test(filter__thread_matches_within_100_ms),
		switch_test(filter__time_before_a_thread_matched_is_nobodys),
		switch_test(filter__thread_that_matches_no_more_is_settled),
		switch_test(exec__times_before_it_are_the_old_programs),
		switch_test(exec__by_another_thread_than_the_leader_leaves_no_slot_behind),
		switch_test(exec__by_the_leader_begins_new_times),
		switch_test(exit__of_a_process_that_never_slept_is_in_its_ledger),
		switch_test(process__that_was_not_known_is_one_in_the_ledger),
		switch_test(running__thread_that_came_once_has_its_time),
		switch_test(running__thread_has_no_time_from_before_it_matched),
	};

	return cmocka_run_group_tests_name("bpf/switch_life", tests, NULL, NULL);
}
