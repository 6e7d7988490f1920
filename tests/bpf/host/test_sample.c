/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All of bpf/sample_cpu.bpf.c: from the perf event to rings and counters. */
#define HOST_WHOLE_PROGRAM
#include "host.h"
#include "python.h"

#define SP (STACK + 0x1000) /* of the leaf */
#define USER_CS 0x33
#define PERIOD 10101010
#define SAMPLE_BUDGET_NS 100000 /* 1 % */

static struct bpf_perf_event_data sampled;

/* A thread of process 70 in the library's function 1, called by function 2. */
static void begin(void)
{
	static const struct pp_process_id id = {.tgid = 70, .generation = 3};
	const struct pp_image image = {
		.map_set = 1, .map_chunks = 1, .map_version = 1, .flags = PP_IMAGE_WANTED};

	host->task = (struct task_struct){.tgid = 70, .pid = 71, .comm = "worker"};
	host->config = (struct pp_config){
		.epoch = 1, .miss_tokens = 4, .sample_budget_ns = SAMPLE_BUDGET_NS};
	bpf_map_update_elem(&processes, &id.tgid, &id.generation, BPF_ANY);
	bpf_map_update_elem(&images, &id, &image, BPF_ANY);
	memset(&sampled, 0, sizeof(sampled));
	sampled.sample_period = PERIOD;
	sampled.regs.cs = USER_CS;
	sampled.regs.rip = library_pc(1);
	sampled.regs.rsp = SP;
	*library_rule(1) = rule_sp(16);
	put_word(SP + 8, library_pc(2));
}

static void sample_now(void)
{
	assert_int_equal(on_cpu_sample(&sampled), 0);
	for (uint32_t i = 0; i < PP_WALK_LEVELS; i++)
		assert_int_equal(host->scratch_claims.is_taken[i], 0);
}

/* The only counter of a window. */
static const struct pp_count_key *the_key(uint32_t window, struct pp_count *ret_count)
{
	const struct pp_count_key *found = NULL;

	for (uint32_t i = 0; i < HOST_ENTRIES; i++) {
		struct host_entry *entry = &host->counts[window].entry[i];

		if (!entry->is_taken)
			continue;
		assert_null(found);
		found = (const struct pp_count_key *)entry->key;
		memcpy(ret_count, entry->value, sizeof(*ret_count));
	}
	assert_non_null(found);
	return found;
}

static uint32_t count_keys(uint32_t window)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < HOST_ENTRIES; i++)
		count += host->counts[window].entry[i].is_taken;
	return count;
}

static uint32_t stop_of(const struct pp_count_key *key)
{
	return key->flags >> PP_COUNT_STOP_SHIFT & 0xff;
}

static struct pp_count samples_at_1000_hz(uint32_t count, uint64_t ns_a_reading)
{
	struct pp_count counted = {};

	begin();
	sampled.sample_period = 1000000;
	host->ns_a_reading = ns_a_reading;
	for (uint32_t i = 0; i < count; i++) {
		host->now_ns += sampled.sample_period;
		sample_now();
		host_drop_records();
	}
	the_key(0, &counted);
	return counted;
}

static void sample__all_are_taken_within_the_budget(void **state)
{
	const struct pp_count counted = samples_at_1000_hz(1000, 10000);

	(void)state;
	assert_int_equal(counted.samples, 1000);
	assert_int_equal(counted.weight, 1000 * 1000000ULL);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_WEIGHTED], 0);
}

/* A fifth of a millisecond or more each, of which a hundredth is paid. */
static void sample__beyond_the_budget_stand_for_others(void **state)
{
	const uint32_t due = 20000;
	const struct pp_count counted = samples_at_1000_hz(due, 200000);

	(void)state;
	assert_true(counted.samples < due / 4);
	assert_true(counted.samples > due / 100);
	assert_true(host->losses[PP_LOSS_SAMPLES_WEIGHTED] > counted.samples / 2);
	/* One in 16 or more: a standard deviation of at most 3 %. */
	assert_true(counted.weight > due * 1000000ULL * 88 / 100);
	assert_true(counted.weight < due * 1000000ULL * 112 / 100);
}

static uint64_t runs_of(enum pp_program program)
{
	uint64_t runs = 0;

	for (uint32_t bucket = 0; bucket < PP_TIME_BUCKETS; bucket++)
		runs += host->times[program].count[bucket];
	return runs;
}

#define GRID_NS 100000

/* An event that comes `late_ns` after the point `number` of the grid. */
static void sample_at(uint64_t number, uint64_t late_ns)
{
	host->now_ns = 5000000000 + number * GRID_NS + late_ns;
	sample_now();
	host_drop_records();
}

static struct pp_count counted_at_all(void)
{
	struct pp_count count = {};

	the_key(0, &count);
	return count;
}

static void begin_grid(void)
{
	begin();
	host->config.sample_period_ns = sampled.sample_period = GRID_NS;
	sample_at(1, 1000);
}

