/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/stitch.h"

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define FILE_ID 20U
#define MAX_FRAMES 64U

/* A stack whose frames are written as short words: p1 p2 (Python, by number), n1 (native), r2 (a
 * run of 2), g (gap). */
struct built {
	union {
		struct dict_stack stack;
		uint8_t bytes[sizeof(struct dict_stack) + MAX_FRAMES * sizeof(packed_frame)];
	};
};

static packed_frame parse_frame(const char *word)
{
	uint32_t number = (uint32_t)strtoul(word + 1, NULL, 10);

	switch (word[0]) {
	case 'p':
		return packed_python(number, 0);
	case 'n':
		return packed_native(PP_FRAME_NATIVE, FILE_ID, number);
	case 'r':
		return (uint64_t)PP_FRAME_SEGMENT << 61 | number;
	default:
		return packed_gap(number);
	}
}

static uint16_t parse_frames(const char *text, packed_frame *frame)
{
	char copy[512], *save = NULL;
	uint16_t count = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		frame[count++] = parse_frame(word);
	return count;
}

/* Whole and with nothing omitted; tests change what they are about. */
static void build(struct built *built, const char *python, const char *native)
{
	struct dict_stack *stack = &built->stack;

	memset(built, 0, sizeof(*built));
	stack->stop = PP_STOP_ROOT;
	stack->py_stop = PP_PY_STOP_ROOT;
	stack->python_stored = parse_frames(python, stack->frame);
	stack->native_stored = parse_frames(native, stack->frame + stack->python_stored);
	stack->python_count = stack->python_stored;
	stack->native_count = stack->native_stored;
}

static void show(packed_frame frame, char *text, size_t size)
{
	switch (packed_kind(frame)) {
	case PP_FRAME_PYTHON:
		snprintf(text, size, "p%u", packed_code(frame));
		return;
	case PP_FRAME_NATIVE:
		snprintf(text, size, "n%u", (uint32_t)packed_address(frame));
		return;
	case PP_FRAME_SEGMENT:
		snprintf(text, size, "r%u", packed_what(frame));
		return;
	default:
		if (packed_what(frame))
			snprintf(text, size, "g%u", packed_what(frame));
		else
			snprintf(text, size, "g");
	}
}

static void assert_stitched(const struct built *built, bool one_frame_segments,
			    const char *expected)
{
	packed_frame out[STITCH_MAX_FRAMES];
	char text[1024] = "", word[32];
	size_t count = stitch(&built->stack, one_frame_segments, out);

	for (size_t i = 0; i < count; i++) {
		show(out[i], word, sizeof(word));
		if (i)
			strcat(text, " ");
		strcat(text, word);
	}
	assert_string_equal(text, expected);
}

static void stitch__segments_stand_where_their_activations_are(void **state)
{
	struct built built;

	(void)state;
	build(&built, "p1 p2 p3", "n1 r2 n2 r1 n3 n4");
	assert_stitched(&built, false, "n1 p1 p2 n2 p3 n3 n4");
}

static void stitch__native_only_and_python_only_stay_as_they_are(void **state)
{
	struct built built;

	(void)state;
	build(&built, "", "n1 n2");
	assert_stitched(&built, false, "n1 n2");
	build(&built, "p1 p2", "");
	assert_stitched(&built, false, "p1 p2");
	build(&built, "", "");
	assert_stitched(&built, false, "");
}

static void stitch__empty_segment_takes_no_frame(void **state)
{
	struct built built;

	(void)state;
	build(&built, "p1", "r0 n1 r1 n2");
	assert_stitched(&built, false, "n1 p1 n2");
}

static void stitch__gap_between_native_frames_stays(void **state)
{
	struct built built;

	(void)state;
	build(&built, "p1", "n1 g r1 n2");
	assert_stitched(&built, false, "n1 g p1 n2");
}

