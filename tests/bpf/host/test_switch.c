/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sources: drain/thread_slots.c drain/counts.c */
/* bpf/switch_thread.bpf.c: waits from the switch to the agent's counters, cut at the edges of windows;
 * the life of a thread's slot.  Reasons: test_switch_reason.c; the GIL: test_switch_gil.c. */
#include "switch.h"

/* ---- one wait ---- */

static void wait__is_counted_under_its_stacks_with_its_length(void **state)
{
	const struct pp_stack_record *stack;
	const struct pp_count_key *key;

	(void)state;
	host->kernel_frames = 2;
	host->kernel_stack[0] = 0xffffffff81000100;
	host->kernel_stack[1] = 0xffffffff81000200;
	comes(&one, 1 * MS);
	leaves(&one, 2 * MS);
	comes(&one, 7 * MS);
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

static void wait__at_the_same_place_costs_no_walk_and_adds_up_in_the_slot(void **state)
{
	uint64_t reads;

	(void)state;
	comes(&one, 0);
	leaves(&one, 1 * MS);
	reads = host->user_reads;
	assert_true(reads > 0);
	for (uint64_t i = 1; i < 60; i++) {
		comes(&one, 2 * i * MS);
		leaves(&one, (2 * i + 1) * MS);
	}
	assert_int_equal(host->user_reads, reads);
	assert_int_equal(host->record_count, 1);
	assert_int_equal(slot_of(&one)->sum[0].ns, 59 * MS);
	assert_int_equal(slot_of(&one)->sum[0].events, 60);
	window_close(120 * MS);
	assert_int_equal(harvested.count, 1); /* nothing was in the table */
	assert_waited(&one, PP_WAIT_SLEEP, 60, 60 * MS);
}

/* Callers may differ above the same leaf. */
static void wait__at_the_same_place_is_walked_again_now_and_then(void **state)
{
	uint64_t reads, at = 0;
	int walks = 0;

	(void)state;
	for (uint32_t i = 0; i < 4 * MEMO_USES; i++) {
		reads = host->user_reads;
		comes(&one, at++ * MS);
		leaves(&one, at++ * MS);
		walks += host->user_reads > reads;
	}
	assert_int_equal(walks, 4);
	comes(&one, at++ * MS);
	host->config.epoch++;
	host_drop_records();
	leaves(&one, at++ * MS);
	assert_int_equal(host->record_count, 1);
}

static void wait__at_another_place_moves_the_sum_to_the_counters(void **state)
{
	(void)state;
	comes(&one, 0);
	leaves(&one, 1 * MS);
	comes(&one, 3 * MS);
	actor_stands(&one, 2);
	leaves(&one, 4 * MS);
	assert_int_equal(slot_of(&one)->sum[0].ns, 0);
	assert_int_equal(slot_of(&one)->sum[0].events, 1);
	comes(&one, 10 * MS);
	assert_int_equal(slot_of(&one)->sum[0].ns, 6 * MS);
	window_close(20 * MS);
	assert_int_equal(harvested.count, 2);
	assert_int_not_equal(harvested.entry[0].key.user_stack, harvested.entry[1].key.user_stack);
	assert_int_equal(harvested.entry[0].count.weight, 6 * MS); /* the slot's */
	assert_int_equal(harvested.entry[1].count.weight, 2 * MS);
}

static void wait__of_another_descriptor_is_another_place(void **state)
{
	uint64_t reads;

	(void)state;
	one.regs.orig_rax = __NR_read;
	one.regs.rdi = 5;
	comes(&one, 0);
	leaves(&one, 1 * MS);
	reads = host->user_reads;
	comes(&one, 2 * MS);
	one.regs.rdi = 6;
	leaves(&one, 3 * MS);
	assert_true(host->user_reads > reads);
}

static void wait__shorter_than_asked_for_is_in_the_ledger_only(void **state)
{
	(void)state;
	host->config.wait_min_ns = 2 * MS;
	comes(&one, 0);
	leaves(&one, 1 * MS);
	comes(&one, 2 * MS);
	leaves(&one, 3 * MS);
	comes(&one, 5 * MS);
	window_close(10 * MS);
	assert_int_equal(waited(71, PP_WAIT_NONE).weight, 2 * MS);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_SLEEP], 3 * MS);
}