static void swallowed__periods_are_the_next_samples(void **state)
{
	(void)state;
	begin_grid();
	host->ns_a_reading = 250000; /* a walk of 0.25 ms: from the first reading to the last */
	sample_at(2, 0);
	host->ns_a_reading = 0;
	/* Due at 3 and 4, while it was walked. */
	assert_in_range(host->sampling.ended_ns - host->sampling.due_ns, 200000, 290000);
	sample_at(5, 500);
	sample_at(6, 0);
	assert_int_equal(counted_at_all().samples, 4);
	assert_int_equal(counted_at_all().weight, 6 * GRID_NS);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_SWALLOWED], 0);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_UNSEEN], 0);
}

static void swallowed__periods_of_nobody_are_counted(void **state)
{
	(void)state;
	begin_grid();
	host->ns_a_reading = 250000;
	sample_at(2, 0);
	host->ns_a_reading = 0;
	host->task.pid = 75;
	sample_at(5, 0);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_SWALLOWED], 2);
}

static void unseen__samples_are_counted_and_nobodys(void **state)
{
	(void)state;
	begin_grid();
	sample_at(9, 0); /* not walked at 2 to 8: the walk at 1 was short */
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_UNSEEN], 7);
	sample_at(10, 90000); /* late, but there */
	sample_at(11, 0);
	sample_at(12, 30000);
	sample_at(13, 90000);
	sample_at(14, 0);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_UNSEEN], 7);
	/* Meanwhile it waited, and the CPU was idle or another's. */
	host->task.nvcsw++;
	sample_at(30, 0);
	host->task.pid = 75;
	sample_at(40, 0);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_UNSEEN], 7);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_SWALLOWED], 0);
}

/* Nobody knows where cycles would have come. */
static void unseen__samples_of_another_clock_are_not_told(void **state)
{
	(void)state;
	begin_grid();
	host->config.sample_period_ns = 0;
	sample_at(9, 0);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_UNSEEN], 0);
	assert_int_equal(counted_at_all().weight, 2 * GRID_NS);
}

static void unseen__pause_is_none(void **state)
{
	(void)state;
	begin_grid();
	sample_at(20000, 0);
	assert_int_equal(host->losses[PP_LOSS_SAMPLES_UNSEEN], 0);
}

static void sample__its_time_is_kept(void **state)
{
	uint32_t bucket = 0;

	(void)state;
	begin();
	host->ns_a_reading = 30000;
	sample_now();
	assert_int_equal(runs_of(PP_PROGRAM_SAMPLE), 1);
	while (!host->times[PP_PROGRAM_SAMPLE].count[bucket])
		bucket++;
	/* As much as its own budget pays. */
	assert_in_range(host->sampling.budget.spent_ns, pp_time_end_ns(bucket - 1),
			pp_time_end_ns(bucket) - 1);
	assert_in_range(host->sampling.budget.spent_ns, 30000, 200000);
	sample_now();
	assert_int_equal(runs_of(PP_PROGRAM_SAMPLE), 2);
	assert_int_equal(runs_of(PP_PROGRAM_SWITCH), 0);
}

static void times__bucket_holds_its_time(void **state)
{
	const uint64_t longest_ns = pp_time_end_ns(PP_TIME_BUCKETS - 1);

	(void)state;
	for (uint64_t ns = 0; ns < 2 * longest_ns; ns += 1 + ns / 50) {
		uint32_t bucket = time_bucket(ns);

		assert_true(bucket < PP_TIME_BUCKETS);
		assert_true(ns < pp_time_end_ns(bucket) || bucket == PP_TIME_BUCKETS - 1);
		assert_true(!bucket || ns >= pp_time_end_ns(bucket - 1));
	}
	assert_int_equal(time_bucket(UINT64_MAX), PP_TIME_BUCKETS - 1);
	/* 250 us and 100 us lie near an end. */
	assert_int_equal(pp_time_end_ns(time_bucket(240000)), 245760);
	assert_int_equal(pp_time_end_ns(time_bucket(98000)), 98304);
}

static void sample__new_stack_is_sent_and_counted(void **state)
{
	const struct pp_stack_record *record;
	const struct pp_count_key *key;
	struct pp_count count;

	(void)state;
	begin();
	sample_now();
	assert_int_equal(host->record_count, 1);
	assert_ptr_equal(host->record[0].ring, &stacks);
	record = host->record[0].data;
	assert_int_equal(record->record.type, PP_RECORD_STACK);
	assert_int_equal(record->record.size, sizeof(*record) + 2 * sizeof(struct pp_frame));
	assert_int_equal(host->record[0].size, record->record.size);
	assert_int_equal(record->native_stored, 2);
	assert_int_equal(record->native_count, 2);
	assert_int_equal(record->python_count, 0);
	assert_int_equal(record->stop, PP_STOP_ROOT);
	assert_int_equal(record->py_stop, PP_PY_STOP_NOT_PYTHON);
	assert_int_equal(record->frame[0].where, FUNCTION_BYTES + 0x10);
	assert_int_equal(record->frame[1].where, 2 * FUNCTION_BYTES + 0xf);
	key = the_key(0, &count);
	assert_int_equal(key->user_stack, record->hash);
	assert_int_not_equal(record->hash, 0);
	assert_int_equal(key->kernel_stack, 0);
	assert_int_equal(key->id.tgid, 70);
	assert_int_equal(key->id.generation, 3);
	assert_int_equal(key->tid, 71);
	assert_int_equal(stop_of(key), PP_STOP_ROOT);
	assert_int_equal(count.samples, 1);
	assert_int_equal(count.weight, PERIOD);
}

