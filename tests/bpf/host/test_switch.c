/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/switch_thread.bpf.c: one wait, a thread's wait sites, the part on the run queue.  Windows:
 * test_switch_window.c; the lifecycle of threads: test_switch_life.c; the budget:
 * test_switch_budget.c; reasons: test_switch_reason.c; the GIL: test_switch_gil.c. */
#include "switch.h"

#include <math.h>

/* ---- one wait ---- */

static void wait__is_counted_under_its_stacks_with_its_length(void **state)
{
	const struct pp_stack_record *stack;
	const struct pp_count_key *key;

	(void)state;
	host->kernel_frames = 2;
	host->kernel_stack[0] = 0xffffffff81000100;
	host->kernel_stack[1] = 0xffffffff81000200;
	switch_in(&one, 1 * MS);
	switch_out(&one, 2 * MS);
	switch_in(&one, 7 * MS);
	window_close(10 * MS);
	assert_int_equal(host->record_count, 2);
	stack = host->record[1].data;
	assert_int_equal(stack->record.type, PP_RECORD_STACK);
	assert_int_equal(stack->native_stored, 2);
	assert_int_equal(stack->frame[0].where, FUNCTION_BYTES + 0x10);
	assert_int_equal(harvested.count, 1);
	key = &harvested.entry[0].key;
	assert_int_equal(key->user_stack, stack->hash);
	assert_int_equal(key->kernel_stack,
			 ((const struct pp_kernel_record *)host->record[0].data)->hash);
	assert_int_equal(key->id.tgid, 70);
	assert_int_equal(key->id.generation, GENERATION);
	assert_int_equal(key->flags >> PP_COUNT_STOP_SHIFT & 0xff, PP_STOP_ROOT);
	assert_int_equal(key->flags >> PP_COUNT_PY_STOP_SHIFT & 0xff, PP_PY_STOP_NOT_PYTHON);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 5 * MS);
	assert_waited(&one, PP_WAIT_NONE, 1, 5 * MS);
}

static void wait__at_the_same_site_costs_no_walk_and_adds_up_in_the_slot(void **state)
{
	uint64_t reads;

	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	sites_rest(&one);
	reads = host->user_reads;
	assert_true(reads > 0);
	for (uint64_t i = 1; i < 30; i++) {
		switch_in(&one, 2 * i * MS);
		switch_out(&one, (2 * i + 1) * MS);
	}
	assert_int_equal(host->user_reads, reads);
	assert_int_equal(host->record_count, 1);
	assert_int_equal(sum_of(&one)->ns, 29 * MS);
	assert_int_equal(sum_of(&one)->events, 30);
	window_close(60 * MS);
	assert_int_equal(harvested.count, 1); /* nothing was in the table */
	assert_waited(&one, PP_WAIT_SLEEP, 30, 30 * MS);
}

/* Callers may differ above the same leaf: less often, the more walks agree. */
static void wait__at_the_same_site_is_walked_again_now_and_then(void **state)
{
	uint64_t reads, at = 0;
	int walks = 0;

	(void)state;
	for (uint32_t i = 0; i < 128000; i++) {
		reads = host->user_reads;
		switch_in(&one, at++ * 100 * US);
		switch_out(&one, at++ * 100 * US);
		walks += host->user_reads > reads;
	}
	/* 5,000 a second: one in 256 comes 50 ms after the last one, in the mean; more in the
	 * beginning. */
	assert_int_equal(wait_site_of(&one)->limit, 256);
	assert_in_range(walks, 128000 / 256 - 5 * 23, 128000 / 256 + 5 * 23 + 8);
	assert_int_equal(host->record_count, 1);
	switch_in(&one, at++ * 100 * US);
	host->config.epoch++;
	host_drop_records();
	switch_out(&one, at++ * 100 * US);
	assert_int_equal(host->record_count, 1);
}