static void wait__without_a_free_walk_has_no_stack(void **state)
{
	(void)state;
	comes(&one, 0);
	leaves(&one, 1 * MS);
	comes(&one, 2 * MS);
	actor_stands(&one, 2);
	host->scratch_level = PP_WALK_LEVELS;
	host->saved_registers = &one.regs;
	set_time(3 * MS);
	assert_int_equal(on_switch(NULL, false, &one.task, &idle), 0);
	host->scratch_level = 0;
	comes(&one, 7 * MS);
	assert_int_equal(host->losses[PP_LOSS_NO_SCRATCH], 1);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 2, 5 * MS);
	assert_int_equal(harvested.count, 2);
	assert_int_equal(harvested.entry[0].key.user_stack, 0); /* not the first wait's */
	assert_int_equal(harvested.entry[0].count.weight, 4 * MS);
}

static void nobody__paused_idle_and_kernel_threads(void **state)
{
	(void)state;
	host->config.flags = PP_CONFIG_PAUSED;
	comes(&one, 0);
	leaves(&one, 1 * MS);
	assert_int_equal(used_slots(), 0);
	host->config.flags = 0;
	one.task.flags = PF_KTHREAD;
	comes(&one, 2 * MS);
	leaves(&one, 3 * MS);
	switch_at(4 * MS, false, NULL, NULL);
	assert_int_equal(used_slots(), 0);
	assert_int_equal(host->user_reads, 0);
}

/* ---- windows ---- */

static void window__open_wait_is_cut_at_each_edge(void **state)
{
	(void)state;
	comes(&one, 0);
	leaves(&one, 4 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 6 * MS);
	harvest_drop();
	window_close(20 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 0, 10 * MS);
	harvest_drop();
	comes(&one, 23 * MS);
	window_close(30 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 0, 3 * MS);
	harvest_drop();
	window_close(40 * MS);
	assert_int_equal(harvested.count, 0);
}

static void window__wait_that_ends_before_the_reading_is_in_both_windows(void **state)
{
	(void)state;
	comes(&one, 0);
	leaves(&one, 4 * MS);
	window_edge(10 * MS);
	comes(&one, 11 * MS);
	window_harvest();
	assert_waited(&one, PP_WAIT_SLEEP, 1, 6 * MS);
	harvest_drop();
	window_close(20 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 0, 1 * MS);
}

static void window__wait_since_long_ago_that_ends_before_the_reading(void **state)
{
	(void)state;
	comes(&one, 0);
	leaves(&one, 4 * MS);
	window_close(10 * MS);
	window_close(20 * MS);
	harvest_drop();
	window_edge(30 * MS);
	comes(&one, 31 * MS);
	leaves(&one, 32 * MS);
	window_harvest();
	assert_waited(&one, PP_WAIT_SLEEP, 0, 10 * MS);
	harvest_drop();
	window_close(40 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 9 * MS);
}

static void window__sum_of_another_place_stays_with_its_window(void **state)
{
	(void)state;
	comes(&one, 0);
	leaves(&one, 4 * MS);
	comes(&one, 6 * MS);
	window_edge(10 * MS);
	actor_stands(&one, 2);
	leaves(&one, 11 * MS);
	window_harvest();
	assert_int_equal(harvested.count, 1);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 2 * MS);
	harvest_drop();
	window_close(20 * MS);
	assert_int_equal(harvested.count, 1);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 9 * MS);
}

/* A thread's switches by a fixed generator: what it must have waited in the window is added up here. */
struct model {
	struct actor *actor;
	uint64_t changed_ns, off_ns;
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
		comes(model->actor, at_ns);
	} else {
		actor_stands(model->actor, 1 + bpf_get_prandom_u32() % 3);
		if (bpf_get_prandom_u32() % 4)
			leaves(model->actor, at_ns);
		else
			is_preempted(model->actor, at_ns);
	}
	model->is_off = !model->is_off;
}

