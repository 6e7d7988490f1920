/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: drain/call_paths.c drain/dictionary.c drain/hash_set.c drain/raw_codes.c drain/shares.c symbolize/stitch.c python/python_code.c python/line_table.c python/python_objects.c python/python_text.c base/io.c python/code_text.c */
#include "drain/call_paths.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "drain/dictionary.h"
#include "symbolize/stitch.h"

#define ROOM (16U << 20)
#define CODE(letter) (0xc0de00ULL | (uint64_t)(letter))

struct fixture {
	struct call_paths *paths;
	struct dictionary *dictionary;
	packed_frame frame[STITCH_MAX_FRAMES];
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	assert_int_equal(call_paths_new(&fixture->paths), 0);
	assert_int_equal(dictionary_new(ROOM, &fixture->dictionary), 0);
	for (char letter = 'a'; letter <= 'z'; letter++) {
		struct python_code *code = calloc(1, sizeof(*code));
		uint32_t index;

		assert_non_null(code);
		code->id = CODE(letter);
		assert_int_equal(dictionary_add_code(fixture->dictionary, (struct pp_process_id){},
						     code, &index),
				 0);
	}
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	call_paths_free(fixture->paths);
	dictionary_free(fixture->dictionary);
	free(fixture);
	return 0;
}

static int add(struct fixture *fixture, uint64_t node, uint64_t parent, char letter)
{
	const struct pp_call_record record = {
		.node = node, .parent = parent, .code = CODE(letter), .id = {.tgid = 7}, .tid = 7};

	return call_paths_add(fixture->paths, &record);
}

/* Writes the stack of a node as letters, leaf to root; a marker of missing frames is '?'. */
static void assert_stack(struct fixture *fixture, uint64_t node, const char *letters)
{
	const struct dict_stack *stack;
	char text[64] = "";
	size_t count;

	assert_int_equal(call_paths_give_stack(fixture->paths, node, fixture->dictionary), 0);
	stack = dictionary_find_stack(fixture->dictionary, node);
	assert_non_null(stack);
	assert_int_equal(stack->id.tgid, 7);
	count = stitch(stack, false, fixture->frame);
	assert_true(count < sizeof(text));
	for (size_t i = 0; i < count; i++) {
		const packed_frame frame = fixture->frame[i];

		text[i] = '?';
		if (packed_kind(frame) == PP_FRAME_PYTHON)
			text[i] =
				(char)dictionary_code(fixture->dictionary, packed_code(frame))->id;
	}
	assert_string_equal(text, letters);
}

static void call_paths_give_stack__is_the_path_from_leaf_to_root(void **state)
{
	struct fixture *fixture = *state;
	const struct dict_stack *stack;

	assert_int_equal(add(fixture, 11, 0, 'm'), 0);
	assert_int_equal(add(fixture, 13, 11, 'f'), 0);
	assert_int_equal(add(fixture, 15, 13, 'g'), 0);
	assert_int_equal(add(fixture, 17, 11, 'g'), 0);
	assert_stack(fixture, 15, "gfm");
	assert_stack(fixture, 17, "gm");
	assert_stack(fixture, 11, "m");
	stack = dictionary_find_stack(fixture->dictionary, 15);
	assert_int_equal(stack->stop, PP_STOP_ROOT);
	assert_int_equal(stack->py_stop, PP_PY_STOP_ROOT);
	/* No instruction: the line is the function's first. */
	assert_int_equal(packed_what(stack->frame[0]), UINT32_MAX);
}

static void call_paths_give_stack__recursion_is_one_node_a_level(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 11, 0, 'f');
	add(fixture, 13, 11, 'f');
	add(fixture, 15, 13, 'f');
	assert_stack(fixture, 15, "fff");
}

static void call_paths_give_stack__unknown_node_is_enoent(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(call_paths_give_stack(fixture->paths, 99, fixture->dictionary), -ENOENT);
	assert_null(dictionary_find_stack(fixture->dictionary, 99));
}

static void call_paths_give_stack__lost_parent_is_marked_and_counted(void **state)
{
	struct fixture *fixture = *state;
	struct call_paths_stats stats;

	add(fixture, 13, 11, 'f');
	add(fixture, 15, 13, 'g');
	assert_stack(fixture, 15, "gf?");
	call_paths_get_stats(fixture->paths, &stats);
	assert_int_equal(stats.cut, 1);
	assert_int_equal(stats.nodes, 2);
}

