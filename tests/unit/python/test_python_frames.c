/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>

#include "../at_rest.h"
#include "fake_frames.h"
#include "interpreters.h"
#include "live_target.h"
#include "python/python_code.h"
#include "python/python_frames.h"

/* ---- memory of our own plays the target ---- */

/* bpf/lib/look.bpf.h */
#define GIL_WAIT_LOW 24U
#if defined(__aarch64__)
#define GIL_WAIT_HIGH 216U
#else
#define GIL_WAIT_HIGH 200U
#endif

static void python_frames_read__frame_objects_have_no_anchors(void **state)
{
	struct python_frames *frames;

	(void)state;
	fake_begin(PP_CHAIN_FRAME_OBJECT);
	frames = fake_read();
	assert_int_equal(frames->stop, PP_PY_STOP_ROOT);
	assert_int_equal(frames->count, FRAMES);
	assert_int_equal(frames->stored, FRAMES);
	assert_int_equal(frames->segment_count, 0);
	assert_int_equal(frames->count_flags, PP_COUNT_PYTHON);
	for (size_t i = 0; i < FRAMES; i++)
		assert_frame(frames, i, i);
}

static void python_frames_read__each_frame_of_3_10_ends_at_its_cframe(void **state)
{
	struct python_frames *frames;

	(void)state;
	fake_begin(PP_CHAIN_FRAME_CFRAME);
	frames = fake_read();
	assert_int_equal(frames->stop, PP_PY_STOP_ROOT);
	assert_int_equal(frames->segment_count, FRAMES);
	for (size_t i = 0; i < FRAMES; i++) {
		assert_int_equal(frames->segment[i].anchor, at(fake.cframe[i]));
		assert_int_equal(frames->segment[i].frames, 1);
	}
}

static void python_frames_read__entry_frames_of_3_11_end_a_segment_at_their_cframe(void **state)
{
	struct python_frames *frames;

	(void)state;
	fake_begin(PP_CHAIN_CFRAME_ENTRY);
	fake.frame[2][FRAME_IS_ENTRY] = 1;
	fake.frame[7][FRAME_IS_ENTRY] = 1;
	frames = fake_read();
	assert_int_equal(frames->stop, PP_PY_STOP_ROOT);
	assert_int_equal(frames->count, FRAMES);
	assert_int_equal(frames->segment_count, 2);
	assert_int_equal(frames->segment[0].anchor, at(fake.cframe[0]));
	assert_int_equal(frames->segment[0].frames, 3);
	assert_int_equal(frames->segment[1].anchor, at(fake.cframe[1]));
	assert_int_equal(frames->segment[1].frames, 5);
}

static void check_shims(uint8_t chain)
{
	struct python_frames *frames;

	fake_begin(chain);
	fake.frame[1][FRAME_OWNER] = SHIM;
	fake.frame[4][FRAME_OWNER] = SHIM + 1; /* 3.14: an interpreter's own, no anchor */
	fake.frame[7][FRAME_OWNER] = SHIM;
	/* What a shim points to is no code object. */
	put(fake.frame[1], FRAME_CODE, 8);
	put(fake.frame[4], FRAME_CODE, 8);
	frames = fake_read();
	assert_int_equal(frames->stop, PP_PY_STOP_ROOT);
	assert_int_equal(frames->count, FRAMES - 3);
	assert_frame(frames, 0, 0);
	assert_frame(frames, 1, 2);
	assert_frame(frames, 3, 5);
	assert_int_equal(frames->segment_count, 2);
	assert_int_equal(frames->segment[0].anchor, at(fake.frame[1]));
	assert_int_equal(frames->segment[0].frames, 1);
	assert_int_equal(frames->segment[1].anchor, at(fake.frame[7]));
	assert_int_equal(frames->segment[1].frames, 4);
}

static void python_frames_read__shims_of_3_12_and_later_end_a_segment(void **state)
{
	(void)state;
	check_shims(PP_CHAIN_CFRAME_SHIM);
	check_shims(PP_CHAIN_SHIM);
}

static void python_frames_read__what_is_no_code_object_ends_the_walk(void **state)
{
	(void)state;
	for (uint8_t chain = PP_CHAIN_FRAME_OBJECT; chain <= PP_CHAIN_SHIM; chain++) {
		struct python_frames *frames;

		fake_begin(chain);
		put(fake.code[3], OB_TYPE, CODE_TYPE);
		frames = fake_read();
		assert_int_equal(frames->stop, PP_PY_STOP_BAD_CODE);
		assert_int_equal(frames->count, 3);
	}
}

