/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All of bpf/switch_thread.bpf.c on one CPU, with the agent's side of a window: threads are
 * switched in and out at times that the test sets, and the agent reads the results.  Times are ns
 * from the start. */
#ifndef TESTS_BPF_HOST_SWITCH_H
#define TESTS_BPF_HOST_SWITCH_H

#define HOST_SWITCH_PROGRAM
#include "host.h"

#include "drain/thread_slots.h"
#include "drain/wait_shares.h"

#define US 1000ULL
#define MS 1000000ULL
#define START_NS 1000000000000ULL /* CLOCK_MONOTONIC: the machine is up a while */
#define QUEUE_CLOCK_NS 777777ULL  /* the run queue's clock is another one */
#define INTERRUPTIBLE 1U
#define UNINTERRUPTIBLE 2U
#define DEAD 0x80U
#define USER_CODE 0x33
#define SAVED_REGISTERS_AT 16216
#define GENERATION 3U
#define SWITCH_BUDGET_NS 50000U

struct actor {
	struct task_struct task;
	struct pt_regs regs;
};

static struct actor one, two;
static struct task_struct idle;
static struct rq run_queue;
static struct cfs_rq fair_queue = {.rq = &run_queue};
static struct counts harvested; /* all windows that were harvested */
static struct counts undivided; /* of the window that is harvested */
static uint64_t ledger_ns; /* of each process and reason in a window; 0: nobody knows */
static uint64_t switch_arguments[4]; /* of the tracepoint; only the last one is read there */
static uint64_t window_start_ns[2]; /* of the open window, of the one before */

/* ---- threads ---- */

/* In the library's function `function`, called by the root. */
static inline void actor_stands(struct actor *actor, uint32_t function)
{
	*library_rule(function) = rule_sp(16);
	actor->regs.rip = library_pc(function);
	put_word(actor->regs.rsp + 8, library_pc(255));
}

static inline void actor_init(struct actor *actor, uint32_t tgid, uint32_t tid)
{
	*actor = (struct actor){.task = {.tgid = tgid, .pid = tid, .comm = "worker"}};
	actor->task.se.cfs_rq = &fair_queue;
	/* As above every kernel stack's bottom. */
	actor->task.stack = (void *)((uintptr_t)&actor->regs - SAVED_REGISTERS_AT);
	actor->regs.cs = USER_CODE;
	actor->regs.rsp = STACK + 0x1000 + (tid & 31) * 0x400;
	actor->regs.orig_rax = __NR_nanosleep;
	actor_stands(actor, 1);
}

static inline void process_add(uint32_t tgid, uint32_t generation, uint16_t flags)
{
	const struct pp_process_id id = {.tgid = tgid, .generation = generation};
	const struct pp_process_context context = {
		.map_set = 1, .map_chunks = 1, .map_version = 1, .flags = flags};

	bpf_map_update_elem(&processes, &id.tgid, &id.generation, BPF_ANY);
	bpf_map_update_elem(&contexts, &id, &context, BPF_ANY);
}

static inline int switch_setup(void **state)
{
	host_setup(state);
	host->config = (struct pp_config){.window = 6,
					  .slots_read = 5,
					  .epoch = 1,
					  .incomplete_tokens = 4,
					  .thread_mask = HOST_THREADS - 1,
					  .switch_budget_ns = SWITCH_BUDGET_NS};
	host->config.window_start_ns[0] = host->config.window_start_ns[1] = START_NS;
	window_start_ns[0] = window_start_ns[1] = ledger_ns = 0;
	process_add(70, GENERATION, PP_CONTEXT_MATCHES);
	actor_init(&one, 70, 71);
	actor_init(&two, 70, 72);
	idle.se.cfs_rq = &fair_queue;
	return 0;
}

static inline int switch_teardown(void **state)
{
	counts_release(&harvested);
	counts_release(&undivided);
	return host_teardown(state);
}

static inline void set_time(uint64_t at_ns)
{
	host->now_ns = START_NS + at_ns;
	run_queue.clock = host->now_ns + QUEUE_CLOCK_NS;
}

