/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/look.bpf.h: waits for the GIL, and the holder that they are attributed to. */
#include "switch.h"

#include "python.h"

#define TS_NATIVE_ID 72
#define INTERP_GIL 16
#define GIL_LAST_HOLDER 8 /* in the GIL's struct */
#define FUTEX_AT 60	  /* behind last_holder: the condition's */

static uint64_t gil_address, interpreter, state_of_one, state_of_two;

static uint64_t new_state(struct actor *actor, const char *function)
{
	uint64_t state = heap_take(256), tls = heap_take(64);

	put_word(state + TS_INTERP, interpreter);
	put_word(state + TS_NATIVE_ID, actor->task.pid + 1000); /* in its own pid namespace */
	put_word(state + TS_FRAME, new_frame(new_code(function, 1), 0, 0));
	put_word(tls, state);
	actor->task.thread.fsbase = tls;
	return state;
}

static void put_holder(uint64_t state, uint32_t is_locked)
{
	put_word(gil_address + GIL_LAST_HOLDER, state);
	put_u32(gil_address + GIL_LAST_HOLDER + 8, is_locked);
}

/* Process 70 runs Python; thread two has the GIL, thread one calls futex() on its condition. */
static int gil_setup(void **state)
{
	const struct pp_process_id id = {.tgid = 70, .generation = GENERATION};
	struct pp_process_context context;

	switch_setup(state);
	python_init(PP_CHAIN_SHIM, 13);
	host->python.ts_native_id = TS_NATIVE_ID;
	host->python.gil_mode = PP_GIL_INTERPRETER;
	host->python.gil_offset = host->python.interp_gil = INTERP_GIL;
	host->python.gil_holder = GIL_LAST_HOLDER;
	host->python.gil_locked = GIL_LAST_HOLDER + 8;
	context = *(struct pp_process_context *)bpf_map_lookup_elem(&contexts, &id);
	context.python = 1;
	context.python_bias = INTERPRETER;
	context.tls[0] = (struct pp_tls){.mode = PP_TLS_THREAD_OFFSET};
	bpf_map_update_elem(&contexts, &id, &context, BPF_ANY);
	gil_address = heap_take(256);
	interpreter = heap_take(64);
	put_word(interpreter + INTERP_GIL, gil_address);
	state_of_one = new_state(&one, "waits");
	state_of_two = new_state(&two, "holds");
	put_holder(state_of_two, 1);
	host->config.flags = PP_CONFIG_BLAME;
	one.regs.orig_rax = __NR_futex;
	one.regs.rdi = gil_address + GIL_LAST_HOLDER + FUTEX_AT;
	return 0;
}

static struct pp_count blamed(uint32_t tid, uint64_t *ret_stack)
{
	struct pp_count sum = {};

	*ret_stack = 0;
	for (size_t i = 0; i < harvested.count; i++) {
		const struct counted *entry = &harvested.entry[i];

		if (entry->key.kind != PP_KIND_BLAME || entry->key.tid != tid)
			continue;
		sum.samples += entry->count.samples;
		sum.weight += entry->count.weight;
		*ret_stack = entry->key.user_stack;
	}
	return sum;
}

/* Name of the only Python frame of a stack that was sent. */
static const char *leaf_name(uint64_t hash, char name[32])
{
	uint64_t code = 0;

	for (uint32_t i = 0; i < host->record_count; i++) {
		const struct pp_stack_record *stack = host->record[i].data;

		if (stack->record.type == PP_RECORD_STACK && stack->hash == hash)
			code = stack->frame[0].where;
	}
	for (uint32_t i = 0; i < host->record_count; i++) {
		const struct pp_code_record *record = host->record[i].data;

		if (record->record.type == PP_RECORD_CODE && record->id == code)
			snprintf(name, 32, "%.*s", record->name_bytes,
				 (const char *)record->bytes);
	}
	return name;
}

static void gil__wait_is_counted_with_its_holder_to_blame(void **state)
{
	struct pp_count count;
	uint64_t stack;
	char name[32] = "";

	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	switch_in(&one, 6 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_GIL, 1, 5 * MS);
	count = blamed(1072, &stack);
	assert_int_equal(count.weight, 5 * MS);
	assert_string_equal(leaf_name(stack, name), "holds");
	assert_int_equal(harvested.count, 2);
	for (size_t i = 0; i < harvested.count; i++) {
		assert_true(harvested.entry[i].key.flags & PP_COUNT_PYTHON);
		assert_int_equal(harvested.entry[i].key.id.tgid, 70);
		if (harvested.entry[i].key.kind == PP_KIND_WAIT)
			stack = harvested.entry[i].key.user_stack;
	}
	assert_string_equal(leaf_name(stack, name), "waits");
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_GIL], 5 * MS);
}