/* Long waits, short ones, edges within waits, switches between an edge and its reading. */
static void window__nothing_is_lost_or_counted_twice(void **state)
{
	struct model models[2] = {{.actor = &one}, {.actor = &two}};
	uint64_t at = 1;

	(void)state;
	comes(&one, at);
	comes(&two, at);
	for (int window = 0; window < 200; window++) {
		uint64_t off_ns[2];
		uint32_t steps = bpf_get_prandom_u32() % 12;

		for (uint32_t i = 0; i < steps; i++) {
			at += 30 * US + bpf_get_prandom_u32() % (3 * MS);
			model_step(&models[bpf_get_prandom_u32() % 2], at);
		}
		at += 30 * US;
		window_edge(at);
		for (int i = 0; i < 2; i++) {
			model_cut(&models[i], at);
			off_ns[i] = models[i].off_ns;
			models[i].off_ns = 0;
		}
		for (uint32_t i = bpf_get_prandom_u32() % 4; i; i--) {
			at += 30 * US + bpf_get_prandom_u32() % MS;
			model_step(&models[bpf_get_prandom_u32() % 2], at);
		}
		window_harvest();
		for (int i = 0; i < 2; i++)
			assert_int_equal(waited(models[i].actor->task.pid, PP_WAIT_NONE).weight,
					 off_ns[i]);
		harvest_drop();
	}
	assert_int_equal(host->losses[PP_LOSS_WAITS_WEIGHTED], 0);
}

/* ---- the run queue ---- */

static void queue__woken_and_not_running_is_apart_from_the_wait(void **state)
{
	(void)state;
	comes(&one, 0);
	leaves(&one, 1 * MS);
	is_woken(&one, 5 * MS);
	comes(&one, 8 * MS);
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
	comes(&one, 0);
	one.task.sched_info.run_delay = 100 * MS; /* before this wait */
	leaves(&one, 1 * MS);
	one.task.sched_info.run_delay += 2 * MS;
	is_woken(&one, 7 * MS);
	comes(&one, 8 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 4 * MS);
	assert_waited(&one, PP_WAIT_RUN_QUEUE, 0, 3 * MS);
}

static void queue__longer_than_the_wait_is_the_whole_wait(void **state)
{
	(void)state;
	comes(&one, 0);
	leaves(&one, 1 * MS);
	one.task.sched_info.run_delay += 500 * MS;
	comes(&one, 8 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 0);
	assert_waited(&one, PP_WAIT_RUN_QUEUE, 0, 7 * MS);
}

/* CONFIG_FAIR_GROUP_SCHED is off: this queue's clock cannot be had. */
static void queue__without_the_clock_only_other_queues_count(void **state)
{
	(void)state;
	host->missing_field[1] = "next->se.cfs_rq";
	comes(&one, 0);
	leaves(&one, 1 * MS);
	one.task.sched_info.run_delay += 2 * MS;
	is_woken(&one, 7 * MS);
	comes(&one, 8 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 5 * MS);
	assert_waited(&one, PP_WAIT_RUN_QUEUE, 0, 2 * MS);
}

static void queue__woken_before_the_edge_is_cut_there(void **state)
{
	(void)state;
	comes(&one, 0);
	leaves(&one, 1 * MS);
	is_woken(&one, 8 * MS);
	window_edge(10 * MS);
	comes(&one, 11 * MS);
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
	comes(&one, 0);
	is_preempted(&one, 1 * MS);
	comes(&one, 4 * MS);
	is_preempted(&one, 6 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_RUN_QUEUE, 2, 7 * MS);
	assert_waited(&one, PP_WAIT_NONE, 2, 7 * MS);
	comes(&one, 11 * MS);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_RUN_QUEUE], 8 * MS);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_CPU], 3 * MS);
}

/* sched_yield(): its state is "running". */
static void queue__thread_that_yields_is_on_it(void **state)
{
	(void)state;
	comes(&one, 0);
	one.task.__state = 0;
	one.regs.orig_rax = __NR_sched_yield;
	switch_at(1 * MS, false, &one, NULL);
	comes(&one, 3 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_RUN_QUEUE, 1, 2 * MS);
	assert_waited(&one, PP_WAIT_NONE, 1, 2 * MS);
}