static void sample__known_stack_is_only_counted(void **state)
{
	struct pp_count count;

	(void)state;
	begin();
	for (int i = 0; i < 3; i++)
		sample_now();
	assert_int_equal(host->record_count, 1);
	the_key(0, &count);
	assert_int_equal(count.samples, 3);
	assert_int_equal(count.weight, 3 * PERIOD);
	host->config.epoch = 2;
	host->config.sent_from_table = 1; /* as the agent: number 0 was open */
	sample_now();
	sample_now();
	assert_int_equal(host->record_count, 2);
	the_key(0, &count);
	assert_int_equal(count.samples, 5);
}

/* Who made the row has sent the stack: then nobody looks whether it was. */
static void sample__row_of_the_open_table_tells_that_a_stack_was_sent(void **state)
{
	(void)state;
	begin();
	sample_now();
	memset(host->sent.entry, 0, sizeof(host->sent.entry)); /* all that LRU lists may forget */
	sample_now();
	assert_int_equal(host->record_count, 1);
	host->config.table[0] = 1; /* a new table has no row */
	sample_now();
	assert_int_equal(host->record_count, 2);
	host->config.sent_from_table = 2;
	memset(host->sent.entry, 0, sizeof(host->sent.entry)); /* all that LRU lists may forget */
	sample_now();
	assert_int_equal(host->record_count, 3);
}

static void sample__window_names_the_table(void **state)
{
	struct pp_count count;

	(void)state;
	begin();
	sample_now();
	host->config.table[1] = 7;
	host->config.window = 1;
	sample_now();
	sample_now();
	the_key(0, &count);
	assert_int_equal(count.samples, 1);
	the_key(1, &count);
	assert_int_equal(count.samples, 2);
	assert_int_equal(host->record_count, 1);
}

static void sample__another_stack_has_another_hash(void **state)
{
	(void)state;
	begin();
	sample_now();
	sampled.regs.rip += 1;
	sample_now();
	*library_rule(1) = (struct pp_rule){.kind = PP_RULE_STOP};
	memset(host->walk.site, 0, sizeof(host->walk.site));
	sample_now();
	assert_int_equal(count_keys(0), 3);
	assert_int_equal(host->record_count, 3);
}

static void sample__in_the_kernel_has_both_stacks(void **state)
{
	const struct pp_kernel_record *kernel;
	struct pt_regs saved = {};
	const struct pp_count_key *key;
	struct pp_count count;

	(void)state;
	begin();
	saved = *(struct pt_regs *)&sampled.regs;
	host->saved_registers = &saved;
	sampled.regs.cs = 0x10;
	sampled.regs.rip = 0xffffffff81000000;
	host->kernel_frames = 2;
	host->kernel_stack[0] = 0xffffffff81000000;
	host->kernel_stack[1] = 0xffffffff81000100;
	sample_now();
	assert_int_equal(host->record_count, 2);
	kernel = host->record[0].data;
	assert_int_equal(kernel->record.type, PP_RECORD_KERNEL);
	assert_int_equal(kernel->record.size, sizeof(*kernel) + 16);
	assert_int_equal(kernel->address[1], 0xffffffff81000100);
	key = the_key(0, &count);
	assert_int_equal(key->kernel_stack, kernel->hash);
	assert_int_equal(key->user_stack,
			 ((const struct pp_stack_record *)host->record[1].data)->hash);
	host->config.flags = PP_CONFIG_NO_KERNEL;
	host_drop_records();
	sample_now();
	assert_int_equal(host->record_count, 0);
	assert_int_equal(count_keys(0), 2);
}

static void sample__without_user_registers_has_no_user_stack(void **state)
{
	const struct pp_count_key *key;
	struct pp_count count;

	(void)state;
	begin();
	sampled.regs.cs = 0x10;
	host->saved_registers = NULL;
	sample_now();
	key = the_key(0, &count);
	assert_int_equal(key->user_stack, 0);
	assert_int_equal(stop_of(key), PP_STOP_NO_USER);
	assert_int_equal(host->record_count, 0);
}

/* exec has given the old program's memory back; its registers are still those of the call. */
static void sample__inside_of_exec_has_no_user_stack(void **state)
{
	struct pt_regs saved;
	const struct pp_count_key *key;
	struct pp_count count;

	(void)state;
	begin();
	saved = *(struct pt_regs *)&sampled.regs;
	host->saved_registers = &saved;
	sampled.regs.cs = 0x10;
	saved.orig_rax = 59;
	saved.rsp = 0x10000;
	sample_now();
	key = the_key(0, &count);
	assert_int_equal(key->user_stack, 0);
	assert_int_equal(stop_of(key), PP_STOP_NO_USER);
	assert_int_equal(host->record_count, 0);
}

static void sample__inside_of_exec_has_a_user_stack_while_it_is_there(void **state)
{
	struct pt_regs saved;
	const struct pp_count_key *key;
	struct pp_count count;

	(void)state;
	begin();
	saved = *(struct pt_regs *)&sampled.regs;
	host->saved_registers = &saved;
	sampled.regs.cs = 0x10;
	saved.orig_rax = 59;
	sample_now();
	key = the_key(0, &count);
	assert_int_not_equal(key->user_stack, 0);
	assert_int_equal(stop_of(key), PP_STOP_ROOT);
}