static void gil__other_futex_is_a_lock(void **state)
{
	static const struct {
		int64_t at; /* behind last_holder */
		enum pp_wait wait;
	} row[] = {
		{-1, PP_WAIT_LOCK},
		{GIL_WAIT_LOW - 1, PP_WAIT_LOCK},
		{GIL_WAIT_LOW, PP_WAIT_GIL},
		{GIL_WAIT_HIGH - 4, PP_WAIT_GIL},
		{GIL_WAIT_HIGH, PP_WAIT_LOCK},
		{0x100000, PP_WAIT_LOCK},
	};

	(void)state;
	for (uint64_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		switch_in(&one, 2 * i * MS);
		one.regs.rdi = gil_address + GIL_LAST_HOLDER + row[i].at;
		switch_out(&one, (2 * i + 1) * MS);
		assert_int_equal(wait_site_reason(wait_site_of(&one)), row[i].wait);
	}
	/* A call that is no futex, with an argument that looks like it. */
	switch_in(&one, 100 * MS);
	one.regs.orig_rax = __NR_poll;
	one.regs.rdi = gil_address + GIL_LAST_HOLDER + FUTEX_AT;
	switch_out(&one, 101 * MS);
	assert_int_equal(wait_site_reason(wait_site_of(&one)), PP_WAIT_POLL);
}

/* The switch interval: the wait ends every 5 ms and begins again. */
#define GIL_RETRIES 32U

static void gil__timed_retries_are_one_event(void **state)
{
	uint64_t at = 1 * MS;

	(void)state;
	switch_in(&one, 0);
	for (uint32_t i = 0; i < 3 * GIL_RETRIES; i++) {
		switch_out(&one, at);
		switch_in(&one, at += 5 * MS);
		at += 20 * US;
	}
	window_close(at);
	assert_waited(&one, PP_WAIT_GIL, 1, 3 * GIL_RETRIES * 5 * MS);
	harvest_drop();
	switch_out(&one, at += GIL_RETRY_NS);
	switch_in(&one, at += 5 * MS);
	switch_out(&one, at += GIL_RETRY_NS);
	switch_in(&one, at += 5 * MS);
	window_close(at + MS);
	assert_waited(&one, PP_WAIT_GIL, 2, 10 * MS);
}

/* It slept in between, and is soon back: another wait. */
static void gil__wait_after_another_wait_is_an_event_of_its_own(void **state)
{
	const unsigned long word = one.regs.rdi;
	uint64_t at = 0;

	(void)state;
	switch_in(&one, at);
	for (uint32_t i = 0; i < 10; i++) {
		one.regs.orig_rax = __NR_nanosleep;
		switch_out(&one, at += 10 * US);
		switch_in(&one, at += MS);
		one.regs.orig_rax = __NR_futex;
		one.regs.rdi = word;
		switch_out(&one, at += 10 * US);
		switch_in(&one, at += MS);
	}
	window_close(at);
	assert_waited(&one, PP_WAIT_GIL, 10, 10 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 10, 10 * MS);
}

/* The budget leaves parts of it out: in the mean it is still one event.  500 waits of 20 parts
 * each, of which one in 16 is walked. */
static void gil__parts_that_are_left_out_are_no_events(void **state)
{
	uint64_t at = 1 * MS;
	double events, sigma = 22.4 * 3.9; /* sqrt(500) times sqrt(16 - 1) */

	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 500 * US);
	switch_in(&one, at);
	for (uint32_t i = 0; i < 500; i++) {
		/* A site of its own each time: none is known. */
		one.regs.rsp = STACK + 0x2000 + i * 16;
		host->config.epoch++;
		for (uint32_t k = 0; k < 20; k++) {
			host->switch_state.budget = (struct budget){
				.started_ns = START_NS + at, .credit_ns = -1, .shift = 4};
			switch_out(&one, at += 10 * US);
			switch_in(&one, at += 5 * MS);
		}
		at += MS;
		host_drop_records();
	}
	window_close(at);
	events = (double)waited(71, PP_WAIT_GIL).samples - 1;
	assert_true(events > 500 - 4 * sigma);
	assert_true(events < 500 + 4 * sigma);
}