/* ---- slots ---- */

static void slot__one_switch_serves_both_threads(void **state)
{
	(void)state;
	comes(&one, 0);
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
	comes(&one, 0);
	comes(&two, 0);
	leaves(&one, 1 * MS);
	leaves(&two, 2 * MS);
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
	comes(&one, 0);
	comes(&two, 1 * MS);
	leaves(&two, 2 * MS);
	leaves(&one, 3 * MS);
	assert_int_equal(host->losses[PP_LOSS_THREADS_FULL], 2);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 7 * MS);
	assert_int_equal(waited(72, PP_WAIT_NONE).weight, 0);
}

static void exit__ledger_and_counters_get_everything(void **state)
{
	const struct pp_ledger_sum *sum;

	(void)state;
	comes(&one, 0);
	leaves(&one, 4 * MS);
	is_woken(&one, 8 * MS);
	comes(&one, 9 * MS);
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
	comes(&two, 16 * MS);
	dies(&two, 18 * MS);
	assert_int_equal(sum->threads, 2);
	assert_int_equal(sum->life_ns, 17 * MS);
	window_close(20 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 4 * MS);
	assert_waited(&one, PP_WAIT_RUN_QUEUE, 0, 1 * MS);
}

static void exit__soon_after_a_window_keeps_its_sum_readable(void **state)
{
	(void)state;
	comes(&one, 0);
	leaves(&one, 4 * MS);
	comes(&one, 9 * MS);
	window_edge(10 * MS);
	leaves(&one, 11 * MS);
	comes(&one, 12 * MS);
	dies(&one, 13 * MS);
	assert_int_equal(used_slots(), 1);
	window_harvest();
	assert_waited(&one, PP_WAIT_SLEEP, 1, 5 * MS);
	harvest_drop();
	window_close(100 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 1 * MS);
	harvest_drop();
	/* Now it is another's. */
	host->config.thread_mask = 0;
	memcpy(&host->thread[0], &host->thread[71 % HOST_THREADS], sizeof(host->thread[0]));
	comes(&two, 13 * MS + THREAD_SETTLE_NS);
	assert_int_equal(host->losses[PP_LOSS_THREADS_FULL], 1);
	comes(&two, 14 * MS + THREAD_SETTLE_NS);
	assert_int_equal(host->thread[0].tid, 72);
	assert_int_equal(host->thread[0].created_ns, START_NS + 14 * MS + THREAD_SETTLE_NS);
	assert_int_equal(host->thread[0].sequence % 2, 0);
}

static void exit__long_after_a_window_frees_the_slot_at_once(void **state)
{
	(void)state;
	comes(&one, 0);
	leaves(&one, 4 * MS);
	comes(&one, 9 * MS);
	window_close(10 * MS);
	dies(&one, 11 * MS + THREAD_SETTLE_NS);
	assert_int_equal(used_slots(), 0);
}

/* An exec by another thread than the leader gives it the leader's tid, at once. */
static void exit__reused_tid_is_another_thread(void **state)
{
	const struct pp_ledger_sum *sum;

	(void)state;
	comes(&one, 0);
	leaves(&one, 4 * MS);
	comes(&one, 9 * MS);
	window_edge(10 * MS);
	dies(&one, 11 * MS);
	comes(&one, 12 * MS);
	assert_non_null(slot_of(&one));
	assert_false(slot_of(&one)->flags & PP_THREAD_GONE);
	window_harvest();
	assert_waited(&one, PP_WAIT_SLEEP, 1, 5 * MS); /* of the one that has gone */
	leaves(&one, 13 * MS);
	comes(&one, 20 * MS);
	dies(&one, 21 * MS);
	sum = ledger_of(70, GENERATION);
	assert_int_equal(sum->threads, 2);
	assert_int_equal(sum->life_ns, 11 * MS + 9 * MS);
	assert_int_equal(ledger_total(sum), sum->life_ns);
}

static void exit__full_ledger_is_counted(void **state)
{
	(void)state;
	host->ledgers.room = 0;
	comes(&one, 0);
	dies(&one, 1 * MS);
	assert_int_equal(host->losses[PP_LOSS_LEDGERS_FULL], 1);
	assert_int_equal(used_slots(), 0);
}

