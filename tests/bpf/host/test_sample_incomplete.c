/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a sample whose stack the agent completes carries. */
#include "sample.h"

#include "python.h"

static void incomplete__carries_all_that_is_needed_and_is_not_counted(void **state)
{
	const struct pp_incomplete_record *incomplete;
	const uint8_t *stack;

	(void)state;
	begin();
	host->page[INTERPRETER_PAGE0] = 0;
	put_word(SP + 8, interpreter_pc(4));
	put_word(SP + 16, 0xfeed);
	sampled.regs.rbp = 0xb9;
	sampled.regs.r12 = 0x1212;
	memset(&host->walk.out.incomplete.key, 0xff, sizeof(host->walk.out.incomplete.key));
	sample_now();
	assert_int_equal(count_keys(0), 0);
	assert_int_equal(host->record_count, 1);
	assert_int_equal(host->record[0].flags, BPF_RB_FORCE_WAKEUP);
	incomplete = host->record[0].data;
	assert_int_equal(incomplete->record.type, PP_RECORD_INCOMPLETE);
	assert_int_equal(incomplete->stop, PP_STOP_NO_ROWS);
	assert_int_equal(incomplete->pc, interpreter_pc(4));
	assert_int_equal(incomplete->sp, SP + 16);
	assert_int_equal(incomplete->fp, 0xb9);
	assert_int_equal(incomplete->is_leaf, 0);
	assert_int_equal(incomplete->registers[12], 0x1212);
	assert_int_equal(incomplete->weight, PERIOD);
	assert_int_equal(incomplete->key.user_stack, 0);
	assert_int_equal(incomplete->key.tid, 71);
	assert_int_equal(incomplete->key.kind, PP_KIND_CPU);
	assert_int_equal(incomplete->key.detail, 0);
	assert_string_equal(incomplete->key.comm, "worker");
	assert_int_equal(incomplete->native_stored, 1);
	assert_int_equal(incomplete->stack_start, SP + 16);
	assert_int_equal(incomplete->stack_bytes, PP_STACK_COPY_BYTES);
	assert_int_equal(host->record[0].size,
			 sizeof(*incomplete) + sizeof(struct pp_frame) + PP_STACK_COPY_BYTES);
	stack = incomplete->bytes + sizeof(struct pp_frame);
	assert_int_equal(*(const uint64_t *)stack, 0xfeed);
	assert_int_equal(host->config.incomplete_tokens, 3);
}

static void incomplete__carries_replaced_return_addresses_of_callers(void **state)
{
	struct return_instance instance[3] = {
		{.stack = SP - 64, .orig_ret_vaddr = library_pc(1), .next = &instance[1]},
		{.stack = SP + 8, .orig_ret_vaddr = library_pc(2), .next = &instance[2]},
		{.stack = SP + 64, .orig_ret_vaddr = library_pc(3)}};
	struct uprobe_task utask = {.return_instances = instance};
	const struct pp_incomplete_record *incomplete;
	const struct pp_return *returns;

	(void)state;
	begin();
	host->page[INTERPRETER_PAGE0] = 0;
	put_word(SP + 8, interpreter_pc(4));
	put_word(SP + 16, 0xfeed);
	host->task.utask = &utask;
	sample_now();
	incomplete = host->record[0].data;
	assert_int_equal(incomplete->sp, SP + 16);
	/* That of a call below was of use to nobody. */
	assert_int_equal(incomplete->return_count, 2);
	returns = (const struct pp_return *)(incomplete->bytes + sizeof(struct pp_frame));
	assert_int_equal(returns[0].stack, SP + 8);
	assert_int_equal(returns[0].address, library_pc(2));
	assert_int_equal(returns[1].stack, SP + 64);
	assert_int_equal(returns[1].address, library_pc(3));
	assert_int_equal(((const uint64_t *)(returns + 2))[0], 0xfeed);
	assert_int_equal(host->record[0].size, sizeof(*incomplete) + sizeof(struct pp_frame) +
						       2 * sizeof(*returns) + PP_STACK_COPY_BYTES);
}