/* Each use of a site for itself, so no pattern of uses is met more often than others. */
static void chance__gap_is_that_of_independent_uses(void **state)
{
	(void)state;
	assert_int_equal(chance_gap(0), 1);
	assert_int_equal(chance_gap(1), 1);
	for (uint32_t limit = 2; limit <= 65536; limit *= 2) {
		const uint32_t draws = 200000;
		double sum = 0, half = 0, long_ones = 0, even = 0, wanted;

		for (uint32_t i = 0; i < draws; i++) {
			const int gap = chance_gap(limit);

			assert_true(gap >= 1);
			sum += gap;
			half += gap <= (int)limit / 2;
			long_ones += gap > (int)limit * 3;
			even += gap % 2 == 0;
		}
		wanted = limit; /* its deviation: about as much */
		assert_true(sum / draws > wanted * 0.985 && sum / draws < wanted * 1.015);
		wanted = 1 - pow(1 - 1.0 / limit, limit / 2);
		assert_true(half / draws > wanted - 0.01 && half / draws < wanted + 0.01);
		wanted = pow(1 - 1.0 / limit, limit * 3.0);
		assert_true(long_ones / draws > wanted - 0.005 &&
			    long_ones / draws < wanted + 0.005);
		wanted = (limit - 1.0) / (2.0 * limit - 1);
		assert_true(even / draws > wanted - 0.01 && even / draws < wanted + 0.01);
	}
}

static void wait__of_another_descriptor_is_another_site(void **state)
{
	uint64_t reads;

	(void)state;
	one.regs.orig_rax = __NR_read;
	one.regs.rdi = 5;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	reads = host->user_reads;
	switch_in(&one, 2 * MS);
	one.regs.rdi = 6;
	switch_out(&one, 3 * MS);
	assert_true(host->user_reads > reads);
}

/* Nobody knows where it was: it is counted as lost, and in the ledger. */
static void wait__without_a_free_walk_is_under_no_stack(void **state)
{
	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	switch_in(&one, 2 * MS);
	actor_stands(&one, 2);
	take_scratch(true);
	switch_out(&one, 3 * MS);
	take_scratch(false);
	switch_in(&one, 7 * MS);
	assert_int_equal(host->losses[PP_LOSS_NO_SCRATCH], 1);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_SLEEP], 5 * MS);
	switch_out(&one, 8 * MS);
	switch_in(&one, 10 * MS);
	window_close(20 * MS);
	assert_int_equal(harvested.count, 2);
	assert_waited(&one, PP_WAIT_SLEEP, 2, 3 * MS);
}

static void nobody__paused_idle_and_kernel_threads(void **state)
{
	(void)state;
	host->config.flags = PP_CONFIG_PAUSED;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	assert_int_equal(used_slots(), 0);
	host->config.flags = 0;
	one.task.flags = PF_KTHREAD;
	switch_in(&one, 2 * MS);
	switch_out(&one, 3 * MS);
	switch_at(4 * MS, false, NULL, NULL);
	assert_int_equal(used_slots(), 0);
	assert_int_equal(host->user_reads, 0);
}

/* ---- the clock ---- */

static uint64_t readings(void)
{
	return host->now_ns & 0xff; /* each takes a nanosecond */
}

static void clock__is_read_once_a_millisecond_and_follows_the_queues(void **state)
{
	(void)state;
	host->ns_a_reading = 1;
	switch_in(&one, 0);
	switch_out(&one, 256 * US); /* a walk, which reads it as well */
	switch_in(&one, 512 * US);
	assert_int_equal(readings(), 0);
	assert_int_equal(slot_of(&one)->since_ns, START_NS + 512 * US);
	switch_out(&one, 768 * US);
	assert_int_equal(readings(), 0);
	switch_in(&one, 1024 * US);
	assert_int_equal(readings(), 1);
}

static void clock__of_the_queue_that_jumps_back_is_not_followed(void **state)
{
	(void)state;
	switch_in(&one, 0);
	set_time(100 * MS);
	run_queue.clock = 5;
	host->saved_registers = &one.regs;
	one.task.__state = INTERRUPTIBLE;
	assert_int_equal(on_switch(NULL, false, &one.task, &idle), 0);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_CPU], 100 * MS);
}

/* ---- wait sites ---- */

/* One wait in function `function`, `ns` long, from at_ns on. */
static void waits_in(struct actor *actor, uint32_t function, uint64_t at_ns, uint64_t ns)
{
	actor_stands(actor, function);
	switch_out(actor, at_ns);
	switch_in(actor, at_ns + ns);
}

/* What was harvested under the stack whose leaf is the library's function `function`. */
static struct pp_count waited_in(uint32_t function)
{
	struct pp_count sum = {};

	for (uint32_t i = 0; i < host->record_count; i++) {
		const struct pp_stack_record *stack = host->record[i].data;

		if (stack->record.type != PP_RECORD_STACK ||
		    stack->frame[0].where != function * FUNCTION_BYTES + 0x10)
			continue;
		for (size_t k = 0; k < harvested.count; k++) {
			if (harvested.entry[k].key.user_stack != stack->hash)
				continue;
			sum.samples += harvested.entry[k].count.samples;
			sum.weight += harvested.entry[k].count.weight;
		}
	}
	return sum;
}

