/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/decode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What the handlers saw last. */
struct seen {
	unsigned int stacks, kernels, codes, incompletes, texts, events, timelines;
	struct decoded_stack stack;
	struct decoded_kernel kernel;
	struct decoded_incomplete incomplete;
	const struct pp_code_record *code;
	const struct pp_text_record *text;
	size_t text_bytes;
	const struct pp_event *event;
	const struct pp_timeline_record *timeline;
};

static void on_stack(void *context, const struct decoded_stack *stack)
{
	struct seen *seen = context;

	seen->stacks++;
	seen->stack = *stack;
}
static void on_kernel(void *context, const struct decoded_kernel *kernel)
{
	struct seen *seen = context;

	seen->kernels++;
	seen->kernel = *kernel;
}
static void on_code(void *context, const struct pp_code_record *record)
{
	struct seen *seen = context;

	seen->codes++;
	seen->code = record;
}
static void on_incomplete(void *context, const struct decoded_incomplete *incomplete)
{
	struct seen *seen = context;

	seen->incompletes++;
	seen->incomplete = *incomplete;
}
static void on_text(void *context, const struct pp_text_record *record, size_t bytes)
{
	struct seen *seen = context;

	seen->texts++;
	seen->text = record;
	seen->text_bytes = bytes;
}
static void on_event(void *context, const struct pp_event *event)
{
	struct seen *seen = context;

	seen->events++;
	seen->event = event;
}

static void on_timeline(void *context, const struct pp_timeline_record *record)
{
	struct seen *seen = context;

	seen->timelines++;
	seen->timeline = record;
}

static int decode(const void *data, size_t size, struct seen *seen)
{
	const struct drain_handlers handlers = {.context = seen,
						.stack = on_stack,
						.kernel = on_kernel,
						.code = on_code,
						.incomplete = on_incomplete,
						.text = on_text,
						.event = on_event};

	*seen = (struct seen){};
	return decode_record(data, size, &handlers);
}

static void assert_refused(const void *data, size_t size)
{
	struct seen seen;

	assert_int_equal(decode(data, size, &seen), -EBADMSG);
	assert_int_equal(seen.stacks + seen.kernels + seen.codes + seen.incompletes + seen.texts,
			 0);
}

/* ---- stacks ---- */

#define FRAME(frame_kind, frame_where) {.where = (frame_where), .kind = (frame_kind)}

struct stack_of_three {
	struct pp_stack_record record;
	struct pp_frame frame[3];
};

static struct stack_of_three good_stack(void)
{
	return (struct stack_of_three){
		.record = {.record = {.type = PP_RECORD_STACK,
				      .size = sizeof(struct stack_of_three)},
			   .hash = 0x1234,
			   .python_stored = 1,
			   .native_stored = 2,
			   .python_count = 1,
			   .native_count = 2,
			   .stop = PP_STOP_ROOT,
			   .py_stop = PP_PY_STOP_ROOT},
		.frame = {FRAME(PP_FRAME_PYTHON, 0xc0de), FRAME(PP_FRAME_SEGMENT, 1),
			  FRAME(PP_FRAME_NATIVE, 0x400)},
	};
}

static void decode_record__stack_gives_both_areas(void **state)
{
	struct stack_of_three stack = good_stack();
	struct seen seen;

	(void)state;
	assert_int_equal(decode(&stack, sizeof(stack), &seen), 0);
	assert_int_equal(seen.stacks, 1);
	assert_int_equal(seen.stack.record->hash, 0x1234);
	assert_int_equal(seen.stack.python[0].where, 0xc0de);
	assert_int_equal(seen.stack.native[0].kind, PP_FRAME_SEGMENT);
	assert_int_equal(seen.stack.native[1].where, 0x400);
}

static void decode_record__empty_stack_is_fine(void **state)
{
	struct pp_stack_record record = {
		.record = {.type = PP_RECORD_STACK, .size = sizeof(record)}, .hash = 7};
	struct seen seen;

	(void)state;
	assert_int_equal(decode(&record, sizeof(record), &seen), 0);
	assert_int_equal(seen.stacks, 1);
}