static void sample__32_bit_code_is_named_and_not_walked(void **state)
{
	struct pp_count count;

	(void)state;
	begin();
	sampled.regs.cs = 0x23;
	sample_now();
	assert_int_equal(stop_of(the_key(0, &count)), PP_STOP_COMPAT);
	assert_int_equal(host->user_reads, 0);
}

static void sample__idle_paused_and_unwanted_are_not_counted(void **state)
{
	static const struct pp_process_id id = {.tgid = 70, .generation = 3};
	const struct pp_image unwanted = {.map_set = 1, .map_chunks = 1, .map_version = 1};

	(void)state;
	begin();
	host->config.flags = PP_CONFIG_PAUSED;
	sample_now();
	assert_int_equal(count_keys(0), 0);
	host->config.flags = PP_CONFIG_FILTER;
	bpf_map_update_elem(&images, &id, &unwanted, BPF_ANY);
	sample_now();
	assert_int_equal(count_keys(0), 0);
	host->config.flags = 0;
	host->task.pid = 0;
	sample_now();
	assert_int_equal(count_keys(0), 0);
	host->task.pid = 71;
	sample_now();
	assert_int_equal(count_keys(0), 1);
}

static void sample__unknown_process_is_announced_once(void **state)
{
	const struct pp_event *event;

	(void)state;
	begin();
	host->task.tgid = host->task.pid = 99;
	host->config.miss_tokens = 0;
	sample_now();
	assert_int_equal(host->record_count, 2); /* the event, the empty stack */
	event = host->record[0].data;
	assert_ptr_equal(host->record[0].ring, &events);
	assert_int_equal(event->type, PP_EVENT_UNKNOWN);
	assert_int_equal(event->id.tgid, 99);
	assert_int_equal(event->id.generation, (uint32_t)(event->time_ns >> 10));
	assert_string_equal(event->comm, "worker");
	sample_now();
	assert_int_equal(host->record_count, 2);
}

/* A lock of the table may be held by what was interrupted. */
static void sample__unknown_process_in_the_kernel_waits(void **state)
{
	struct pp_count count;

	(void)state;
	begin();
	host->task.tgid = host->task.pid = 99;
	host->saved_registers = (struct pt_regs *)&sampled.regs;
	struct bpf_perf_event_data in_kernel = sampled;

	in_kernel.regs.cs = 0x10;
	assert_int_equal(on_cpu_sample(&in_kernel), 0);
	assert_int_equal(the_key(0, &count)->id.generation, 0);
	assert_int_equal(stop_of(the_key(0, &count)), PP_STOP_NO_IMAGE);
	for (uint32_t i = 0; i < host->record_count; i++)
		assert_ptr_not_equal(host->record[i].ring, &events);
	/* Nobody could finish it: not sent as a miss. */
	assert_int_equal(host->config.miss_tokens, 4);
}

/* Of the agent's system calls; a timer's interrupt finds none held. */
static void sample__only_an_nmi_in_the_kernel_may_have_hit_a_lock(void **state)
{
	struct bpf_perf_event_data in_kernel;

	(void)state;
	begin();
	in_kernel = sampled;
	in_kernel.regs.cs = 0x10;
	host->saved_registers = (struct pt_regs *)&sampled.regs;
	assert_int_equal(on_cpu_sample(&in_kernel), 0);
	assert_false(host->walk.may_hold_lock);
	host->config.flags = PP_CONFIG_NMI;
	assert_int_equal(on_cpu_sample(&in_kernel), 0);
	assert_true(host->walk.may_hold_lock);
	sample_now();
	assert_false(host->walk.may_hold_lock);
}

static void sample__new_code_epoch_describes_code_again(void **state)
{
	(void)state;
	begin();
	sample_now();
	assert_int_equal(host->walk.image.code_space, 0);
	host->config.code_epoch = 1;
	host->config.process_changes++;
	sample_now();
	assert_int_not_equal(host->walk.image.code_space, 0);
}

/* ---- what the walk of a CPU still knows of a process ---- */

static void sample__process_is_looked_up_when_something_has_changed(void **state)
{
	const struct pp_process_id id = {.tgid = 70, .generation = 3};
	const struct pp_image image = {.map_set = 1, .map_chunks = 1, .map_version = 9};

	(void)state;
	begin();
	sample_now();
	bpf_map_update_elem(&images, &id, &image, BPF_ANY);
	sample_now();
	assert_int_not_equal(host->walk.image.map_version, 9);
	host->config.process_changes++;
	sample_now();
	assert_int_equal(host->walk.image.map_version, 9);
	assert_int_equal(host->walk.id.generation, 3);
}

static void sample__process_is_looked_up_after_exec_and_exit(void **state)
{
	struct signal_struct nobody_lives = {};

	(void)state;
	begin();
	host->task.signal = &nobody_lives;
	sample_now();
	assert_int_equal(host->walk.id.generation, 3);
	host->now_ns += 1 << 20;
	assert_int_equal(on_exec(NULL, &host->task, host->task.pid), 0);
	sample_now();
	assert_int_equal(host->walk.id.generation, host->now_ns >> 10);
	assert_int_equal(host->walk.image.map_set, 0);
	assert_int_equal(watch_exit(NULL, &host->task), 0);
	host->config.flags = PP_CONFIG_FILTER; /* or it would be announced */
	sample_now();
	assert_int_equal(host->walk.id.generation, 0);
}