static void python_frames_read__unreadable_memory_ends_the_walk(void **state)
{
	struct python_frames *frames;

	(void)state;
	fake_begin(PP_CHAIN_SHIM);
	put(fake.frame[5], FRAME_PREVIOUS, 0x100);
	frames = fake_read();
	assert_int_equal(frames->stop, PP_PY_STOP_READ_FAULT);
	assert_int_equal(frames->count, 6);
	python_frames_read(&fake.where, 0x100, frames);
	assert_int_equal(frames->stop, PP_PY_STOP_NO_THREAD_STATE);
	assert_int_equal(frames->count, 0);
	assert_int_equal(frames->count_flags, 0);
}

/* The leaf three quarters and the root quarter stay. */
static void python_frames_read__endless_chain_is_bounded(void **state)
{
	const uint32_t leaf = PP_MAX_PYTHON_FRAMES - PP_MAX_PYTHON_FRAMES / PP_ROOT_SHARE;
	struct python_frames *frames;

	(void)state;
	fake_begin(PP_CHAIN_FRAME_CFRAME);
	put(fake.frame[FRAMES - 1], FRAME_PREVIOUS, at(fake.frame[0]));
	frames = fake_read();
	assert_int_equal(frames->stop, PP_PY_STOP_MAX_STEPS);
	assert_int_equal(frames->count, PP_MAX_STEPS);
	assert_int_equal(frames->stored, PP_MAX_PYTHON_FRAMES);
	assert_int_equal(frames->segment_count, PP_MAX_SEGMENTS);
	assert_frame(frames, leaf - 1, (leaf - 1) % FRAMES);
	assert_frame(frames,
		     leaf + (PP_MAX_STEPS - 1 - leaf) % (PP_MAX_PYTHON_FRAMES / PP_ROOT_SHARE),
		     (PP_MAX_STEPS - 1) % FRAMES);
}

/* ---- going on where the kernel side ended ---- */

/* As it hands over after `walked` frames of a walk that ends runs at `anchors` of them. */
static struct python_frames *resume_after(size_t walked, uint32_t segments, uint32_t in_open,
					  const uint8_t *head, int *ret_err)
{
	static struct python_frames frames;
	const struct python_resume from = {.frame = at(fake.frame[walked]),
					   .cframe = at(fake.cframe[segments]),
					   .segment_frames = in_open,
					   .head = head ? head : fake.frame[walked]};

	python_frames_read(&fake.where, at(fake.state), &frames);
	frames.count = frames.stored = (uint32_t)walked;
	frames.segment_count = segments;
	memset(&frames.frame[walked], 0xee, sizeof(frames.frame[0]) * FRAMES);
	memset(&frames.segment[segments], 0xee, sizeof(frames.segment[0]) * FRAMES);
	*ret_err = python_frames_resume(&fake.where, &from, &frames);
	return &frames;
}

static void assert_resumes(size_t walked, uint32_t segments, uint32_t in_open)
{
	struct python_frames whole = *fake_read();
	const struct python_frames *frames;
	int err;

	frames = resume_after(walked, segments, in_open, NULL, &err);
	assert_int_equal(err, 0);
	assert_int_equal(frames->stop, PP_PY_STOP_ROOT);
	assert_int_equal(frames->count, whole.count);
	assert_int_equal(frames->segment_count, whole.segment_count);
	assert_memory_equal(frames->frame, whole.frame, whole.count * sizeof(whole.frame[0]));
	assert_memory_equal(frames->segment, whole.segment,
			    whole.segment_count * sizeof(whole.segment[0]));
}

static void python_frames_resume__goes_on_as_if_it_had_not_ended(void **state)
{
	(void)state;
	fake_begin(PP_CHAIN_FRAME_OBJECT);
	assert_resumes(3, 0, 3);
	fake_begin(PP_CHAIN_FRAME_CFRAME);
	assert_resumes(3, 3, 0);
	fake_begin(PP_CHAIN_CFRAME_ENTRY);
	fake.frame[2][FRAME_IS_ENTRY] = 1;
	fake.frame[7][FRAME_IS_ENTRY] = 1;
	assert_resumes(2, 0, 2);
	assert_resumes(5, 1, 2);
}

static void assert_stale(uint8_t chain, uint16_t offset, uint64_t value, bool expected)
{
	uint8_t head[PP_FRAME_READ_BYTES];
	int err;

	fake_begin(chain);
	memcpy(head, fake.frame[3], sizeof(head));
	put(fake.frame[3], offset, value);
	resume_after(3, 0, 3, head, &err);
	assert_int_equal(err, expected ? -ESTALE : 0);
}