/* The program's own call, with no clock of the test's.  No CO-RE moves the kernel's names of
 * registers to where they are: they are read from the start of the struct, where no rule here
 * looks. */
static inline void run_switch(bool is_preempted, struct actor *prev, struct actor *next)
{
	struct scratch_claims claims = host->scratch_claims;

	run_queue.clock = host->now_ns + QUEUE_CLOCK_NS;
	host->saved_registers = prev ? &prev->regs : NULL;
	host->current = prev ? &prev->task : &idle;
	if (prev) {
		prev->regs.r15 = prev->regs.rdi;
		prev->regs.r14 = prev->regs.orig_rax;
		prev->regs.r13 = prev->regs.rip;
		prev->regs.r12 = prev->regs.rsp;
	}
	assert_int_equal(on_switch(switch_arguments, is_preempted, prev ? &prev->task : &idle,
				   next ? &next->task : &idle),
			 0);
	if (memcmp(&host->scratch_claims, &claims, sizeof(claims))) /* cmocka's own is slow */
		assert_memory_equal(&host->scratch_claims, &claims, sizeof(claims));
}

/* on_switch() with what the scheduler notes of both threads after it. */
static inline void switch_at(uint64_t at_ns, bool is_preempted, struct actor *prev,
			     struct actor *next)
{
	set_time(at_ns);
	run_switch(is_preempted, prev, next);
	if (prev && (is_preempted || !prev->task.__state))
		prev->task.sched_info.last_queued = run_queue.clock;
	if (!next || !next->task.sched_info.last_queued)
		return;
	next->task.sched_info.run_delay += run_queue.clock - next->task.sched_info.last_queued;
	next->task.sched_info.last_queued = 0;
}

static inline void switch_in(struct actor *actor, uint64_t at_ns)
{
	switch_at(at_ns, false, NULL, actor);
}
static inline void switch_out(struct actor *actor, uint64_t at_ns)
{
	actor->task.__state = INTERRUPTIBLE;
	switch_at(at_ns, false, actor, NULL);
}
static inline void is_preempted(struct actor *actor, uint64_t at_ns)
{
	actor->task.__state = INTERRUPTIBLE; /* about to sleep: the flag counts */
	switch_at(at_ns, true, actor, NULL);
}
static inline void dies(struct actor *actor, uint64_t at_ns)
{
	actor->task.__state = DEAD;
	switch_at(at_ns, false, actor, NULL);
}
/* Put on this CPU's queue. */
static inline void is_woken(struct actor *actor, uint64_t at_ns)
{
	actor->task.sched_info.last_queued = START_NS + at_ns + QUEUE_CLOCK_NS;
}

static inline struct pp_thread *slot_of(const struct actor *actor)
{
	return thread_find(actor->task.pid, &host->config);
}

/* No walk comes by chance. */
static inline void sites_rest(const struct actor *actor)
{
	for (uint32_t i = 0; i < PP_THREAD_WAIT_SITES; i++)
		slot_of(actor)->site[i].left = UINT32_MAX;
}

/* The site of this wait, or of the last one, and what it has got in the open window. */
static inline struct pp_wait_site *wait_site_of(const struct actor *actor)
{
	struct pp_thread *t = slot_of(actor);

	return wait_site_at(t, t->at);
}
static inline const struct pp_wait_site_sum *sum_of(const struct actor *actor)
{
	return &wait_site_of(actor)->sum[host->config.window & 1];
}

/* ---- the agent ---- */

/* As collect() in agent/window.c: the edge, then, maybe later, the reading. */
static inline void window_edge(uint64_t at_ns)
{
	uint32_t next = host->config.window + 1;

	host->config.window_start_ns[next & 1] = START_NS + at_ns;
	host->config.table[next & 1] = host->config.table[~next & 1] + 1;
	host->config.window = next;
	window_start_ns[1] = window_start_ns[0];
	window_start_ns[0] = at_ns;
}

static inline bool ledger_says(void *context, struct pp_process_id id, enum pp_ledger where,
			       uint64_t *ret_ns)
{
	(void)context;
	(void)id;
	(void)where;
	*ret_ns = ledger_ns;
	return ledger_ns;
}