/* A process that is not known is looked up each time: it may be known by then, and is told of. */
static void sample__unknown_process_is_looked_up_each_time(void **state)
{
	const uint32_t tgid = 70, generation = 5;

	(void)state;
	begin();
	host->config.flags = PP_CONFIG_FILTER;
	bpf_map_delete_elem(&processes, &tgid);
	sample_now();
	assert_int_equal(host->walk.id.generation, 0);
	bpf_map_update_elem(&processes, &tgid, &generation, BPF_ANY);
	sample_now();
	assert_int_equal(host->walk.id.generation, 5);
}

/* ---- misses ---- */

static void miss__carries_all_that_is_needed_and_is_not_counted(void **state)
{
	const struct pp_miss_record *miss;
	const uint8_t *stack;

	(void)state;
	begin();
	host->page[INTERPRETER_PAGE0] = 0;
	put_word(SP + 8, interpreter_pc(4));
	put_word(SP + 16, 0xfeed);
	sampled.regs.rbp = 0xb9;
	sampled.regs.r12 = 0x1212;
	memset(&host->walk.out.miss.key, 0xff, sizeof(host->walk.out.miss.key));
	sample_now();
	assert_int_equal(count_keys(0), 0);
	assert_int_equal(host->record_count, 1);
	assert_int_equal(host->record[0].flags, BPF_RB_FORCE_WAKEUP);
	miss = host->record[0].data;
	assert_int_equal(miss->record.type, PP_RECORD_MISS);
	assert_int_equal(miss->stop, PP_STOP_NO_ROWS);
	assert_int_equal(miss->pc, interpreter_pc(4));
	assert_int_equal(miss->sp, SP + 16);
	assert_int_equal(miss->fp, 0xb9);
	assert_int_equal(miss->is_leaf, 0);
	assert_int_equal(miss->registers[12], 0x1212);
	assert_int_equal(miss->weight, PERIOD);
	assert_int_equal(miss->key.user_stack, 0);
	assert_int_equal(miss->key.tid, 71);
	assert_int_equal(miss->key.kind, PP_KIND_CPU);
	assert_int_equal(miss->key.detail, 0);
	assert_int_equal(miss->key.pad, 0);
	assert_int_equal(miss->native_stored, 1);
	assert_int_equal(miss->stack_start, SP + 16);
	assert_int_equal(miss->stack_bytes, PP_STACK_COPY_BYTES);
	assert_int_equal(host->record[0].size,
			 sizeof(*miss) + sizeof(struct pp_frame) + PP_STACK_COPY_BYTES);
	stack = miss->bytes + sizeof(struct pp_frame);
	assert_int_equal(*(const uint64_t *)stack, 0xfeed);
	assert_int_equal(host->config.miss_tokens, 3);
}

static void miss__copies_the_stack_as_far_as_it_is_there(void **state)
{
	const struct pp_miss_record *miss;

	(void)state;
	begin();
	host->page[LIBRARY_PAGE0] = 0;
	put_fault(SP + 2 * PP_STACK_COPY_CHUNK_BYTES + 100, 8);
	sample_now();
	miss = host->record[0].data;
	assert_int_equal(miss->is_leaf, 1);
	assert_int_equal(miss->native_stored, 0);
	assert_int_equal(miss->stack_bytes, 2 * PP_STACK_COPY_CHUNK_BYTES);
}

static void miss__without_tokens_is_counted_here(void **state)
{
	struct pp_count count;

	(void)state;
	begin();
	host->page[LIBRARY_PAGE0] = 0;
	host->config.miss_tokens = 0;
	sample_now();
	assert_int_equal(stop_of(the_key(0, &count)), PP_STOP_NO_ROWS);
	assert_int_equal(host->losses[PP_LOSS_MISS_DROPPED], 1);
}

static void miss__only_what_was_sent_counts_as_asked(void **state)
{
	(void)state;
	begin();
	host->walk.id.generation = 1;
	host->walk.image.python = 1;
	host->walk.is_resumable = 1;
	host->config.miss_tokens = 0;
	assert_int_equal(walk_emit_miss(0), 1);
	assert_int_equal(host->resync.asked, 0);
	host->config.miss_tokens = 1;
	assert_int_equal(walk_emit_miss(0), 0);
	assert_int_equal(host->resync.asked, 1);
}

/* A chain without an end, of which the clock lets a part be walked. */
static uint64_t begin_slow_python(void)
{
	uint64_t state = heap_take(256), frame;

	begin();
	python_init(PP_CHAIN_FRAME_CFRAME, 10);
	host->walk.id = (struct pp_process_id){.tgid = 70, .generation = 3};
	host->walk.image.python = 1;
	host->walk.image.python_bias = INTERPRETER;
	host->walk.image.tls[0] = (struct pp_tls){.mode = PP_TLS_GLOBAL, .address = heap_take(16)};
	put_word(host->walk.image.tls[0].address, state);
	put_word(state + TS_THREAD_ID, host->walk.thread_pointer);
	frame = new_frame(new_code("a", 1), 0, 0);
	put_word(frame + FRAME_PREVIOUS, frame);
	put_word(state + TS_FRAME, frame);
	put_word(state + TS_CFRAME, SP + 0x800);
	put_word(SP + 0x800 + CFRAME_PREVIOUS, SP + 0x800);
	walk_reset(&host->walk, PERIOD, bpf_ktime_get_ns(), PP_SAMPLE_WALK_NS);
	host->walk.pc = interpreter_pc(4);
	host->walk.sp = SP;
	host->walk.is_leaf = 1;
	host->walk.thread_state = state;
	host->ns_a_reading = PP_SAMPLE_WALK_NS / 2;
	return frame;
}