static void gil__each_holder_gets_its_part(void **state)
{
	struct actor three;
	uint64_t state_of_three, stack;

	(void)state;
	actor_init(&three, 70, 73);
	state_of_three = new_state(&three, "holds too");
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	switch_in(&one, 6 * MS);
	put_holder(state_of_three, 1);
	switch_out(&one, 6 * MS + 10 * US);
	switch_in(&one, 9 * MS + 10 * US);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_GIL, 1, 8 * MS);
	assert_int_equal(blamed(1072, &stack).weight, 5 * MS);
	assert_int_equal(blamed(1073, &stack).weight, 3 * MS);
}

/* It was let go between the look at it and the wait, or the waiter itself has it by now. */
static void gil__without_a_holder_nobody_is_to_blame(void **state)
{
	uint64_t stack;

	(void)state;
	put_holder(state_of_two, 0);
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	switch_in(&one, 2 * MS);
	put_holder(state_of_one, 1);
	switch_out(&one, 3 * MS);
	switch_in(&one, 5 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_GIL, 2, 3 * MS);
	assert_int_equal(blamed(0, &stack).weight, 3 * MS);
	assert_int_equal(stack, 0);
	assert_int_equal(blamed(1072, &stack).weight, 0);
}

/* It could not be looked at: the holder of an earlier wait is none of this one. */
static void gil__without_a_free_walk_nobody_is_to_blame(void **state)
{
	uint64_t stack;

	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	switch_in(&one, 2 * MS);
	take_scratch(true);
	switch_out(&one, 3 * MS);
	take_scratch(false);
	switch_in(&one, 5 * MS);
	window_close(10 * MS);
	assert_int_equal(host->losses[PP_LOSS_NO_SCRATCH], 1);
	assert_waited(&one, PP_WAIT_GIL, 2, 3 * MS);
	assert_int_equal(blamed(1072, &stack).weight, 1 * MS);
	assert_int_equal(blamed(0, &stack).weight, 2 * MS);
}

/* A wait that goes on at the edge has its holder in both windows. */
static void gil__blame_is_cut_at_the_edge(void **state)
{
	uint64_t stack;

	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 8 * MS);
	window_close(10 * MS);
	assert_int_equal(blamed(1072, &stack).weight, 2 * MS);
	harvest_drop();
	switch_in(&one, 11 * MS);
	window_close(20 * MS);
	assert_int_equal(blamed(1072, &stack).weight, 1 * MS);
	assert_waited(&one, PP_WAIT_GIL, 0, 1 * MS);
}

/* 3.12 and later: each has its own GIL.  The other's words are a lock to this thread, and whoever
 * holds the other one is not to blame. */
static void gil__of_each_sub_interpreter(void **state)
{
	const uint64_t first_gil = gil_address, first = interpreter;
	uint64_t state_of_three, stack;
	struct actor three;

	(void)state;
	gil_address = heap_take(256);
	interpreter = heap_take(64);
	put_word(interpreter + INTERP_GIL, gil_address);
	actor_init(&three, 70, 73);
	state_of_three = new_state(&three, "other");
	put_holder(state_of_three, 1);
	actor_init(&two, 70, 74);
	new_state(&two, "waits there");
	two.regs.orig_rax = __NR_futex;
	two.regs.rdi = gil_address + GIL_LAST_HOLDER + FUTEX_AT;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	switch_in(&two, 1 * MS);
	switch_out(&two, 2 * MS);
	switch_in(&one, 4 * MS);
	switch_in(&two, 7 * MS);
	one.regs.rdi = gil_address + GIL_LAST_HOLDER + FUTEX_AT;
	switch_out(&one, 8 * MS);
	assert_int_equal(wait_site_reason(wait_site_of(&one)), PP_WAIT_LOCK);
	/* The same thread runs the other interpreter's code now. */
	switch_in(&one, 9 * MS);
	put_word(state_of_one + TS_INTERP, interpreter);
	one.regs.rsp += 64;
	switch_out(&one, 10 * MS);
	assert_int_equal(wait_site_reason(wait_site_of(&one)), PP_WAIT_GIL);
	switch_in(&one, 16 * MS);
	window_close(20 * MS);
	assert_int_equal(blamed(1072, &stack).weight, 3 * MS);
	assert_int_equal(blamed(1073, &stack).weight, 11 * MS);
	assert_int_equal(blamed(0, &stack).weight, 0);
	put_word(state_of_one + TS_INTERP, first);
	gil_address = first_gil;
}

static void gil__unreadable_one_is_a_lock_and_blames_nobody(void **state)
{
	uint64_t stack;

	(void)state;
	put_fault(interpreter, 64);
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	assert_int_equal(wait_site_reason(wait_site_of(&one)), PP_WAIT_LOCK);
	host->fault_count = 0;
	put_fault(gil_address, 64);
	switch_in(&one, 2 * MS);
	one.regs.rsp += 64;
	switch_out(&one, 3 * MS);
	switch_in(&one, 5 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_GIL, 1, 2 * MS);
	assert_int_equal(blamed(0, &stack).weight, 2 * MS);
}