static void decode_record__size_that_does_not_match_is_refused(void **state)
{
	struct stack_of_three stack = good_stack();

	(void)state;
	/* Each prefix, with the header telling the same or the old size. */
	for (size_t size = 0; size < sizeof(stack); size++) {
		assert_refused(&stack, size);
		stack.record.record.size = (uint32_t)size;
		assert_refused(&stack, size);
		stack.record.record.size = sizeof(stack);
	}
}

static void decode_record__stack_whose_counts_disagree_is_refused(void **state)
{
	struct stack_of_three stack = good_stack();

	(void)state;
	stack.record.python_stored = 2;
	assert_refused(&stack, sizeof(stack));
	stack = good_stack();
	stack.record.native_stored = UINT16_MAX;
	assert_refused(&stack, sizeof(stack));
	stack = good_stack();
	stack.record.python_count = 0; /* fewer walked than stored */
	assert_refused(&stack, sizeof(stack));
	stack = good_stack();
	stack.record.native_count = 1;
	assert_refused(&stack, sizeof(stack));
	stack = good_stack();
	stack.record.native_count = 2 * PP_MAX_STEPS + 1;
	assert_refused(&stack, sizeof(stack));
	stack = good_stack();
	stack.record.python_count = UINT32_MAX;
	assert_refused(&stack, sizeof(stack));
}

static void decode_record__more_frames_stored_than_the_bound_is_refused(void **state)
{
	const uint32_t frames = PP_MAX_FRAMES + 1;
	const size_t size = sizeof(struct pp_stack_record) + frames * sizeof(struct pp_frame);
	struct pp_stack_record *record = calloc(1, size);
	struct seen seen;

	(void)state;
	assert_non_null(record);
	record->record = (struct pp_record){.type = PP_RECORD_STACK, .size = (uint32_t)size};
	record->native_stored = (uint16_t)frames;
	record->native_count = frames;
	assert_refused(record, size);
	record->native_stored--;
	record->record.size -= sizeof(struct pp_frame);
	assert_int_equal(decode(record, size - sizeof(struct pp_frame), &seen), 0);
	free(record);
}

static void decode_record__reason_that_does_not_exist_is_refused(void **state)
{
	struct stack_of_three stack = good_stack();

	(void)state;
	stack.record.stop = PP_STOP_COUNT;
	assert_refused(&stack, sizeof(stack));
	stack = good_stack();
	stack.record.py_stop = PP_PY_STOP_COUNT;
	assert_refused(&stack, sizeof(stack));
}

static void decode_record__frame_kind_of_the_other_area_is_refused(void **state)
{
	struct stack_of_three stack = good_stack();

	(void)state;
	stack.frame[0].kind = PP_FRAME_NATIVE;
	assert_refused(&stack, sizeof(stack));
	stack = good_stack();
	stack.frame[1].kind = PP_FRAME_PYTHON;
	assert_refused(&stack, sizeof(stack));
	stack = good_stack();
	stack.frame[2].kind = PP_FRAME_EVAL + 1;
	assert_refused(&stack, sizeof(stack));
}

static void decode_record__unknown_type_is_refused(void **state)
{
	struct stack_of_three stack = good_stack();

	(void)state;
	stack.record.record.type = 0;
	assert_refused(&stack, sizeof(stack));
	stack.record.record.type = PP_RECORD_TEXT + 1;
	assert_refused(&stack, sizeof(stack));
}

/* ---- kernel stacks ---- */

struct kernel_of {
	struct pp_kernel_record record;
	uint64_t address[PP_MAX_KERNEL_FRAMES + 1];
};

static void decode_record__kernel_stack_counts_its_addresses(void **state)
{
	struct kernel_of kernel = {.record = {.record = {.type = PP_RECORD_KERNEL}, .hash = 9},
				   .address = {0xffff1, 0xffff2}};
	size_t size = sizeof(struct pp_kernel_record) + 2 * sizeof(uint64_t);
	struct seen seen;

	(void)state;
	kernel.record.record.size = (uint32_t)size;
	assert_int_equal(decode(&kernel, size, &seen), 0);
	assert_int_equal(seen.kernels, 1);
	assert_int_equal(seen.kernel.count, 2);
	assert_int_equal(seen.kernel.record->address[1], 0xffff2);
}