static const struct pp_miss_record *the_miss(void)
{
	const struct pp_miss_record *miss = host->record[host->record_count - 1].data;

	assert_int_equal(miss->record.type, PP_RECORD_MISS);
	return miss;
}

static void miss__of_a_python_walk_says_where_it_goes_on(void **state)
{
	const struct pp_miss_record *miss;
	const struct pp_segment *segment;
	uint64_t frame = begin_slow_python();
	uint32_t walked;

	(void)state;
	assert_int_equal(walk_user(0), 0);
	host->ns_a_reading = 0; /* the way out is fast */
	host->now_ns = host->walk.deadline_ns;
	assert_int_equal(walk_emit_miss(0), 0);
	walked = host->walk.python_count;
	assert_true(walked >= PP_CLOCK_STEPS - 1);
	miss = the_miss();
	assert_int_equal(miss->stop, PP_STOP_MAX_TIME);
	assert_int_equal(miss->py_stop, PP_PY_STOP_MAX_TIME);
	assert_int_equal(miss->python_frame, frame);
	assert_int_equal(miss->cframe, SP + 0x800);
	assert_memory_equal(miss->frame_head, memory_at(frame, sizeof(miss->frame_head)),
			    sizeof(miss->frame_head));
	/* The native walk has not begun: all of it is the agent's. */
	assert_int_equal(miss->pc, interpreter_pc(4));
	assert_int_equal(miss->native_count, 0);
	assert_int_equal(miss->stack_start, SP - RED_ZONE_BYTES);
	assert_int_equal(miss->stack_bytes, PP_STACK_COPY_BYTES);
	assert_int_equal(miss->segment_count, walked);
	segment = (const void *)(miss->bytes + walked * sizeof(struct pp_frame));
	assert_int_equal(segment[walked - 1].mark, SP + 0x800);
	assert_int_equal(miss->record.size, sizeof(*miss) + walked * sizeof(struct pp_frame) +
						    walked * sizeof(struct pp_segment) +
						    miss->stack_bytes);
}

static void miss__of_another_threads_python_has_no_stack(void **state)
{
	const struct pp_miss_record *miss;

	(void)state;
	begin_slow_python();
	assert_int_equal(walk_python_only(0), 0);
	assert_int_equal(walk_emit_stacks(0), 0);
	miss = the_miss();
	assert_int_equal(miss->stop, PP_STOP_ROOT);
	assert_int_equal(miss->py_stop, PP_PY_STOP_MAX_TIME);
	assert_int_equal(miss->stack_bytes, 0);
	assert_int_not_equal(miss->key.user_stack, 0);
	assert_int_equal(miss->key.user_stack, host->walk.hash);
}

static void send_marks(uint32_t count)
{
	begin();
	host->walk.id.generation = 1;
	host->walk.stop = PP_STOP_MAX_TIME;
	host->walk.sp = SP;
	host->walk.native_count = 1;
	host->walk.segment_next = 40;
	host->walk.segment_count = 40 + count;
	for (uint32_t i = 0; i < host->walk.segment_count; i++)
		host->walk.segment[i] = (struct pp_segment){.mark = STACK + i, .frames = i};
	assert_int_equal(walk_emit_miss(0), 0);
}

static void miss__carries_all_marks_that_were_not_met(void **state)
{
	const struct pp_segment *segment;

	(void)state;
	send_marks(1500);
	assert_int_equal(the_miss()->segment_count, 1500);
	segment = (const void *)the_miss()->bytes;
	for (uint32_t i = 0; i < 1500; i++)
		assert_int_equal(segment[i].frames, 40 + i);
	assert_int_equal(the_miss()->stack_bytes, PP_STACK_COPY_CHUNK_BYTES);
	assert_int_equal(host->losses[PP_LOSS_SEGMENTS_FULL], 0);
	send_marks(PP_MAX_SEGMENTS - 40);
	assert_int_equal(the_miss()->segment_count, PP_MAX_SEGMENTS - 40);
}

/* ---- losses ---- */

static void loss__full_ring_still_counts_and_sends_later(void **state)
{
	struct pp_count count;

	(void)state;
	begin();
	host->ring_is_full = true;
	sample_now();
	assert_int_equal(host->losses[PP_LOSS_RING_FULL], 1);
	the_key(0, &count);
	assert_int_equal(count.samples, 1);
	host->ring_is_full = false;
	sample_now();
	assert_int_equal(host->record_count, 1);
	the_key(0, &count);
	assert_int_equal(count.samples, 2);
}