static uint32_t counters_used(uint32_t window)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < HOST_ENTRIES; i++)
		used += host->waits[window & 1].entry[i].is_taken;
	return used;
}

static void wait_site__three_in_turn_cost_three_walks_and_no_table(void **state)
{
	uint64_t reads;

	(void)state;
	switch_in(&one, 0);
	for (uint64_t i = 0; i < 30; i++) {
		if (i == 3)
			reads = host->user_reads;
		sites_rest(&one);
		waits_in(&one, 1 + i % 3, (10 * i + 1) * MS, (1 + i % 3) * MS);
	}
	assert_int_equal(host->user_reads, reads);
	assert_int_equal(host->record_count, 3);
	assert_int_equal(counters_used(6), 0);
	window_close(300 * MS);
	assert_int_equal(harvested.count, 3);
	for (uint32_t i = 1; i <= 3; i++) {
		assert_int_equal(waited_in(i).weight, 10 * i * MS);
		assert_int_equal(waited_in(i).samples, 10);
	}
}

static void wait_site__fourth_moves_the_sums_of_the_oldest_to_the_counters(void **state)
{
	uint64_t reads;

	(void)state;
	switch_in(&one, 0);
	for (uint32_t i = 1; i <= 3; i++)
		waits_in(&one, i, 10 * i * MS, i * MS);
	assert_int_equal(counters_used(6), 0);
	waits_in(&one, 4, 40 * MS, 4 * MS);
	assert_int_equal(counters_used(6), 1);
	sites_rest(&one);
	reads = host->user_reads;
	waits_in(&one, 2, 50 * MS, 5 * MS); /* two and three are still there */
	waits_in(&one, 3, 60 * MS, 6 * MS);
	assert_int_equal(host->user_reads, reads);
	assert_int_equal(counters_used(6), 1);
	waits_in(&one, 1, 70 * MS, 7 * MS);
	assert_true(host->user_reads > reads);
	window_close(100 * MS);
	assert_int_equal(waited_in(1).weight, 8 * MS);
	assert_int_equal(waited_in(2).weight, 7 * MS);
	assert_int_equal(waited_in(3).weight, 9 * MS);
	assert_int_equal(waited_in(4).weight, 4 * MS);
	assert_int_equal(waited_in(1).samples, 2);
	assert_waited(&one, PP_WAIT_SLEEP, 7, 28 * MS);
}

/* Its queue part goes under the same stack. */
static void wait_site__that_gives_way_takes_its_queue_part_along(void **state)
{
	(void)state;
	switch_in(&one, 0);
	actor_stands(&one, 1);
	switch_out(&one, 1 * MS);
	is_woken(&one, 3 * MS);
	switch_in(&one, 8 * MS);
	for (uint32_t i = 2; i <= 4; i++)
		waits_in(&one, i, 10 * i * MS, i * MS);
	assert_int_equal(counters_used(6), 2);
	window_close(100 * MS);
	assert_int_equal(waited_in(1).weight, 7 * MS);
	assert_int_equal(waited_in(1).samples, 1);
	assert_waited(&one, PP_WAIT_RUN_QUEUE, 0, 5 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 4, 11 * MS);
}

static void wait_site__full_table_of_counters_is_counted(void **state)
{
	(void)state;
	host->waits[0].room = 0;
	switch_in(&one, 0);
	for (uint32_t i = 1; i <= 4; i++)
		waits_in(&one, i, 10 * i * MS, i * MS);
	assert_int_equal(host->losses[PP_LOSS_WAITS_FULL], 1);
	assert_int_equal(host->losses[PP_LOSS_COUNTS_FULL], 0);
	window_close(100 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 3, 9 * MS);
	assert_int_equal(waited(0, PP_WAIT_SLEEP).samples, 1); /* with its reason, of its process */
	assert_int_equal(waited(0, PP_WAIT_SLEEP).weight, 1 * MS);
}

/* A preempted thread's registers are anything, so its argument is no site; a waiting one's are. */
static void wait_site__of_a_preempted_thread_is_not_that_of_a_wait(void **state)
{
	uint64_t reads;

	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	switch_in(&one, 3 * MS);
	is_preempted(&one, 4 * MS);
	switch_in(&one, 8 * MS);
	reads = host->user_reads;
	one.regs.rdi = 99;
	is_preempted(&one, 9 * MS);
	assert_int_equal(host->user_reads, reads);
	switch_in(&one, 10 * MS);
	window_close(20 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 2 * MS);
	assert_waited(&one, PP_WAIT_RUN_QUEUE, 2, 5 * MS);
}