static void python_frames_resume__frame_of_another_call_is_stale(void **state)
{
	(void)state;
	assert_stale(PP_CHAIN_SHIM, FRAME_CODE, at(fake.code[5]), true);
	assert_stale(PP_CHAIN_SHIM, FRAME_PREVIOUS, at(fake.frame[6]), true);
	assert_stale(PP_CHAIN_SHIM, FRAME_INSTR, at(fake.code[3]) + 38, true);
	assert_stale(PP_CHAIN_FRAME_OBJECT, FRAME_INSTR, 38, true);
	/* What lies behind f_lasti, and what says nothing of the call. */
	assert_stale(PP_CHAIN_FRAME_OBJECT, FRAME_INSTR, 30 | 7ULL << 32, false);
	assert_stale(PP_CHAIN_SHIM, 48, 0x1234, false);
}

static void python_thread_state_find__global_state_counts_only_for_its_thread(void **state)
{
	uint64_t global = at(fake.state);

	(void)state;
	fake_begin(PP_CHAIN_FRAME_OBJECT);
	put(fake.state, TS_THREAD_ID, 0x7000);
	fake.where.tls[0] = (struct pp_tls){.mode = PP_TLS_GLOBAL, .address = at(&global)};
	assert_int_equal(python_thread_state_find(&fake.where, 0x7000), at(fake.state));
#if defined(__x86_64__)
	assert_int_equal(python_thread_state_find(&fake.where, 0x8000), 0);
#endif
	global = 0;
	assert_int_equal(python_thread_state_find(&fake.where, 0x7000), 0);
}

static void python_gil_owns__words_of_the_gil_only(void **state)
{
	struct python_frames *frames;

	(void)state;
	fake_begin(PP_CHAIN_FRAME_OBJECT);
	fake.layout.gil_mode = PP_GIL_RUNTIME;
	fake.layout.runtime = 0x1000;
	fake.layout.gil_offset = 0x40;
	frames = fake_read();
	assert_int_equal(frames->gil, BIAS + 0x1040);
	assert_false(python_gil_owns(&fake.where, frames, frames->gil + GIL_WAIT_LOW - 4));
	assert_true(python_gil_owns(&fake.where, frames, frames->gil + GIL_WAIT_LOW));
	assert_true(python_gil_owns(&fake.where, frames, frames->gil + GIL_WAIT_HIGH - 4));
	assert_false(python_gil_owns(&fake.where, frames, frames->gil + GIL_WAIT_HIGH));
	fake.layout.gil_mode = PP_GIL_CURRENT;
	assert_false(python_gil_owns(&fake.where, frames, frames->gil + GIL_WAIT_LOW));
	fake.layout.gil_wait_low = 0x5000;
	fake.layout.gil_wait_bytes = 8;
	assert_true(python_gil_owns(&fake.where, frames, BIAS + 0x5004));
	assert_false(python_gil_owns(&fake.where, frames, BIAS + 0x5008));
	fake.layout.flags |= PP_PYTHON_FREE_THREADED;
	frames = fake_read();
	assert_int_equal(frames->gil, 0);
	assert_false(python_gil_owns(&fake.where, frames, GIL_WAIT_LOW));
}

/* ---- live interpreters ---- */

static void where_of(const struct target *target, const struct python_info *info,
		     struct python_where *ret_where)
{
	*ret_where = (struct python_where){
		.pid = target->pid, .layout = &info->bpf, .bias = target->bias};
	assert_int_equal(
		python_process_tls_read(info, target->pid, target->bias, false, ret_where->tls), 0);
}

static uint64_t state_of(const struct target *target, const struct python_info *info,
			 const struct python_where *where, uint64_t ident)
{
	OWNED_MEM struct python_thread *threads = NULL;
	uint64_t listed = 0;
	size_t count;

	assert_int_equal(python_process_threads(info, target->pid, target->bias, &threads, &count),
			 0);
	for (size_t i = 0; i < count; i++)
		if (threads[i].thread_id == ident)
			listed = threads[i].thread_state;
	assert_int_not_equal(listed, 0);
	/* 2.7 has no slot for a thread that sleeps. */
	if (info->bpf.major > 2)
		assert_int_equal(python_thread_state_find(where, ident), listed);
	return listed;
}