static void decode_record__kernel_stack_of_broken_size_is_refused(void **state)
{
	struct kernel_of kernel = {.record = {.record = {.type = PP_RECORD_KERNEL}}};
	size_t half = sizeof(struct pp_kernel_record) + 4, most = sizeof(kernel) - sizeof(uint64_t);
	struct seen seen;

	(void)state;
	kernel.record.record.size = (uint32_t)half;
	assert_refused(&kernel, half);
	kernel.record.record.size = sizeof(struct pp_record);
	assert_refused(&kernel, sizeof(struct pp_record));
	kernel.record.record.size = sizeof(kernel);
	assert_refused(&kernel, sizeof(kernel));
	kernel.record.record.size = (uint32_t)most;
	assert_int_equal(decode(&kernel, most, &seen), 0);
	assert_int_equal(seen.kernel.count, PP_MAX_KERNEL_FRAMES);
}

/* ---- code objects ---- */

struct code_of {
	struct pp_code_record record;
	uint8_t bytes[12];
};

static struct code_of good_code(void)
{
	return (struct code_of){.record = {.record = {.type = PP_RECORD_CODE,
						      .size = sizeof(struct pp_code_record) + 12},
					   .id = 5,
					   .name_bytes = 4,
					   .filename_bytes = 6,
					   .line_table_bytes = 2}};
}

#define CODE_SIZE (sizeof(struct pp_code_record) + 12)

static void decode_record__code_object_passes_whole(void **state)
{
	struct code_of code = good_code();
	struct seen seen;

	(void)state;
	assert_int_equal(decode(&code, CODE_SIZE, &seen), 0);
	assert_int_equal(seen.codes, 1);
	assert_int_equal(seen.code->id, 5);
}

static void decode_record__code_object_whose_parts_do_not_add_up_is_refused(void **state)
{
	struct code_of code = good_code();

	(void)state;
	code.record.name_bytes++;
	assert_refused(&code, CODE_SIZE);
	code = good_code();
	code.record.filename_bytes--;
	assert_refused(&code, CODE_SIZE);
	code = good_code();
	code.record.line_table_bytes = UINT32_MAX;
	assert_refused(&code, CODE_SIZE);
	code = good_code();
	code.record.record.size = sizeof(struct pp_code_record) - 8;
	assert_refused(&code, sizeof(struct pp_code_record) - 8);
}

/* ---- missed stacks ---- */

struct incomplete_of {
	struct pp_incomplete_record record;
	struct pp_frame frame[2];
	struct pp_segment segment[1];
	struct pp_return returns[1];
	uint8_t stack[16];
};

static struct incomplete_of good_incomplete(void)
{
	return (struct incomplete_of){
		.record = {.record = {.type = PP_RECORD_INCOMPLETE,
				      .size = sizeof(struct incomplete_of)},
			   .pc = 0x401000,
			   .stack_bytes = 16,
			   .segment_count = 1,
			   .return_count = 1,
			   .python_stored = 1,
			   .python_count = 1,
			   .native_stored = 1,
			   .native_count = 1,
			   .stop = PP_STOP_NO_ROWS},
		.frame = {FRAME(PP_FRAME_PYTHON_RAW, 0xc0de), FRAME(PP_FRAME_ANONYMOUS, 0x400)},
		.segment = {{.anchor = 0x7ffc, .frames = 1}},
		.returns = {{.stack = 0x7ff0, .address = 0x401234}},
		.stack = "0123456789abcde",
	};
}