/* A waker on another CPU is faster than the program: the thread's own state is WAKING by then. */
static void wait_site__is_the_same_when_a_waker_is_faster(void **state)
{
	uint64_t reads;

	for (int is_told = 0; is_told < 2; is_told++) {
		switch_tells_state = is_told;
		switch_arguments[3] = UNINTERRUPTIBLE;
		switch_in(&one, 0);
		one.task.__state = is_told ? UNINTERRUPTIBLE : INTERRUPTIBLE;
		switch_at(1 * MS, false, &one, NULL);
		switch_in(&one, 3 * MS);
		reads = host->user_reads;
		one.task.__state = STATE_WAKING;
		switch_at(4 * MS, false, &one, NULL);
		assert_int_equal(host->user_reads, reads);
		assert_int_equal(sum_of(&one)->events, 2);
		switch_teardown(state);
		switch_setup(state);
	}
	switch_tells_state = false;
}

/* A signal was pending: it leaves the CPU, and the scheduler keeps it on the queue. */
static void queue__thread_with_a_signal_is_on_it(void **state)
{
	(void)state;
	switch_tells_state = true;
	switch_arguments[3] = INTERRUPTIBLE;
	switch_in(&one, 0);
	one.task.__state = 0;
	switch_at(1 * MS, false, &one, NULL);
	switch_tells_state = false;
	assert_int_equal(slot_of(&one)->wait, PP_WAIT_RUN_QUEUE);
}

/* A sample of the thread, in function `function`. */
static uint64_t sampled_in(struct actor *actor, uint32_t function)
{
	host->walk.tid = actor->task.pid;
	host->walk.has_user = 1;
	host->walk.hash = 0x5000 + function;
	host->walk.stop = PP_STOP_ROOT;
	assert_int_equal(thread_sampled(0), 0);
	return host->walk.hash;
}

/* It stands anywhere: that costs no walk, and pushes no wait out of its site. */
/* Of a thread, by what it was called. */
static uint64_t waited_as(const char *comm)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < harvested.count; i++)
		if (!strcmp(harvested.entry[i].key.comm, comm))
			ns += harvested.entry[i].count.weight;
	return ns;
}

/* Servers name a thread after the request that it works at. */
static void wait_site__is_another_one_under_another_name(void **state)
{
	(void)state;
	host->cred.euid.val = 1000;
	one.task.cred = &host->cred;
	switch_in(&one, 0);
	for (uint64_t i = 0; i < 6; i++) {
		snprintf(one.task.comm, sizeof(one.task.comm), i % 3 ? "GET /list" : "GET /report");
		switch_out(&one, (10 * i + 1) * MS);
		switch_in(&one, (10 * i + (i % 3 ? 2 : 8)) * MS);
	}
	window_close(60 * MS);
	assert_int_equal(waited_as("GET /report"), 14 * MS);
	assert_int_equal(waited_as("GET /list"), 4 * MS);
	for (size_t i = 0; i < harvested.count; i++)
		assert_int_equal(harvested.entry[i].key.euid, 1001);
}

static void preempted__thread_that_is_renamed_is_so_from_then_on(void **state)
{
	(void)state;
	switch_in(&one, 0);
	is_preempted(&one, 1 * MS);
	switch_in(&one, 4 * MS);
	is_preempted(&one, 5 * MS);
	switch_in(&one, 6 * MS);
	snprintf(one.task.comm, sizeof(one.task.comm), "GET /list");
	is_preempted(&one, 7 * MS);
	switch_in(&one, 9 * MS);
	window_close(10 * MS);
	assert_int_equal(waited_as("worker"), 4 * MS);
	assert_int_equal(waited_as("GET /list"), 2 * MS);
}