/* ---- who is wanted ---- */

static void filter__unwanted_thread_costs_no_walk_and_appears_nowhere(void **state)
{
	(void)state;
	host->config.flags = PP_CONFIG_FILTER;
	process_add(70, GENERATION, 0);
	comes(&one, 0);
	leaves(&one, 1 * MS);
	comes(&one, 5 * MS);
	leaves(&one, 6 * MS);
	assert_int_equal(host->user_reads, 0);
	assert_int_equal(host->record_count, 0);
	window_close(10 * MS);
	assert_int_equal(harvested.count, 0);
	comes(&one, 11 * MS);
	dies(&one, 12 * MS);
	assert_null(ledger_of(70, GENERATION));
	window_close(20 * MS);
	assert_int_equal(harvested.count, 0);
}

/* Else the threads of everybody fill the table of a profiler that asked for one process. */
static void filter__unwanted_thread_that_exits_gives_its_slot_back(void **state)
{
	(void)state;
	host->config.flags = PP_CONFIG_FILTER;
	process_add(70, GENERATION, 0);
	comes(&one, 0);
	leaves(&one, 1 * MS);
	comes(&one, 5 * MS);
	dies(&one, 6 * MS);
	assert_int_equal(used_slots(), 0);
}

static void filter__thread_becomes_wanted_within_100_ms(void **state)
{
	(void)state;
	host->config.flags = PP_CONFIG_FILTER;
	process_add(70, GENERATION, 0);
	comes(&one, 0);
	leaves(&one, 1 * MS);
	process_add(70, GENERATION, PP_IMAGE_WANTED);
	comes(&one, 50 * MS);
	leaves(&one, 51 * MS);
	assert_int_equal(host->user_reads, 0);
	comes(&one, 130 * MS);
	leaves(&one, 131 * MS);
	comes(&one, 134 * MS);
	window_close(140 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 1, 3 * MS);
}

/* What it did before is not known: it was not looked at. */
static void filter__time_before_a_thread_was_wanted_is_nobodys(void **state)
{
	const struct pp_ledger_sum *sum;

	(void)state;
	host->config.flags = PP_CONFIG_FILTER;
	process_add(70, GENERATION, 0);
	comes(&one, 0);
	leaves(&one, 1 * MS);
	process_add(70, GENERATION, PP_IMAGE_WANTED);
	comes(&one, 5000 * MS);
	leaves(&one, 5001 * MS);
	comes(&one, 5003 * MS);
	dies(&one, 5010 * MS);
	sum = ledger_of(70, GENERATION);
	assert_non_null(sum);
	assert_int_equal(sum->life_ns, 9 * MS);
	assert_int_equal(sum->total_ns[PP_LEDGER_CPU], 7 * MS);
	assert_int_equal(ledger_total(sum), sum->life_ns);
}