static void incomplete__copies_the_stack_as_far_as_it_is_there(void **state)
{
	const struct pp_incomplete_record *incomplete;

	(void)state;
	begin();
	host->page[LIBRARY_PAGE0] = 0;
	put_fault(SP + 2 * PP_STACK_COPY_CHUNK_BYTES + 100, 8);
	sample_now();
	incomplete = host->record[0].data;
	assert_int_equal(incomplete->is_leaf, 1);
	assert_int_equal(incomplete->native_stored, 0);
	assert_int_equal(incomplete->stack_bytes, 2 * PP_STACK_COPY_CHUNK_BYTES);
}

static void incomplete__without_tokens_is_counted_here(void **state)
{
	struct pp_count count;

	(void)state;
	begin();
	host->page[LIBRARY_PAGE0] = 0;
	host->config.incomplete_tokens = 0;
	sample_now();
	assert_int_equal(stop_of(the_key(0, &count)), PP_STOP_NO_ROWS);
	assert_int_equal(host->losses[PP_LOSS_MISS_DROPPED], 1);
}

static void incomplete__only_what_was_sent_counts_as_asked(void **state)
{
	(void)state;
	begin();
	host->walk.id.generation = 1;
	host->walk.context.python = 1;
	host->walk.is_resumable = 1;
	host->config.incomplete_tokens = 0;
	assert_int_equal(walk_emit_incomplete(0), 1);
	assert_int_equal(host->resync.asked, 0);
	host->config.incomplete_tokens = 1;
	assert_int_equal(walk_emit_incomplete(0), 0);
	assert_int_equal(host->resync.asked, 1);
}