static void preempted__thread_stands_where_its_last_sample_was(void **state)
{
	uint64_t reads, stack[2];

	(void)state;
	host->config.flags |= PP_CONFIG_SEE_RUNNING;
	switch_in(&one, 0);
	for (uint32_t i = 1; i <= 3; i++)
		waits_in(&one, i, 10 * i * MS, i * MS);
	sites_rest(&one);
	reads = host->user_reads;
	for (uint32_t i = 0; i < 20; i++) {
		stack[i / 10] = sampled_in(&one, 50 + i / 10);
		actor_stands(&one, 100 + i);
		is_preempted(&one, (100 + 2 * i) * MS);
		switch_in(&one, (101 + 2 * i) * MS);
	}
	assert_int_equal(host->user_reads, reads);
	assert_int_equal(counters_used(6), 1); /* the first sample's */
	for (uint32_t i = 1; i <= 3; i++)
		waits_in(&one, i, (200 + 10 * i) * MS, i * MS);
	window_close(300 * MS);
	assert_waited(&one, PP_WAIT_RUN_QUEUE, 20, 20 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 6, 12 * MS);
	for (size_t i = 0; i < harvested.count; i++) {
		const struct counted *row = &harvested.entry[i];

		if (key_wait(&row->key) != PP_WAIT_RUN_QUEUE)
			continue;
		assert_true(row->key.flags & PP_COUNT_EARLIER);
		assert_true(row->key.user_stack == stack[0] || row->key.user_stack == stack[1]);
		assert_int_equal(row->key.kernel_stack, 0);
	}
}

/* No sample yet: the stack of its last wait is near. */
static void preempted__thread_without_a_sample_stands_at_its_last_walk(void **state)
{
	(void)state;
	host->config.flags |= PP_CONFIG_SEE_RUNNING;
	switch_in(&one, 0);
	waits_in(&one, 2, 1 * MS, 1 * MS);
	actor_stands(&one, 9);
	is_preempted(&one, 3 * MS);
	switch_in(&one, 4 * MS);
	assert_int_equal(host->record_count, 1);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_RUN_QUEUE, 1, 1 * MS);
	assert_int_equal(waited_in(2).weight, 2 * MS);
}

/* Neither: one walk tells. */
static void preempted__thread_that_nobody_has_seen_is_walked(void **state)
{
	(void)state;
	host->config.flags |= PP_CONFIG_SEE_RUNNING;
	switch_in(&one, 0);
	actor_stands(&one, 9);
	is_preempted(&one, 3 * MS);
	switch_in(&one, 4 * MS);
	assert_int_equal(host->record_count, 1);
	window_close(10 * MS);
	assert_int_equal(waited_in(9).weight, 1 * MS);
	assert_false(harvested.entry[0].key.flags & PP_COUNT_EARLIER);
}

/* Before 5.15 no helper tells of the registers: they lie at the top of the kernel stack. */
static void wait_site__is_the_same_on_a_kernel_without_task_pt_regs(void **state)
{
	uint8_t *stack = calloc(1, THREAD_BYTES);
	struct pt_regs *top = (void *)(stack + THREAD_BYTES - sizeof(*top));
	uint64_t reads;

	(void)state;
	assert_non_null(stack);
	host->missing_helper = true;
	one.task.stack = stack;
	switch_in(&one, 0);
	*top = one.regs;
	switch_out(&one, 1 * MS);
	assert_int_equal(host->record_count, 1);
	reads = host->user_reads;
	switch_in(&one, 3 * MS);
	switch_out(&one, 4 * MS);
	assert_int_equal(host->user_reads, reads);
	switch_in(&one, 9 * MS);
	top->rdi = 7;
	switch_out(&one, 10 * MS);
	assert_true(host->user_reads > reads);
	window_close(20 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 3, 17 * MS);
	free(stack);
}

/* ---- the run queue ---- */

static void queue__woken_and_not_running_is_apart_from_the_wait(void **state)
{
	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	is_woken(&one, 5 * MS);
	switch_in(&one, 8 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 4 * MS);
	assert_waited(&one, PP_WAIT_RUN_QUEUE, 0, 3 * MS);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_SLEEP], 4 * MS);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_RUN_QUEUE], 3 * MS);
}

/* Woken on another CPU, where it waited 2 ms, and moved here. */
static void queue__time_on_other_queues_counts(void **state)
{
	(void)state;
	switch_in(&one, 0);
	one.task.sched_info.run_delay = 100 * MS; /* before this wait */
	switch_out(&one, 1 * MS);
	one.task.sched_info.run_delay += 2 * MS;
	is_woken(&one, 7 * MS);
	switch_in(&one, 8 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 4 * MS);
	assert_waited(&one, PP_WAIT_RUN_QUEUE, 0, 3 * MS);
}