static void filter__thread_that_is_no_more_wanted_is_settled(void **state)
{
	const struct pp_ledger_sum *sum;

	(void)state;
	host->config.flags = PP_CONFIG_FILTER;
	comes(&one, 0);
	leaves(&one, 10 * MS);
	comes(&one, 30 * MS);
	process_add(70, GENERATION, 0);
	leaves(&one, 150 * MS);
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
	comes(&one, 0);
	leaves(&one, 10 * MS);
	comes(&one, 30 * MS);
	process_add(70, GENERATION + 1, PP_IMAGE_WANTED);
	leaves(&one, 150 * MS);
	comes(&one, 160 * MS);
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

/* ---- the budget ---- */

#define RANDOM_WAITS 20000U
#define RANDOM_PLACES 200U

/* Each reading of the clock costs 5 us, so that a walk costs 20: 10,000 a second are over 2 % of a CPU
 * ten times.  The error of the weighted sum has a variance that its own shifts tell: a wait of length d
 * that stands for 2^s is missed or overstated, d^2 (2^s - 1) in the mean.  No wait is shorter than its own
 * walk, which would make it longer. */
static void budget__sums_beyond_it_stay_true(void **state)
{
	double variance = 0, error;
	uint64_t truth_ns = 0, walks = 0, start_ns;

	(void)state;
	host->random = 20240229;
	host->config.miss_tokens = 0;
	for (uint32_t i = 1; i <= RANDOM_PLACES; i++)
		*library_rule(i) = rule_sp(16);
	comes(&one, 0);
	start_ns = host->now_ns;
	host->ns_a_reading = 5 * US;
	for (uint32_t i = 0; i < RANDOM_WAITS; i++) {
		uint32_t length_us = 40 + bpf_get_prandom_u32() % 60;
		uint64_t left_ns, came_ns;

		if (bpf_get_prandom_u32() % 100 == 0)
			length_us *= 20; /* few long ones are a sixth of the sum */
		actor_stands(&one, 1 + i % RANDOM_PLACES);
		one.task.__state = INTERRUPTIBLE;
		host->saved_registers = &one.regs;
		on_switch(NULL, false, &one.task, &idle);
		left_ns = slot_of(&one)->since_ns;
		walks += !(slot_of(&one)->flags & PP_THREAD_SKIPPED);
		host_drop_records();
		host->now_ns = left_ns + length_us * US;
		on_switch(NULL, false, &idle, &one.task);
		came_ns = slot_of(&one)->since_ns;
		truth_ns += came_ns - left_ns;
		variance += (double)(came_ns - left_ns) * (double)(came_ns - left_ns) *
			    (double)((1U << slot_of(&one)->weight_shift) - 1);
		host->now_ns += 10 * US;
	}
	host->ns_a_reading = 0;
	window_close(host->now_ns - START_NS);
	error = (double)waited(71, PP_WAIT_SLEEP).weight - (double)truth_ns;
	assert_true(variance > 0);
	assert_true(error * error < 25 * variance);
	/* The test is sharp: 5 sigma are less than a third of the sum. */
	assert_true(25 * variance < (double)truth_ns / 3 * (double)truth_ns / 3);
	/* 2 %, the credit of the start, and the debt that is allowed. */
	assert_true(walks * 20 * US < (host->now_ns - start_ns) / 50 + 2 * BUDGET_CREDIT_NS);
	assert_true(walks > 1000);
	assert_true(host->losses[PP_LOSS_WAITS_WEIGHTED] > walks / 2);
	/* The ledger is exact all the same. */
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_SLEEP], truth_ns);
}

static void budget__is_not_touched_at_known_places(void **state)
{
	(void)state;
	comes(&one, 0);
	leaves(&one, 1 * MS);
	host->switch_state.budget =
		(struct budget){.started_ns = host->now_ns, .credit_ns = -1, .shift = 14};
	for (uint64_t i = 1; i < 50; i++) {
		comes(&one, 2 * i * MS);
		leaves(&one, (2 * i + 1) * MS);
	}
	window_close(100 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 50, 50 * MS);
	assert_int_equal(host->switch_state.budget.credit_ns, -1);
}

/* A wait that was left out is not in the counters, while it goes on neither. */
static void budget__wait_left_out_is_in_the_ledger_only(void **state)
{
	(void)state;
	comes(&one, 0);
	host->switch_state.budget =
		(struct budget){.started_ns = START_NS, .credit_ns = -1, .shift = 14};
	leaves(&one, 1 * MS);
	assert_true(slot_of(&one)->flags & PP_THREAD_SKIPPED);
	window_close(10 * MS);
	comes(&one, 12 * MS);
	window_close(20 * MS);
	assert_int_equal(waited(71, PP_WAIT_NONE).weight, 0);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_SLEEP], 11 * MS);
	assert_false(slot_of(&one)->flags & PP_THREAD_SKIPPED);
}