static void loss__full_and_busy_tables_are_told_apart(void **state)
{
	(void)state;
	begin();
	host->counts[0].room = 0;
	sample_now();
	assert_int_equal(host->losses[PP_LOSS_COUNTS_FULL], 1);
	host->counts[0].refuses = -EBUSY;
	sample_now();
	assert_int_equal(host->losses[PP_LOSS_COUNTS_BUSY], 1);
	assert_int_equal(host->losses[PP_LOSS_COUNTS_FULL], 1);
	assert_int_equal(host->losses[PP_LOSS_COARSE_FULL], 0);
}

/* Its process keeps the amount; where that finds no room either, the machine does. */
static void full__tables_lose_stacks_and_no_amount(void **state)
{
	const struct pp_count_key *coarse = (const void *)host->coarse[0].entry[0].key;
	const struct pp_count *count = (const void *)host->coarse[0].entry[0].value;
	const uint32_t at = pp_rest_index(PP_KIND_CPU, 0, 0);

	(void)state;
	begin();
	host->counts[0].room = 0;
	sample_now();
	sample_now();
	assert_true(host->coarse[0].entry[0].is_taken);
	assert_int_equal(coarse->user_stack, PP_STACK_OTHERS);
	assert_int_equal(coarse->kernel_stack, 0);
	assert_int_equal(coarse->id.tgid, 70);
	assert_int_equal(coarse->tid, 0);
	assert_int_equal(coarse->flags, 0);
	assert_int_equal(coarse->kind, PP_KIND_CPU);
	assert_int_equal(count->samples, 2);
	assert_int_equal(count->weight, 2 * PERIOD);
	host->coarse[0].entry[0].is_taken = false;
	host->coarse[0].refuses = -EBUSY;
	sample_now();
	assert_int_equal(host->losses[PP_LOSS_COARSE_FULL], 1);
	assert_int_equal(host->rest[at].samples, 1);
	assert_int_equal(host->rest[at].weight, PERIOD);
	assert_int_equal(pp_rest_key(at).kind, PP_KIND_CPU);
}

/* Once, and again when the agent has emptied it. */
static void full__half_of_a_table_is_told(void **state)
{
	struct pp_fill *fill = &host->fill[pp_fill_index(PP_TABLE_SAMPLES, 0)];
	const struct pp_event *event;
	uint32_t told = 0;

	(void)state;
	begin();
	fill->half = 2;
	for (uint32_t i = 0; i < 4; i++) {
		host->task.pid = 80 + i;
		sample_now();
		assert_int_equal(fill->rows, i + 1);
		assert_int_equal(fill->is_told, i > 0);
	}
	for (uint32_t i = 0; i < host->record_count; i++) {
		event = host->record[i].data;
		if (host->record[i].ring != &events)
			continue;
		told += event->type == PP_EVENT_TABLE;
		assert_int_equal(host->record[i].flags, BPF_RB_FORCE_WAKEUP);
	}
	assert_int_equal(told, 1);
}

/* The number of the tables, not that of the window, says which are open. */
static void swap__within_a_window_moves_on_to_the_other_tables(void **state)
{
	struct pp_count count;

	(void)state;
	begin();
	sample_now();
	host->config.table[host->config.window & 1]++;
	sample_now();
	sample_now();
	the_key(0, &count);
	assert_int_equal(count.samples, 1);
	the_key(1, &count);
	assert_int_equal(count.samples, 2);
}

/* A thread that has a CPU for itself passes no switch. */
static void sample__of_a_thread_without_a_slot_gives_it_one(void **state)
{
	struct pp_config *cfg = &host->config;
	const struct pp_thread *t;
	uint64_t created_ns;

	(void)state;
	begin();
	cfg->thread_mask = HOST_THREADS - 1;
	sample_now();
	assert_null(thread_find(71, cfg)); /* nobody asked */
	cfg->flags |= PP_CONFIG_SEE_RUNNING;
	host->now_ns = 5000;
	sample_now();
	t = thread_find(71, cfg);
	assert_non_null(t);
	assert_int_equal(t->sequence % 2, 0);
	assert_int_equal(t->id.tgid, 70);
	assert_int_equal(t->id.generation, 3);
	assert_int_equal(t->flags, PP_THREAD_WANTED);
	created_ns = t->created_ns;
	assert_true(created_ns >= 5000);
	host->now_ns += 1000000;
	sample_now();
	assert_int_equal(t->created_ns, created_ns);
	host->task.pid = 72;
	host->task.flags = PF_KTHREAD;
	sample_now();
	assert_null(thread_find(72, cfg));
}

/* A source of another kind, in a program that can be preempted. */
static void event__counts_as_what_its_source_says(void **state)
{
	struct host_entry *entry = NULL;
	const struct pp_count_key *key;
	struct pp_count counted;
	struct scratch taken = {};

	(void)state;
	begin();
	scratch_enter_preemptible(&taken);
	assert_non_null(taken.walk);
	assert_true(identify(taken.walk, &host->task, bpf_get_current_pid_tgid(), 0, true,
			     &host->config));
	walk_reset(taken.walk, 4096, bpf_ktime_get_ns(), PP_SAMPLE_WALK_NS);
	taken.walk->kind = PP_KIND_WAKE;
	taken.walk->detail = 64;
	event_count(&sampled, taken.walk, taken.slot, &host->task, 0, true, &host->config);
	scratch_leave(&taken);
	for (uint32_t i = 0; i < HOST_ENTRIES && !entry; i++)
		if (host->waits[0].entry[i].is_taken)
			entry = &host->waits[0].entry[i];
	assert_non_null(entry);
	key = (const struct pp_count_key *)entry->key;
	memcpy(&counted, entry->value, sizeof(counted));
	assert_int_equal(key->kind, PP_KIND_WAKE);
	assert_int_equal(key->detail, 64);
	assert_int_equal(counted.weight, 4096);
	assert_int_equal(native_frame(0)->where, 0x110);
	/* The next sample is one again. */
	sample_now();
	key = the_key(0, &counted);
	assert_int_equal(key->kind, PP_KIND_CPU);
	assert_int_equal(key->detail, 0);
}