static void decode_record__incomplete_gives_all_its_parts(void **state)
{
	struct incomplete_of incomplete = good_incomplete();
	struct seen seen;

	(void)state;
	assert_int_equal(decode(&incomplete, sizeof(incomplete), &seen), 0);
	assert_int_equal(seen.incompletes, 1);
	assert_int_equal(seen.incomplete.record->pc, 0x401000);
	assert_int_equal(seen.incomplete.python[0].where, 0xc0de);
	assert_int_equal(seen.incomplete.native[0].where, 0x400);
	assert_int_equal(seen.incomplete.segment[0].anchor, 0x7ffc);
	assert_int_equal(seen.incomplete.returns[0].stack, 0x7ff0);
	assert_int_equal(seen.incomplete.returns[0].address, 0x401234);
	assert_memory_equal(seen.incomplete.stack, "0123456789abcde", 16);
}

static void decode_record__incomplete_whose_parts_do_not_add_up_is_refused(void **state)
{
	struct incomplete_of incomplete = good_incomplete();

	(void)state;
	for (size_t size = 0; size < sizeof(incomplete); size++) {
		incomplete.record.record.size = (uint32_t)size;
		assert_refused(&incomplete, size);
	}
	incomplete = good_incomplete();
	incomplete.record.stack_bytes += 8;
	assert_refused(&incomplete, sizeof(incomplete));
	incomplete = good_incomplete();
	incomplete.record.stack_bytes = UINT32_MAX;
	assert_refused(&incomplete, sizeof(incomplete));
	incomplete = good_incomplete();
	incomplete.record.segment_count = 2;
	assert_refused(&incomplete, sizeof(incomplete));
	incomplete = good_incomplete();
	incomplete.record.segment_count = UINT32_MAX;
	assert_refused(&incomplete, sizeof(incomplete));
	incomplete = good_incomplete();
	incomplete.record.return_count = 2;
	assert_refused(&incomplete, sizeof(incomplete));
	incomplete = good_incomplete();
	incomplete.record.return_count = UINT32_MAX;
	assert_refused(&incomplete, sizeof(incomplete));
	incomplete = good_incomplete();
	incomplete.record.python_count = 0;
	assert_refused(&incomplete, sizeof(incomplete));
	incomplete = good_incomplete();
	incomplete.record.py_stop = PP_PY_STOP_COUNT;
	assert_refused(&incomplete, sizeof(incomplete));
	incomplete = good_incomplete();
	incomplete.frame[1].kind = PP_FRAME_PYTHON;
	assert_refused(&incomplete, sizeof(incomplete));
	incomplete = good_incomplete();
	incomplete.record.since_segment = incomplete.record.native_count + 1;
	assert_refused(&incomplete, sizeof(incomplete));
	incomplete = good_incomplete();
	incomplete.record.foldable = 2;
	assert_refused(&incomplete, sizeof(incomplete));
}

/* Parts that add up, but each beyond its own bound. */
static void decode_record__incomplete_with_too_many_anchors_is_refused(void **state)
{
	size_t size = sizeof(struct pp_incomplete_record) +
		      (PP_MAX_SEGMENTS + 1) * sizeof(struct pp_segment);
	struct pp_incomplete_record *record = calloc(1, size);

	(void)state;
	assert_non_null(record);
	record->record = (struct pp_record){.type = PP_RECORD_INCOMPLETE, .size = (uint32_t)size};
	record->segment_count = PP_MAX_SEGMENTS + 1;
	assert_refused(record, size);
	free(record);
}

static void decode_record__incomplete_with_too_many_return_addresses_is_refused(void **state)
{
	size_t size = sizeof(struct pp_incomplete_record) +
		      (PP_MAX_RETURNS + 1) * sizeof(struct pp_return);
	struct pp_incomplete_record *record = calloc(1, size);

	(void)state;
	assert_non_null(record);
	record->record = (struct pp_record){.type = PP_RECORD_INCOMPLETE, .size = (uint32_t)size};
	record->return_count = PP_MAX_RETURNS + 1;
	assert_refused(record, size);
	free(record);
}

static void decode_record__incomplete_with_too_much_stack_is_refused(void **state)
{
	size_t size = sizeof(struct pp_incomplete_record) + PP_STACK_COPY_BYTES + 8;
	struct pp_incomplete_record *record = calloc(1, size);

	(void)state;
	assert_non_null(record);
	record->record = (struct pp_record){.type = PP_RECORD_INCOMPLETE, .size = (uint32_t)size};
	record->stack_bytes = PP_STACK_COPY_BYTES + 8;
	assert_refused(record, size);
	free(record);
}