/* The names of the frames, leaf first, and the leaf's line within the script. */
static void check_names(const struct target *target, const struct python_info *info,
			const struct python_frames *frames, const char *leaf, uint32_t line)
{
	const char *const expected[] = {leaf, "run", "_bootstrap_inner", "_bootstrap"};

	/* 3.14 wraps the thread's entry once more. */
	assert_in_range(frames->count, ARRAY_SIZE(expected), ARRAY_SIZE(expected) + 2);
	for (size_t i = 0, seen = 0; i < frames->count && seen < ARRAY_SIZE(expected); i++) {
		OWNED(python_code) struct python_code *code = NULL;
		struct python_code_text text;

		assert_int_equal(python_code_read(target->pid, &info->bpf, target->bias,
						  frames->frame[i].where, 0, &code),
				 0);
		assert_int_equal(python_code_text_decode(code->raw, &text), 0);
		python_code_set_text(code, &text);
		if (!i)
			assert_int_equal(python_code_line(code, frames->frame[i].what), line);
		if (strstr(code->name, "Context") || strstr(code->name, "_context"))
			continue;
		assert_non_null(strstr(code->name, expected[seen]));
		seen++;
	}
}

static uint32_t line_in_script(const char *text)
{
	const char *found = strstr(target_script, text);
	uint32_t line = 1;

	assert_non_null(found);
	for (const char *c = target_script; c < found; c++)
		line += *c == '\n';
	return line;
}

static void check_segments(const struct python_info *info, const struct python_frames *frames)
{
	uint64_t sum = 0;

	if (info->bpf.chain == PP_CHAIN_FRAME_OBJECT) {
		assert_int_equal(frames->segment_count, 0);
		return;
	}
	assert_true(frames->segment_count > 0);
	for (size_t i = 0; i < frames->segment_count; i++) {
		sum += frames->segment[i].frames;
		/* Marks lie on the C stack, towards its root; 3.15's outermost frame, in the heap,
		 * ends an empty run. */
		if (i && frames->segment[i].frames)
			assert_true(frames->segment[i].anchor > frames->segment[i - 1].anchor);
	}
	assert_int_equal(sum, frames->count);
}

static void check_thread(const struct target *target, const struct python_info *info,
			 const char *thread, const char *leaf, const char *call)
{
	static struct python_frames frames;
	const uint64_t ident = target_thread(target, thread)->ident;
	struct python_where where;
	uint64_t thread_state;

	where_of(target, info, &where);
	thread_state = state_of(target, info, &where, ident);
	python_frames_read(&where, thread_state, &frames);
	assert_int_equal(frames.stop, PP_PY_STOP_ROOT);
	assert_int_equal(frames.count_flags, PP_COUNT_PYTHON);
	if (info->bpf.flags & PP_PYTHON_FREE_THREADED)
		assert_int_equal(frames.gil, 0);
	else
		assert_int_not_equal(frames.gil, 0);
	check_names(target, info, &frames, leaf, line_in_script(call));
	check_segments(info, &frames);
}

static void check_sleeping_threads(const struct interpreter *interpreter)
{
	OWNED(python_info) struct python_info *info = NULL;
	CLEANUP(target_release) struct target target;
	const char *reason = "";

	assert_int_equal(target_start(interpreter->command, "sleep_long wait_for_lock", &target),
			 0);
	assert_int_equal(python_info_read(target.image, &info, &reason), 0);
	wait_for_rest(target.pid, 0);
	check_thread(&target, info, "sleep", "sleep_long", "    time.sleep(10000)");
	check_thread(&target, info, "wait", "wait_for_lock", "    lock.acquire()\ndef collect");
}

static void python_frames_read__sleeping_threads_of_every_interpreter(void **state)
{
	(void)state;
	interpreters_check(check_sleeping_threads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(python_frames_read__frame_objects_have_no_anchors),
		cmocka_unit_test(python_frames_read__each_frame_of_3_10_ends_at_its_cframe),
		cmocka_unit_test(
			python_frames_read__entry_frames_of_3_11_end_a_segment_at_their_cframe),
		cmocka_unit_test(python_frames_read__shims_of_3_12_and_later_end_a_segment),
		cmocka_unit_test(python_frames_read__what_is_no_code_object_ends_the_walk),
		cmocka_unit_test(python_frames_read__unreadable_memory_ends_the_walk),
		cmocka_unit_test(python_frames_read__endless_chain_is_bounded),
		cmocka_unit_test(python_frames_resume__goes_on_as_if_it_had_not_ended),
		cmocka_unit_test(python_frames_resume__frame_of_another_call_is_stale),
		cmocka_unit_test(python_thread_state_find__global_state_counts_only_for_its_thread),
		cmocka_unit_test(python_gil_owns__words_of_the_gil_only),
		cmocka_unit_test(python_frames_read__sleeping_threads_of_every_interpreter),
	};

	return cmocka_run_group_tests_name("python/python_frames", tests, NULL, NULL);
}