static void call_paths_give_stack__cycle_ends_at_the_limit(void **state)
{
	struct fixture *fixture = *state;
	const struct dict_stack *stack;

	add(fixture, 11, 13, 'f');
	add(fixture, 13, 11, 'g');
	assert_int_equal(call_paths_give_stack(fixture->paths, 11, fixture->dictionary), 0);
	stack = dictionary_find_stack(fixture->dictionary, 11);
	assert_int_equal(stack->python_count, PP_MAX_STEPS);
	assert_int_equal(stack->py_stop, PP_PY_STOP_MAX_STEPS);
}

/* A path that is deeper than a stack: the frames at both ends stay. */
static void call_paths_give_stack__middle_of_a_deep_path_is_left_out(void **state)
{
	struct fixture *fixture = *state;
	const uint64_t depth = PP_MAX_FRAMES + 100;
	const struct dict_stack *stack;
	size_t count, gaps = 0;

	add(fixture, 1, 0, 'r');
	for (uint64_t i = 1; i < depth; i++)
		add(fixture, 2 * i + 1, 2 * i - 1, i == 1 ? 's' : i + 1 == depth ? 'l' : 'f');
	assert_int_equal(call_paths_give_stack(fixture->paths, 2 * depth - 1, fixture->dictionary),
			 0);
	stack = dictionary_find_stack(fixture->dictionary, 2 * depth - 1);
	assert_int_equal(stack->python_count, depth);
	count = stitch(stack, false, fixture->frame);
	for (size_t i = 0; i < count; i++)
		gaps += packed_kind(fixture->frame[i]) == PP_FRAME_GAP;
	assert_int_equal(gaps, 1);
	assert_int_equal(dictionary_code(fixture->dictionary, packed_code(fixture->frame[0]))->id,
			 CODE('l'));
	assert_int_equal(
		dictionary_code(fixture->dictionary, packed_code(fixture->frame[count - 2]))->id,
		CODE('s'));
	assert_int_equal(
		dictionary_code(fixture->dictionary, packed_code(fixture->frame[count - 1]))->id,
		CODE('r'));
}

static void call_paths_end_epoch__unused_nodes_are_forgotten_after_two(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 11, 0, 'm');
	add(fixture, 13, 11, 'f');
	add(fixture, 15, 11, 'g');
	call_paths_end_epoch(fixture->paths);
	/* It and its caller are used. */
	assert_stack(fixture, 13, "fm");
	call_paths_end_epoch(fixture->paths);
	assert_int_equal(call_paths_give_stack(fixture->paths, 15, fixture->dictionary), -ENOENT);
	assert_stack(fixture, 13, "fm");
	/* Sent again, but not used. */
	add(fixture, 15, 11, 'g');
	call_paths_end_epoch(fixture->paths);
	assert_stack(fixture, 15, "gm");
}

static void call_paths_add__no_room_is_counted(void **state)
{
	struct fixture *fixture = *state;
	struct call_paths_stats stats;

	for (uint64_t i = 0; i < CALL_PATHS_MAX; i++)
		assert_int_equal(add(fixture, 2 * i + 1, 0, 'f'), 0);
	assert_int_equal(add(fixture, 2 * CALL_PATHS_MAX + 1, 0, 'f'), -EDQUOT);
	assert_int_equal(add(fixture, 1, 0, 'f'), 0);
	call_paths_get_stats(fixture->paths, &stats);
	assert_int_equal(stats.nodes, CALL_PATHS_MAX);
	assert_int_equal(stats.refused, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			call_paths_give_stack__is_the_path_from_leaf_to_root, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			call_paths_give_stack__recursion_is_one_node_a_level, set_up, tear_down),
		cmocka_unit_test_setup_teardown(call_paths_give_stack__unknown_node_is_enoent,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			call_paths_give_stack__lost_parent_is_marked_and_counted, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(call_paths_give_stack__cycle_ends_at_the_limit,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			call_paths_give_stack__middle_of_a_deep_path_is_left_out, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			call_paths_end_epoch__unused_nodes_are_forgotten_after_two, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(call_paths_add__no_room_is_counted, set_up,
						tear_down),
	};

	return cmocka_run_group_tests_name("drain/call_paths", tests, NULL, NULL);
}
