/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All of bpf/sample_cpu.bpf.c: what a sample sends and counts. */
#include "sample.h"

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

/* What the GPU had to do for the process: of processes with CUDA alone. */
static void sample__has_the_state_of_the_processes_gpu(void **state)
{
	struct pp_gpu_process process = {
		.generation = 3, .sight = 1, .marked = 7, .idle = 7, .sure = 1};
	struct pp_gpu_wait wait = {.sp = SP + 8};
	const uint32_t tgid = 70, tid = 71;
	static const enum pp_gpu expected[] = {PP_GPU_UNKNOWN, PP_GPU_QUEUED, PP_GPU_DRAINED,
					       PP_GPU_WAIT, PP_GPU_DRAINED};

	(void)state;
	begin();
	host->config.gpu_sight = 1;
	for (uint32_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		const struct pp_count_key *key;
		struct pp_count count;

		if (i == 1)
			host->config.process_changes++; /* its first call of CUDA */
		process.idle = process.marked + (i > 1);
		wait.sp = i == 4 ? SP - 8 : SP + 8; /* the last: it has left without a return */
		if (i)
			bpf_map_update_elem(&gpu_processes, &tgid, &process, BPF_ANY);
		if (i > 2)
			bpf_map_update_elem(&gpu_waits, &tid, &wait, BPF_ANY);
		memset(host->counts[0].entry, 0, sizeof(host->counts[0].entry));
		sample_now();
		key = the_key(0, &count);
		assert_int_equal((key->flags & PP_COUNT_GPU_BITS) >> PP_COUNT_GPU_SHIFT,
				 expected[i]);
		assert_int_equal(stop_of(key), PP_STOP_ROOT);
	}
}

/* Whoever knows how a stack is hashed makes one with the hash of another user's. */
static void sample__equal_stacks_of_two_users_have_names_that_nobody_knows(void **state)
{
	struct user_namespace machine = {.level = 0};
	const struct cred alice = {.euid.val = 1000, .user_ns = &machine},
			  bob = {.euid.val = 1001, .user_ns = &machine};
	uint64_t hash[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		const struct pp_stack_record *record;

		begin();
		host->config.name_secret = i < 3 ? 0x123456789abcdef1 : 0x123456789abcdef3;
		host->config.epoch = (uint32_t)i + 1;
		host->config.sent_from_table = 1; /* a row tells nothing */
		/* Bob was Alice before, in the same process: nothing else tells. */
		host->task.cred = i == 1 ? &bob : &alice;
		sample_now();
		assert_int_equal(host->record_count, i + 1);
		record = host->record[i].data;
		hash[i] = record->hash;
		assert_int_equal(host->walk.user_key,
				 pp_user_key(i == 1 ? 1001 : 1000, host->config.name_secret));
		if (i == 2)
			host->walk.is_identified = 0; /* another secret is another run */
	}
	assert_int_equal(hash[2], hash[0]);
	assert_int_not_equal(hash[1], hash[0]);
	assert_int_not_equal(hash[3], hash[0]);
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

static void sample__idle_paused_and_filtered_are_not_counted(void **state)
{
	static const struct pp_process_id id = {.tgid = 70, .generation = 3};
	const struct pp_process_context unwanted = {
		.map_set = 1, .map_chunks = 1, .map_version = 1};

	(void)state;
	begin();
	host->config.flags = PP_CONFIG_PAUSED;
	sample_now();
	assert_int_equal(count_keys(0), 0);
	host->config.flags = PP_CONFIG_FILTER;
	bpf_map_update_elem(&contexts, &id, &unwanted, BPF_ANY);
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
	host->config.incomplete_tokens = 0;
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
	/* Nobody could finish it: not sent as a incomplete. */
	assert_int_equal(host->config.incomplete_tokens, 4);
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
	assert_int_equal(host->walk.context.code_space, 0);
	host->config.code_epoch = 1;
	host->config.process_changes++;
	sample_now();
	assert_int_not_equal(host->walk.context.code_space, 0);
}

/* ---- what the walk of a CPU still knows of a process ---- */

static void sample__process_is_looked_up_when_something_has_changed(void **state)
{
	const struct pp_process_id id = {.tgid = 70, .generation = 3};
	const struct pp_process_context context = {.map_set = 1, .map_chunks = 1, .map_version = 9};

	(void)state;
	begin();
	sample_now();
	bpf_map_update_elem(&contexts, &id, &context, BPF_ANY);
	sample_now();
	assert_int_not_equal(host->walk.context.map_version, 9);
	host->config.process_changes++;
	sample_now();
	assert_int_equal(host->walk.context.map_version, 9);
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
	assert_int_equal(host->walk.context.map_set, 0);
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
	assert_int_equal(t->flags, PP_THREAD_MATCHES);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(sample__new_stack_is_sent_and_counted),
		host_test(sample__known_stack_is_only_counted),
		host_test(sample__has_the_state_of_the_processes_gpu),
		host_test(sample__row_of_the_open_table_tells_that_a_stack_was_sent),
		host_test(sample__equal_stacks_of_two_users_have_names_that_nobody_knows),
		host_test(sample__window_names_the_table),
		host_test(sample__another_stack_has_another_hash),
		host_test(sample__in_the_kernel_has_both_stacks),
		host_test(sample__without_user_registers_has_no_user_stack),
		host_test(sample__inside_of_exec_has_no_user_stack),
		host_test(sample__inside_of_exec_has_a_user_stack_while_it_is_there),
		host_test(sample__32_bit_code_is_named_and_not_walked),
		host_test(sample__idle_paused_and_filtered_are_not_counted),
		host_test(sample__unknown_process_is_announced_once),
		host_test(sample__unknown_process_in_the_kernel_waits),
		host_test(sample__only_an_nmi_in_the_kernel_may_have_hit_a_lock),
		host_test(sample__new_code_epoch_describes_code_again),
		host_test(sample__process_is_looked_up_when_something_has_changed),
		host_test(sample__process_is_looked_up_after_exec_and_exit),
		host_test(sample__unknown_process_is_looked_up_each_time),
		host_test(swap__within_a_window_moves_on_to_the_other_tables),
		host_test(sample__of_a_thread_without_a_slot_gives_it_one),
		host_test(event__counts_as_what_its_source_says),
	};

	return cmocka_run_group_tests_name("bpf/sample", tests, NULL, NULL);
}