/* ---- texts ---- */

struct text_of_many {
	struct pp_text_record record;
	uint8_t bytes[PP_MAX_TEXT_BYTES + 8];
};

static void decode_record__text_gives_its_bytes(void **state)
{
	struct text_of_many text = {
		.record = {.record = {.type = PP_RECORD_TEXT}, .id = 5, .process = {.tgid = 7}}};
	const size_t head = sizeof(text.record);
	struct seen seen;

	(void)state;
	for (size_t bytes = 1; bytes <= PP_MAX_TEXT_BYTES; bytes += PP_MAX_TEXT_BYTES - 1) {
		text.record.record.size = (uint32_t)(head + bytes);
		assert_int_equal(decode(&text, head + bytes, &seen), 0);
		assert_int_equal(seen.texts, 1);
		assert_int_equal(seen.text->id, 5);
		assert_int_equal(seen.text_bytes, bytes);
	}
}

static void decode_record__broken_text_is_refused(void **state)
{
	struct text_of_many text = {.record = {.record = {.type = PP_RECORD_TEXT}, .id = 5}};
	const size_t head = sizeof(text.record);

	(void)state;
	text.record.record.size = (uint32_t)head;
	assert_refused(&text, head);
	text.record.record.size = (uint32_t)(head + PP_MAX_TEXT_BYTES + 1);
	assert_refused(&text, head + PP_MAX_TEXT_BYTES + 1);
	text.record.record.size = (uint32_t)(head + 4);
	assert_refused(&text, head + 3);
	text.record.id = 0;
	assert_refused(&text, head + 4);
}

static int decode_without_handlers(const void *data, size_t size)
{
	const struct drain_handlers handlers = {.stack = on_stack};

	return decode_record(data, size, &handlers);
}

static void decode_record__record_that_nobody_takes_is_refused(void **state)
{
	const struct text_of_many text = {
		.record = {.record = {.type = PP_RECORD_TEXT, .size = sizeof(text.record) + 4},
			   .id = 5}};

	(void)state;
	assert_int_equal(decode_without_handlers(&text, sizeof(text.record) + 4), -EBADMSG);
}

/* ---- events ---- */

static int decode_one_event(const void *data, size_t size, struct seen *seen)
{
	const struct drain_handlers handlers = {.context = seen, .event = on_event};

	*seen = (struct seen){};
	return decode_event(data, size, &handlers);
}

static void decode_event__passes_each_type(void **state)
{
	struct pp_event event = {.tid = 71, .id = {.tgid = 70}, .comm = "worker"};
	struct seen seen;

	(void)state;
	for (uint32_t type = PP_EVENT_FORK; type < PP_EVENT_END; type++) {
		event.type = type;
		assert_int_equal(decode_one_event(&event, sizeof(event), &seen), 0);
		assert_int_equal(seen.events, 1);
		assert_int_equal(seen.event->tid, 71);
	}
}

static void decode_event__broken_one_is_refused(void **state)
{
	struct pp_event event = {.type = PP_EVENT_EXIT};
	struct seen seen;

	(void)state;
	assert_int_equal(decode_one_event(&event, sizeof(event) - 1, &seen), -EBADMSG);
	assert_int_equal(decode_one_event(&event, sizeof(event) + 8, &seen), -EBADMSG);
	event.type = 0;
	assert_int_equal(decode_one_event(&event, sizeof(event), &seen), -EBADMSG);
	event.type = PP_EVENT_END;
	assert_int_equal(decode_one_event(&event, sizeof(event), &seen), -EBADMSG);
	event.type = PP_EVENT_EXIT;
	memset(event.comm, 'x', sizeof(event.comm)); /* no NUL */
	assert_int_equal(decode_one_event(&event, sizeof(event), &seen), -EBADMSG);
	assert_int_equal(seen.events, 0);
}