static void stitch__leaf_activation_without_a_frame_is_empty_on_one_frame_segments(void **state)
{
	struct built built;

	(void)state;
	build(&built, "p1 p2", "n1 r1 n2 r1 n3 r1 n4");
	assert_stitched(&built, true, "n1 n2 p1 n3 p2 n4");
	/* Elsewhere marks say which run is whose: the missing frame is the root's. */
	assert_stitched(&built, false, "n1 p1 n2 p2 n3 n4");
}

/* Those at the root are missing, not those at the leaf. */
static void stitch__cut_python_frames_leave_a_gap_towards_the_root(void **state)
{
	struct built built;

	(void)state;
	build(&built, "p1 p2", "n1 r1 n2 r1 n3 r1 n4 r1 n5");
	built.stack.py_stop = PP_PY_STOP_TORN;
	assert_stitched(&built, true, "n1 p1 n2 p2 n3 g n4 n5");
	build(&built, "p1 p2 p3", "n1 r2 n2 r4 n3");
	built.stack.py_stop = PP_PY_STOP_TORN;
	assert_stitched(&built, false, "n1 p1 p2 n2 p3 g n3");
}

static void stitch__as_many_frames_as_segments_fill_all_of_them(void **state)
{
	struct built built;

	(void)state;
	build(&built, "p1 p2", "r1 n1 r1 n2");
	assert_stitched(&built, true, "p1 n1 p2 n2");
}

static void stitch__leftover_frames_join_the_last_segment_of_a_whole_stack(void **state)
{
	struct built built;

	(void)state;
	build(&built, "p1 p2 p3", "n1 r1 n2 r1 n3");
	assert_stitched(&built, false, "n1 p1 n2 p2 p3 n3");
	built.stack.stop = PP_STOP_FINISHED;
	assert_stitched(&built, false, "n1 p1 n2 p2 p3 n3");
}

static void stitch__leftover_frames_follow_a_gap_when_the_walk_broke_off(void **state)
{
	struct built built;

	(void)state;
	build(&built, "p1 p2 p3", "n1 r1 n2");
	built.stack.stop = PP_STOP_READ_FAULT;
	assert_stitched(&built, false, "n1 p1 n2 g p2 p3");
	/* Whole, but no activation was met at all. */
	build(&built, "p1 p2", "n1 n2");
	assert_stitched(&built, false, "n1 n2 g p1 p2");
}

static void stitch__broken_off_between_segments_loses_no_python_frame(void **state)
{
	struct built built;

	(void)state;
	build(&built, "p1 p2 p3 p4", "n1 r2 n2 n3");
	built.stack.stop = PP_STOP_NO_INFO;
	assert_stitched(&built, false, "n1 p1 p2 n2 n3 g p3 p4");
}

/* 8 slots: 6 leaf ones and a ring of 2.  Of 11 frames 7..9 are omitted (counted from 1); 10 was
 * written to slot 6 + (9 - 6) % 2 = 7, 11 to slot 6 + (10 - 6) % 2 = 6. */
static void stitch__omitted_native_middle_is_counted_and_its_ring_is_in_order(void **state)
{
	struct built built;

	(void)state;
	build(&built, "", "n1 n2 n3 n4 n5 n6 n11 n10");
	built.stack.native_count = 11;
	assert_stitched(&built, false, "n1 n2 n3 n4 n5 n6 g3 n10 n11");
}

static void stitch__omitted_python_middle_is_counted_inside_its_segment(void **state)
{
	struct built built;

	(void)state;
	build(&built, "p1 p2 p3 p4 p5 p6 p11 p10", "n1 r11 n2");
	built.stack.python_count = 11;
	assert_stitched(&built, false, "n1 p1 p2 p3 p4 p5 p6 g3 p10 p11 n2");
}

static void stitch__omitted_python_middle_is_split_by_native_frames(void **state)
{
	struct built built;

	(void)state;
	build(&built, "p1 p2 p3 p4 p5 p6 p11 p10", "r7 n1 r4 n2");
	built.stack.python_count = 11;
	assert_stitched(&built, false, "p1 p2 p3 p4 p5 p6 g1 n1 g2 p10 p11 n2");
}