static void queue__longer_than_the_wait_is_the_whole_wait(void **state)
{
	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	one.task.sched_info.run_delay += 500 * MS;
	switch_in(&one, 8 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 0);
	assert_waited(&one, PP_WAIT_RUN_QUEUE, 0, 7 * MS);
}

/* CONFIG_FAIR_GROUP_SCHED is off: this queue's clock cannot be had. */
static void queue__without_the_clock_only_other_queues_count(void **state)
{
	(void)state;
	host->missing_field[1] = "task->se.cfs_rq";
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	one.task.sched_info.run_delay += 2 * MS;
	is_woken(&one, 7 * MS);
	switch_in(&one, 8 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 5 * MS);
	assert_waited(&one, PP_WAIT_RUN_QUEUE, 0, 2 * MS);
}

static void queue__woken_before_the_edge_is_cut_there(void **state)
{
	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	is_woken(&one, 8 * MS);
	window_edge(10 * MS);
	switch_in(&one, 11 * MS);
	window_harvest();
	assert_waited(&one, PP_WAIT_SLEEP, 1, 7 * MS);
	assert_waited(&one, PP_WAIT_RUN_QUEUE, 0, 2 * MS);
	harvest_drop();
	window_close(20 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 0, 0);
	assert_waited(&one, PP_WAIT_RUN_QUEUE, 0, 1 * MS);
}

static void queue__preempted_thread_is_nowhere_else(void **state)
{
	(void)state;
	switch_in(&one, 0);
	is_preempted(&one, 1 * MS);
	switch_in(&one, 4 * MS);
	is_preempted(&one, 6 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_RUN_QUEUE, 2, 7 * MS);
	assert_waited(&one, PP_WAIT_NONE, 2, 7 * MS);
	switch_in(&one, 11 * MS);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_RUN_QUEUE], 8 * MS);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_CPU], 3 * MS);
}

/* sched_yield(): its state is "running". */
static void queue__thread_that_yields_is_on_it(void **state)
{
	(void)state;
	switch_in(&one, 0);
	one.task.__state = 0;
	one.regs.orig_rax = __NR_sched_yield;
	switch_at(1 * MS, false, &one, NULL);
	switch_in(&one, 3 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_RUN_QUEUE, 1, 2 * MS);
	assert_waited(&one, PP_WAIT_NONE, 1, 2 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		switch_test(wait__is_counted_under_its_stacks_with_its_length),
		switch_test(wait__at_the_same_site_costs_no_walk_and_adds_up_in_the_slot),
		switch_test(wait__at_the_same_site_is_walked_again_now_and_then),
		switch_test(chance__gap_is_that_of_independent_uses),
		switch_test(wait__of_another_descriptor_is_another_site),
		switch_test(wait__without_a_free_walk_is_under_no_stack),
		switch_test(nobody__paused_idle_and_kernel_threads),
		switch_test(clock__is_read_once_a_millisecond_and_follows_the_queues),
		switch_test(clock__of_the_queue_that_jumps_back_is_not_followed),
		switch_test(wait_site__three_in_turn_cost_three_walks_and_no_table),
		switch_test(wait_site__fourth_moves_the_sums_of_the_oldest_to_the_counters),
		switch_test(wait_site__that_gives_way_takes_its_queue_part_along),
		switch_test(wait_site__full_table_of_counters_is_counted),
		switch_test(wait_site__is_another_one_under_another_name),
		switch_test(preempted__thread_that_is_renamed_is_so_from_then_on),
		switch_test(wait_site__of_a_preempted_thread_is_not_that_of_a_wait),
		switch_test(preempted__thread_stands_where_its_last_sample_was),
		switch_test(preempted__thread_without_a_sample_stands_at_its_last_walk),
		switch_test(preempted__thread_that_nobody_has_seen_is_walked),
		switch_test(wait_site__is_the_same_when_a_waker_is_faster),
		switch_test(queue__thread_with_a_signal_is_on_it),
		switch_test(wait_site__is_the_same_on_a_kernel_without_task_pt_regs),
		switch_test(queue__woken_and_not_running_is_apart_from_the_wait),
		switch_test(queue__time_on_other_queues_counts),
		switch_test(queue__longer_than_the_wait_is_the_whole_wait),
		switch_test(queue__without_the_clock_only_other_queues_count),
		switch_test(queue__woken_before_the_edge_is_cut_there),
		switch_test(queue__preempted_thread_is_nowhere_else),
		switch_test(queue__thread_that_yields_is_on_it),
	};

	return cmocka_run_group_tests_name("bpf/switch", tests, NULL, NULL);
}