static void loss__walks_nested_too_deeply(void **state)
{
	(void)state;
	begin();
	take_scratch(true);
	assert_int_equal(on_cpu_sample(&sampled), 0);
	assert_int_equal(host->losses[PP_LOSS_NO_SCRATCH], 1);
	for (uint32_t i = 0; i < PP_WALK_LEVELS; i++)
		assert_int_equal(host->scratch_claims.is_taken[i], 1);
	assert_int_equal(count_keys(0), 0);
}

/* It came online just now. */
static void loss__cpu_without_memory_for_walks(void **state)
{
	(void)state;
	begin();
	host->cpu_place = 0;
	assert_int_equal(on_cpu_sample(&sampled), 0);
	assert_int_equal(host->losses[PP_LOSS_NO_SCRATCH], 1);
	assert_int_equal(count_keys(0), 0);
	host->cpu_place = 1;
	assert_int_equal(on_cpu_sample(&sampled), 0);
	assert_int_equal(host->losses[PP_LOSS_NO_SCRATCH], 1);
	assert_int_equal(count_keys(0), 1);
}

static void loss__deep_stack_tells_of_omitted_frames(void **state)
{
	const struct pp_stack_record *record;
	struct pp_count count;

	(void)state;
	begin();
	for (uint64_t at = SP + 8; at < STACK + STACK_BYTES; at += 16)
		put_word(at, library_pc(1));
	sample_now();
	assert_int_equal(stop_of(the_key(0, &count)), PP_STOP_MAX_STEPS);
	record = host->record[0].data;
	assert_int_equal(record->native_stored, PP_MAX_FRAMES);
	assert_int_equal(record->native_count, PP_MAX_STEPS);
	assert_int_equal(host->losses[PP_LOSS_FRAMES_OMITTED], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(sample__all_are_taken_within_the_budget),
		host_test(sample__beyond_the_budget_stand_for_others),
		host_test(swallowed__periods_are_the_next_samples),
		host_test(swallowed__periods_of_nobody_are_counted),
		host_test(unseen__samples_are_counted_and_nobodys),
		host_test(unseen__samples_of_another_clock_are_not_told),
		host_test(unseen__pause_is_none),
		host_test(sample__its_time_is_kept),
		host_test(times__bucket_holds_its_time),
		host_test(sample__new_stack_is_sent_and_counted),
		host_test(sample__known_stack_is_only_counted),
		host_test(sample__window_names_the_table),
		host_test(sample__another_stack_has_another_hash),
		host_test(sample__in_the_kernel_has_both_stacks),
		host_test(sample__without_user_registers_has_no_user_stack),
		host_test(sample__inside_of_exec_has_no_user_stack),
		host_test(sample__inside_of_exec_has_a_user_stack_while_it_is_there),
		host_test(sample__32_bit_code_is_named_and_not_walked),
		host_test(sample__idle_paused_and_unwanted_are_not_counted),
		host_test(sample__unknown_process_is_announced_once),
		host_test(sample__unknown_process_in_the_kernel_waits),
		host_test(sample__only_an_nmi_in_the_kernel_may_have_hit_a_lock),
		host_test(sample__new_code_epoch_describes_code_again),
		host_test(sample__row_of_the_open_table_tells_that_a_stack_was_sent),
		host_test(sample__process_is_looked_up_when_something_has_changed),
		host_test(sample__process_is_looked_up_after_exec_and_exit),
		host_test(sample__unknown_process_is_looked_up_each_time),
		host_test(sample__of_a_thread_without_a_slot_gives_it_one),
		host_test(miss__carries_all_that_is_needed_and_is_not_counted),
		host_test(miss__copies_the_stack_as_far_as_it_is_there),
		host_test(miss__without_tokens_is_counted_here),
		host_test(miss__only_what_was_sent_counts_as_asked),
		host_test(miss__of_a_python_walk_says_where_it_goes_on),
		host_test(miss__of_another_threads_python_has_no_stack),
		host_test(miss__carries_all_marks_that_were_not_met),
		host_test(loss__full_ring_still_counts_and_sends_later),
		host_test(loss__full_and_busy_tables_are_told_apart),
		host_test(full__tables_lose_stacks_and_no_amount),
		host_test(full__half_of_a_table_is_told),
		host_test(swap__within_a_window_moves_on_to_the_other_tables),
		host_test(event__counts_as_what_its_source_says),
		host_test(loss__walks_nested_too_deeply),
		host_test(loss__cpu_without_memory_for_walks),
		host_test(loss__deep_stack_tells_of_omitted_frames),
	};

	return cmocka_run_group_tests_name("bpf/sample", tests, NULL, NULL);
}