/* Native 1..11 are n1 r1 n2 r1 n3 r1 | n4 r1 n5 | r1 n6: the 4th run is omitted with its place. */
static void stitch__python_frames_of_omitted_segments_stand_in_the_middle(void **state)
{
	struct built built;

	(void)state;
	build(&built, "p1 p2 p3 p4 p5", "n1 r1 n2 r1 n3 r1 n6 r1");
	built.stack.native_count = 11;
	assert_stitched(&built, false, "n1 p1 n2 p2 n3 p3 g3 p4 p5 n6");
	/* Not known to be whole: in order, without a guess. */
	built.stack.stop = PP_STOP_MAX_STEPS;
	assert_stitched(&built, false, "n1 p1 n2 p2 n3 p3 g3 p4 n6 g p5");
	/* Put together by the agent: a gap with a count stands for the middle. */
	build(&built, "p1 p2 p3 p4 p5", "n1 r1 g3 n6 r1 n7");
	built.stack.stop = PP_STOP_FINISHED;
	assert_stitched(&built, false, "n1 p1 g3 p2 p3 p4 n6 p5 n7");
}

static void stitch__counts_beyond_a_tiny_area_read_nothing_outside(void **state)
{
	struct built built;

	(void)state;
	build(&built, "p1", "n1 n2 n3");
	built.stack.python_count = 8192;
	built.stack.native_count = 8192;
	assert_stitched(&built, false, "n1 n2 n3 g8189 g p1 g8191");
}

static void stitch__output_is_bounded(void **state)
{
	size_t bytes = sizeof(struct dict_stack) + PP_MAX_FRAMES * sizeof(packed_frame);
	struct dict_stack *stack = calloc(1, bytes);
	packed_frame *out = calloc(STITCH_MAX_FRAMES, sizeof(*out));

	(void)state;
	assert_non_null(stack);
	assert_non_null(out);
	/* Omitted frames in every second place: each run asks for one of the middle. */
	stack->stop = PP_STOP_ROOT;
	stack->python_stored = 4;
	stack->python_count = 8192;
	stack->native_stored = PP_MAX_FRAMES - 4;
	stack->native_count = stack->native_stored;
	for (uint32_t i = 0; i < PP_MAX_FRAMES - 4; i++)
		stack->frame[4 + i] = i & 1 ? packed_native(PP_FRAME_NATIVE, FILE_ID, i)
					    : (uint64_t)PP_FRAME_SEGMENT << 61 | 1;
	assert_in_range(stitch(stack, false, out), PP_MAX_FRAMES - 4, STITCH_MAX_FRAMES);
	free(stack);
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stitch__segments_stand_where_their_activations_are),
		cmocka_unit_test(stitch__native_only_and_python_only_stay_as_they_are),
		cmocka_unit_test(stitch__empty_segment_takes_no_frame),
		cmocka_unit_test(stitch__gap_between_native_frames_stays),
		cmocka_unit_test(
			stitch__leaf_activation_without_a_frame_is_empty_on_one_frame_segments),
		cmocka_unit_test(stitch__cut_python_frames_leave_a_gap_towards_the_root),
		cmocka_unit_test(stitch__as_many_frames_as_segments_fill_all_of_them),
		cmocka_unit_test(stitch__leftover_frames_join_the_last_segment_of_a_whole_stack),
		cmocka_unit_test(stitch__leftover_frames_follow_a_gap_when_the_walk_broke_off),
		cmocka_unit_test(stitch__broken_off_between_segments_loses_no_python_frame),
		cmocka_unit_test(stitch__omitted_native_middle_is_counted_and_its_ring_is_in_order),
		cmocka_unit_test(stitch__omitted_python_middle_is_counted_inside_its_segment),
		cmocka_unit_test(stitch__omitted_python_middle_is_split_by_native_frames),
		cmocka_unit_test(stitch__python_frames_of_omitted_segments_stand_in_the_middle),
		cmocka_unit_test(stitch__counts_beyond_a_tiny_area_read_nothing_outside),
		cmocka_unit_test(stitch__output_is_bounded),
	};

	return cmocka_run_group_tests_name("symbolize/stitch", tests, NULL, NULL);
}