static void gil__blame_is_only_looked_for_when_asked(void **state)
{
	uint64_t reads, stack;

	(void)state;
	host->config.flags = 0;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	reads = host->user_reads;
	switch_in(&one, 2 * MS);
	switch_out(&one, 3 * MS);
	assert_int_equal(host->user_reads, reads + 2); /* the frame, its instruction */
	switch_in(&one, 4 * MS);
	window_close(10 * MS);
	assert_waited(&one, PP_WAIT_GIL, 2, 2 * MS);
	assert_int_equal(blamed(0, &stack).weight, 2 * MS);
}

/* 3.7 to 3.11: in _PyRuntime. */
static void gil__in_the_runtime(void **state)
{
	(void)state;
	host->python.gil_mode = PP_GIL_RUNTIME;
	host->python.gil_offset = 0x40;
	one.regs.rdi = INTERPRETER + host->python.runtime + 0x40 + FUTEX_AT;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	assert_int_equal(wait_site_reason(wait_site_of(&one)), PP_WAIT_GIL);
	switch_in(&one, 2 * MS);
	one.regs.rdi = INTERPRETER + host->python.runtime + 0x40 + GIL_WAIT_HIGH;
	switch_out(&one, 3 * MS);
	assert_int_equal(wait_site_reason(wait_site_of(&one)), PP_WAIT_LOCK);
}

/* 3.6: its words lie among the static data, and the holder is _PyThreadState_Current.  2.7: no
 * words. */
static void gil__of_3_6_and_2_7(void **state)
{
	const struct pp_process_id id = {.tgid = 70, .generation = GENERATION};
	struct pp_process_context *context = bpf_map_lookup_elem(&contexts, &id);
	uint64_t current = heap_take(16), stack;

	(void)state;
	host->python.gil_mode = PP_GIL_CURRENT;
	host->python.gil_wait_low = 0x9000;
	host->python.gil_wait_bytes = 0x100;
	context->tls[0].address = current;
	context->tls[0].mode = PP_TLS_GLOBAL;
	context->tls[1] = (struct pp_tls){.mode = PP_TLS_THREAD_OFFSET};
	put_word(current, state_of_one);
	switch_in(&one, 0);
	one.regs.rdi = INTERPRETER + 0x90ff;
	switch_out(&one, 1 * MS);
	assert_int_equal(wait_site_reason(wait_site_of(&one)), PP_WAIT_GIL);
	put_word(current, state_of_two);
	switch_in(&one, 3 * MS);
	switch_out(&one, 4 * MS);
	switch_in(&one, 8 * MS);
	one.regs.rdi = INTERPRETER + 0x9100;
	switch_out(&one, 9 * MS);
	assert_int_equal(wait_site_reason(wait_site_of(&one)), PP_WAIT_LOCK);
	switch_in(&one, 10 * MS);
	host->python.gil_wait_bytes = 0;
	one.regs.rdi = INTERPRETER + 0x9000;
	switch_out(&one, 11 * MS);
	assert_int_equal(wait_site_reason(wait_site_of(&one)), PP_WAIT_LOCK);
	window_close(20 * MS);
	assert_waited(&one, PP_WAIT_GIL, 2, 6 * MS);
	assert_int_equal(blamed(1072, &stack).weight, 4 * MS);
}

static void gil__free_threaded_has_none(void **state)
{
	(void)state;
	host->python.flags = PP_PYTHON_FREE_THREADED;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	assert_int_equal(wait_site_reason(wait_site_of(&one)), PP_WAIT_LOCK);
}

/* The same C stack runs other Python code. */
static void python__another_frame_or_instruction_is_another_site(void **state)
{
	uint64_t frame = heap_take(PP_FRAME_READ_BYTES), code = new_code("other", 1);
	uint32_t records;

	(void)state;
	one.regs.orig_rax = __NR_nanosleep;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	switch_in(&one, 2 * MS);
	records = host->record_count;
	put_word(frame + FRAME_CODE, code);
	put_word(frame + FRAME_INSTR, code + CODE_ADAPTIVE + 10);
	put_word(state_of_one + TS_FRAME, frame);
	switch_out(&one, 3 * MS);
	switch_in(&one, 5 * MS);
	assert_int_equal(host->record_count, records + 2); /* its code, the stack */
	put_word(frame + FRAME_INSTR, code + CODE_ADAPTIVE + 20);
	switch_out(&one, 6 * MS);
	switch_in(&one, 10 * MS);
	assert_int_equal(host->record_count, records + 3);
	switch_out(&one, 11 * MS);
	assert_int_equal(host->record_count, records + 3);
	window_close(12 * MS);
	assert_int_equal(harvested.count, 3);
	assert_waited(&one, PP_WAIT_SLEEP, 4, 8 * MS);
}