static int decode_one_timeline(const struct pp_timeline_record *record, size_t size,
			       struct seen *seen)
{
	const struct drain_handlers handlers = {.context = seen, .timeline = on_timeline};

	return decode_timeline(record, size, &handlers);
}

static void decode_timeline__passes_each_type(void **state)
{
	struct pp_timeline_record record = {.record = {.size = sizeof(record)},
					    .wait = PP_WAIT_GIL,
					    .run_ns = 1,
					    .leave_ns = 2,
					    .woken_ns = 3,
					    .back_ns = 3};

	(void)state;
	for (__u32 type = PP_TIMELINE_SWITCH; type <= PP_TIMELINE_SAMPLE; type++) {
		struct seen seen = {};

		record.record.type = type;
		assert_int_equal(decode_one_timeline(&record, sizeof(record), &seen), 0);
		assert_int_equal(seen.timelines, 1);
		assert_int_equal(seen.timeline->back_ns, 3);
	}
}

static void decode_timeline__broken_one_is_refused(void **state)
{
	const struct pp_timeline_record whole = {.record = {.type = PP_TIMELINE_SWITCH,
							    .size = sizeof(whole)},
						 .run_ns = 1,
						 .leave_ns = 2,
						 .woken_ns = 3,
						 .back_ns = 4};
	struct pp_timeline_record record[8];
	struct seen seen = {};

	(void)state;
	for (unsigned int i = 0; i < 8; i++)
		record[i] = whole;
	record[1].record.size -= 8;
	record[2].record.type = 0;
	record[3].record.type = PP_TIMELINE_SAMPLE + 1;
	record[4].wait = PP_WAIT_COUNT;
	record[5].run_ns = 3; /* times go back */
	record[6].leave_ns = 4;
	record[7].woken_ns = 5;
	assert_int_equal(decode_one_timeline(&record[0], sizeof(whole) - 8, &seen), -EBADMSG);
	for (unsigned int i = 1; i < 8; i++)
		assert_int_equal(decode_one_timeline(&record[i], sizeof(whole), &seen), -EBADMSG);
	assert_int_equal(seen.timelines, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decode_record__stack_gives_both_areas),
		cmocka_unit_test(decode_record__empty_stack_is_fine),
		cmocka_unit_test(decode_record__size_that_does_not_match_is_refused),
		cmocka_unit_test(decode_record__stack_whose_counts_disagree_is_refused),
		cmocka_unit_test(decode_record__more_frames_stored_than_the_bound_is_refused),
		cmocka_unit_test(decode_record__reason_that_does_not_exist_is_refused),
		cmocka_unit_test(decode_record__frame_kind_of_the_other_area_is_refused),
		cmocka_unit_test(decode_record__unknown_type_is_refused),
		cmocka_unit_test(decode_record__kernel_stack_counts_its_addresses),
		cmocka_unit_test(decode_record__kernel_stack_of_broken_size_is_refused),
		cmocka_unit_test(decode_record__code_object_passes_whole),
		cmocka_unit_test(decode_record__code_object_whose_parts_do_not_add_up_is_refused),
		cmocka_unit_test(decode_record__incomplete_gives_all_its_parts),
		cmocka_unit_test(decode_record__incomplete_whose_parts_do_not_add_up_is_refused),
		cmocka_unit_test(decode_record__incomplete_with_too_many_anchors_is_refused),
		cmocka_unit_test(
			decode_record__incomplete_with_too_many_return_addresses_is_refused),
		cmocka_unit_test(decode_record__incomplete_with_too_much_stack_is_refused),
		cmocka_unit_test(decode_record__text_gives_its_bytes),
		cmocka_unit_test(decode_record__broken_text_is_refused),
		cmocka_unit_test(decode_record__record_that_nobody_takes_is_refused),
		cmocka_unit_test(decode_event__passes_each_type),
		cmocka_unit_test(decode_event__broken_one_is_refused),
		cmocka_unit_test(decode_timeline__passes_each_type),
		cmocka_unit_test(decode_timeline__broken_one_is_refused),
	};

	return cmocka_run_group_tests_name("drain/decode", tests, NULL, NULL);
}