static inline void table_harvest(struct host_hash *table)
{
	for (uint32_t i = 0; i < HOST_ENTRIES; i++) {
		struct host_entry *entry = &table->entry[i];

		if (entry->is_taken)
			assert_int_equal(counts_add(&undivided, (void *)entry->key,
						    (void *)entry->value),
					 0);
		entry->is_taken = false;
	}
}

/* As tables_drain(). */
static inline void tables_harvest(uint32_t number)
{
	table_harvest(&host->counts[number & 1]);
	table_harvest(&host->waits[number & 1]);
	table_harvest(&host->coarse[number & 1]);
	assert_int_equal(counts_drain_rest(host->rest, number, &undivided), 0);
	for (uint32_t table = 0; table < PP_TABLE_COUNT; table++)
		host->fill[pp_fill_index(table, number)].rows = 0;
}

/* Reads the window that has ended. */
static inline void window_harvest(void)
{
	const struct slots_window window = {.number = host->config.window - 1,
					    .start_ns = START_NS + window_start_ns[1],
					    .end_ns = START_NS + window_start_ns[0],
					    .wait_min_ns = host->config.wait_min_ns};
	const struct wait_shares shares = {.exact_ns = ledger_says,
					   .leaves_short_out = window.wait_min_ns};
	struct pp_thread thread;
	uint64_t torn = 0;

	for (uint32_t i = 0; i < HOST_THREADS; i++)
		if (thread_slot_take(&host->thread[i], window.number, &thread, &torn))
			assert_int_equal(thread_slot_count(&thread, &window, &undivided), 0);
	assert_int_equal(torn, 0);
	host->config.slots_read = window.number;
	tables_harvest(host->config.table[window.number & 1]);
	assert_int_equal(wait_shares_divide(&shares, &undivided), 0);
	for (size_t i = 0; i < undivided.count; i++)
		assert_int_equal(counts_add(&harvested, &undivided.entry[i].key,
					    &undivided.entry[i].count),
				 0);
	counts_release(&undivided);
}

/* As tables_relieve() in agent/tables.c. */
static inline void tables_swap(void)
{
	tables_harvest(host->config.table[host->config.window & 1]++);
}

static inline void window_close(uint64_t at_ns)
{
	window_edge(at_ns);
	window_harvest();
}

/* ---- what is expected ---- */

static inline enum pp_wait key_wait(const struct pp_count_key *key)
{
	return pp_count_wait(key->flags);
}

/* Of a thread, by its own tid; PP_WAIT_NONE: all its waits. */
static inline struct pp_count waited(uint32_t tid, enum pp_wait wait)
{
	struct pp_count sum = {};

	for (size_t i = 0; i < harvested.count; i++) {
		const struct counted *entry = &harvested.entry[i];

		if (entry->key.kind != PP_KIND_WAIT || entry->key.tid != tid ||
		    (wait != PP_WAIT_NONE && key_wait(&entry->key) != wait))
			continue;
		sum.samples += entry->count.samples;
		sum.weight += entry->count.weight;
	}
	return sum;
}

static inline void harvest_drop(void)
{
	counts_release(&harvested);
}

#define assert_waited(actor, wait, events, ns)                                                     \
	do {                                                                                       \
		struct pp_count waited_ = waited((actor)->task.pid, wait);                         \
                                                                                                   \
		assert_int_equal(waited_.weight, ns);                                              \
		assert_int_equal(waited_.samples, events);                                         \
	} while (0)

static inline uint32_t used_slots(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < HOST_THREADS; i++)
		count += host->thread[i].tid != 0;
	return count;
}

static inline const struct pp_ledger_sum *ledger_of(uint32_t tgid, uint32_t generation)
{
	const struct pp_process_id id = {.tgid = tgid, .generation = generation};

	return bpf_map_lookup_elem(&ledgers, &id);
}

static inline uint64_t ledger_total(const struct pp_ledger_sum *sum)
{
	uint64_t total_ns = 0;

	for (uint32_t i = 0; i < PP_LEDGER_COUNT; i++)
		total_ns += sum->total_ns[i];
	return total_ns;
}

#define switch_test(test) cmocka_unit_test_setup_teardown(test, switch_setup, switch_teardown)

#endif