/* A chain without an end, of which the clock lets a part be walked. */
static uint64_t begin_slow_python(void)
{
	uint64_t state = heap_take(256), frame;

	begin();
	python_init(PP_CHAIN_FRAME_CFRAME, 10);
	host->walk.id = (struct pp_process_id){.tgid = 70, .generation = 3};
	host->walk.context.python = 1;
	host->walk.context.python_bias = INTERPRETER;
	host->walk.context.tls[0] =
		(struct pp_tls){.mode = PP_TLS_GLOBAL, .address = heap_take(16)};
	put_word(host->walk.context.tls[0].address, state);
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

static const struct pp_incomplete_record *the_incomplete(void)
{
	const struct pp_incomplete_record *incomplete = host->record[host->record_count - 1].data;

	assert_int_equal(incomplete->record.type, PP_RECORD_INCOMPLETE);
	return incomplete;
}

static void incomplete__of_a_python_walk_says_where_it_goes_on(void **state)
{
	const struct pp_incomplete_record *incomplete;
	const struct pp_segment *segment;
	uint64_t frame = begin_slow_python();
	uint32_t walked;

	(void)state;
	assert_int_equal(walk_user(0), 0);
	host->ns_a_reading = 0; /* the way out is fast */
	host->now_ns = host->walk.deadline_ns;
	assert_int_equal(walk_emit_incomplete(0), 0);
	walked = host->walk.python_count;
	assert_true(walked >= PP_CLOCK_STEPS - 1);
	incomplete = the_incomplete();
	assert_int_equal(incomplete->stop, PP_STOP_MAX_TIME);
	assert_int_equal(incomplete->py_stop, PP_PY_STOP_MAX_TIME);
	assert_int_equal(incomplete->python_frame, frame);
	assert_int_equal(incomplete->cframe, SP + 0x800);
	assert_memory_equal(incomplete->frame_head,
			    memory_at(frame, sizeof(incomplete->frame_head)),
			    sizeof(incomplete->frame_head));
	/* The native walk has not begun: all of it is the agent's. */
	assert_int_equal(incomplete->pc, interpreter_pc(4));
	assert_int_equal(incomplete->native_count, 0);
	assert_int_equal(incomplete->stack_start, SP - RED_ZONE_BYTES);
	assert_int_equal(incomplete->stack_bytes, PP_STACK_COPY_BYTES);
	assert_int_equal(incomplete->segment_count, walked);
	segment = (const void *)(incomplete->bytes + walked * sizeof(struct pp_frame));
	assert_int_equal(segment[walked - 1].anchor, SP + 0x800);
	assert_int_equal(incomplete->record.size,
			 sizeof(*incomplete) + walked * sizeof(struct pp_frame) +
				 walked * sizeof(struct pp_segment) + incomplete->stack_bytes);
}

/* A leaf that may have no frame: a call is in front of the word at sp, of a function far away. */
static void walk_user__that_may_lack_a_caller_has_not_reached_the_root(void **state)
{
	static const uint8_t code[] = {0xe8, 0, 0, 0, 0x70};

	(void)state;
	begin();
	host->walk.context.python = 0;
	put_bytes(ANONYMOUS + 16, code, sizeof(code));
	put_word(SP, ANONYMOUS + 21);
	put_word(SP + 0x20, 0x77);
	put_word(SP + 0x28, library_pc(2)); /* STOP */
	host->walk.pc = ANONYMOUS + 64;
	host->walk.sp = SP;
	host->walk.fp = SP + 0x20;
	host->walk.is_leaf = 1;
	assert_int_equal(walk_user(0), 0);
	assert_int_equal(host->walk.stop, PP_STOP_NO_INFO);
	assert_int_equal(host->walk.native_count, 3);
	put_word(SP, 0);
	walk_reset(&host->walk, PERIOD, bpf_ktime_get_ns(), PP_SAMPLE_WALK_NS);
	host->walk.pc = ANONYMOUS + 64;
	host->walk.sp = SP;
	host->walk.fp = SP + 0x20;
	host->walk.is_leaf = 1;
	assert_int_equal(walk_user(0), 0);
	assert_int_equal(host->walk.stop, PP_STOP_ROOT);
}

static void incomplete__of_another_threads_python_has_no_stack(void **state)
{
	const struct pp_incomplete_record *incomplete;

	(void)state;
	begin_slow_python();
	assert_int_equal(walk_python_only(0), 0);
	assert_int_equal(walk_emit_stacks(0), 0);
	incomplete = the_incomplete();
	assert_int_equal(incomplete->stop, PP_STOP_ROOT);
	assert_int_equal(incomplete->py_stop, PP_PY_STOP_MAX_TIME);
	assert_int_equal(incomplete->stack_bytes, 0);
	assert_int_not_equal(incomplete->key.user_stack, 0);
	assert_int_equal(incomplete->key.user_stack, host->walk.hash);
}

static void send_anchors(uint32_t count)
{
	begin();
	host->walk.id.generation = 1;
	host->walk.stop = PP_STOP_MAX_TIME;
	host->walk.sp = SP;
	host->walk.native_count = 1;
	host->walk.segment_next = 40;
	host->walk.segment_count = 40 + count;
	for (uint32_t i = 0; i < host->walk.segment_count; i++)
		host->walk.segment[i] = (struct pp_segment){.anchor = STACK + i, .frames = i};
	assert_int_equal(walk_emit_incomplete(0), 0);
}

static void incomplete__carries_all_anchors_that_were_not_met(void **state)
{
	const struct pp_segment *segment;

	(void)state;
	send_anchors(1500);
	assert_int_equal(the_incomplete()->segment_count, 1500);
	segment = (const void *)the_incomplete()->bytes;
	for (uint32_t i = 0; i < 1500; i++)
		assert_int_equal(segment[i].frames, 40 + i);
	assert_int_equal(the_incomplete()->stack_bytes, PP_STACK_COPY_CHUNK_BYTES);
	assert_int_equal(host->losses[PP_LOSS_SEGMENTS_FULL], 0);
	send_anchors(PP_MAX_SEGMENTS - 40);
	assert_int_equal(the_incomplete()->segment_count, PP_MAX_SEGMENTS - 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(incomplete__carries_all_that_is_needed_and_is_not_counted),
		host_test(incomplete__carries_replaced_return_addresses_of_callers),
		host_test(incomplete__copies_the_stack_as_far_as_it_is_there),
		host_test(incomplete__without_tokens_is_counted_here),
		host_test(incomplete__only_what_was_sent_counts_as_asked),
		host_test(incomplete__of_a_python_walk_says_where_it_goes_on),
		host_test(incomplete__of_another_threads_python_has_no_stack),
		host_test(walk_user__that_may_lack_a_caller_has_not_reached_the_root),
		host_test(incomplete__carries_all_anchors_that_were_not_met),
	};

	return cmocka_run_group_tests_name("bpf/sample_incomplete", tests, NULL, NULL);
}