static void budget__halves_and_doubles_the_share(void **state)
{
	struct budget budget = {.credit_ns = -1};
	uint64_t now_ns = 0;

	(void)state;
	budget_tick(&budget, BUDGET_PERIOD_NS - 1);
	assert_int_equal(budget.shift, 0);
	for (int i = 0; i < 100; i++) {
		budget_spend(&budget, BUDGET_PERIOD_SPEND_NS + 1);
		budget_tick(&budget, now_ns += BUDGET_PERIOD_NS);
	}
	assert_int_equal(budget.shift, BUDGET_MAX_SHIFT);
	budget_spend(&budget, 1000000000);
	budget_tick(&budget, now_ns += BUDGET_PERIOD_NS);
	assert_int_equal(budget.credit_ns, -BUDGET_CREDIT_NS);
	for (int i = 0; i < 300; i++)
		budget_tick(&budget, now_ns += BUDGET_PERIOD_NS);
	assert_int_equal(budget.shift, 0);
	assert_int_equal(budget.credit_ns, BUDGET_CREDIT_NS);
	/* What is spent is less than what comes in: the debt goes away by itself. */
	budget = (struct budget){
		.started_ns = now_ns, .credit_ns = -BUDGET_CREDIT_NS, .shift = 5};
	for (int i = 0; i < 100; i++) {
		budget_spend(&budget, BUDGET_PERIOD_SPEND_NS / 2);
		budget_tick(&budget, now_ns += BUDGET_PERIOD_NS);
	}
	assert_int_equal(budget.shift, 5);
	assert_int_equal(budget.credit_ns, -BUDGET_CREDIT_NS / 2);
	/* A long time without waits is not saved up. */
	budget.credit_ns = 0;
	budget_tick(&budget, now_ns + (1ULL << 60));
	assert_int_equal(budget.credit_ns, BUDGET_CREDIT_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		switch_test(wait__is_counted_under_its_stacks_with_its_length),
		switch_test(wait__at_the_same_place_costs_no_walk_and_adds_up_in_the_slot),
		switch_test(wait__at_the_same_place_is_walked_again_now_and_then),
		switch_test(wait__at_another_place_moves_the_sum_to_the_counters),
		switch_test(wait__of_another_descriptor_is_another_place),
		switch_test(wait__shorter_than_asked_for_is_in_the_ledger_only),
		switch_test(wait__without_a_free_walk_has_no_stack),
		switch_test(nobody__paused_idle_and_kernel_threads),
		switch_test(window__open_wait_is_cut_at_each_edge),
		switch_test(window__wait_that_ends_before_the_reading_is_in_both_windows),
		switch_test(window__wait_since_long_ago_that_ends_before_the_reading),
		switch_test(window__sum_of_another_place_stays_with_its_window),
		switch_test(window__nothing_is_lost_or_counted_twice),
		switch_test(queue__woken_and_not_running_is_apart_from_the_wait),
		switch_test(queue__time_on_other_queues_counts),
		switch_test(queue__longer_than_the_wait_is_the_whole_wait),
		switch_test(queue__without_the_clock_only_other_queues_count),
		switch_test(queue__woken_before_the_edge_is_cut_there),
		switch_test(queue__preempted_thread_is_nowhere_else),
		switch_test(queue__thread_that_yields_is_on_it),
		switch_test(slot__one_switch_serves_both_threads),
		switch_test(slot__thread_has_two_places),
		switch_test(slot__full_pair_is_counted),
		switch_test(exit__ledger_and_counters_get_everything),
		switch_test(exit__soon_after_a_window_keeps_its_sum_readable),
		switch_test(exit__long_after_a_window_frees_the_slot_at_once),
		switch_test(exit__reused_tid_is_another_thread),
		switch_test(exit__full_ledger_is_counted),
		switch_test(filter__unwanted_thread_costs_no_walk_and_appears_nowhere),
		switch_test(filter__unwanted_thread_that_exits_gives_its_slot_back),
		switch_test(filter__thread_becomes_wanted_within_100_ms),
		switch_test(filter__time_before_a_thread_was_wanted_is_nobodys),
		switch_test(filter__thread_that_is_no_more_wanted_is_settled),
		switch_test(exec__times_before_it_are_the_old_programs),
		switch_test(budget__sums_beyond_it_stay_true),
		switch_test(budget__is_not_touched_at_known_places),
		switch_test(budget__wait_left_out_is_in_the_ledger_only),
		switch_test(budget__halves_and_doubles_the_share),
	};

	return cmocka_run_group_tests_name("bpf/switch", tests, NULL, NULL);
}