/* The same function waits at the same instruction, called by another one. */
static void python__another_frame_of_the_same_code_is_another_site(void **state)
{
	uint64_t code = new_code("same", 1), frame[2];

	(void)state;
	one.regs.orig_rax = __NR_nanosleep;
	frame[0] = new_frame(code, new_frame(new_code("caller", 1), 0, 0), 0);
	frame[1] = new_frame(code, new_frame(new_code("other caller", 1), 0, 0), 0);
	switch_in(&one, 0);
	for (uint32_t i = 0; i < 6; i++) {
		put_word(state_of_one + TS_FRAME, frame[i % 2]);
		switch_out(&one, (10 * i + 1) * MS);
		switch_in(&one, (10 * i + 2 + i % 2) * MS);
	}
	window_close(100 * MS);
	assert_int_equal(harvested.count, 2);
	assert_int_not_equal(harvested.entry[0].key.user_stack, harvested.entry[1].key.user_stack);
	assert_int_equal(harvested.entry[0].count.weight, 3 * MS);
	assert_int_equal(harvested.entry[1].count.weight, 6 * MS);
}

/* Many threads that hand it on all the time: the look at the holder is a walk like others. */
static void budget__blame_is_paid_from_it(void **state)
{
	uint64_t start_ns, reads = 0, walks = 0, walk_ns = 0;
	double truth_ns = 0, variance = 0, error;

	(void)state;
	switch_in(&one, 0);
	start_ns = host->now_ns;
	host->ns_a_reading = 10 * US;
	for (int i = 0; i < 20000; i++) {
		uint64_t length_ns = 50 * US + bpf_get_prandom_u32() % (50 * US), left_ns;
		double length;

		reads = host->user_reads;
		one.task.__state = INTERRUPTIBLE;
		left_ns = host->now_ns;
		run_switch(false, &one, NULL);
		if (host->user_reads > reads + 2) {
			walks++;
			walk_ns += slot_of(&one)->since_ns - left_ns;
		}
		left_ns = slot_of(&one)->since_ns;
		host->now_ns = left_ns + length_ns;
		run_switch(false, NULL, &one);
		length = (double)(slot_of(&one)->since_ns - left_ns);
		truth_ns += length;
		variance += length * length * (double)((1U << slot_of(&one)->weight_shift) - 1);
		host->now_ns += 100 * US;
	}
	host->ns_a_reading = 0;
	assert_true(walk_ns < (host->now_ns - start_ns) / 150 + 2 * PP_BUDGET_CREDIT_NS);
	assert_true(walks > 1000);
	window_close(host->now_ns - START_NS);
	error = (double)waited(71, PP_WAIT_GIL).weight - truth_ns;
	assert_true(error * error < 25 * variance);
	assert_true(25 * variance < truth_ns / 4 * truth_ns / 4);
}

#define gil_test(test) cmocka_unit_test_setup_teardown(test, gil_setup, switch_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		gil_test(gil__wait_is_counted_with_its_holder_to_blame),
		gil_test(gil__other_futex_is_a_lock),
		gil_test(gil__timed_retries_are_one_event),
		gil_test(gil__wait_after_another_wait_is_an_event_of_its_own),
		gil_test(gil__parts_that_are_left_out_are_no_events),
		gil_test(gil__each_holder_gets_its_part),
		gil_test(gil__without_a_holder_nobody_is_to_blame),
		gil_test(gil__without_a_free_walk_nobody_is_to_blame),
		gil_test(gil__blame_is_cut_at_the_edge),
		gil_test(gil__of_each_sub_interpreter),
		gil_test(gil__unreadable_one_is_a_lock_and_blames_nobody),
		gil_test(gil__blame_is_only_looked_for_when_asked),
		gil_test(gil__in_the_runtime),
		gil_test(gil__of_3_6_and_2_7),
		gil_test(gil__free_threaded_has_none),
		gil_test(python__another_frame_or_instruction_is_another_site),
		gil_test(python__another_frame_of_the_same_code_is_another_site),
		gil_test(budget__blame_is_paid_from_it),
	};

	return cmocka_run_group_tests_name("bpf/switch_gil", tests, NULL, NULL);
}
