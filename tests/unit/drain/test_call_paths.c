/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/call_paths.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drain/counts.h"
#include "drain/dictionary.h"
#include "drain/table.h"
#include "symbolize/stitch.h"

#define ROOM (16U << 20)
#define CODE(letter) (0xc0de00ULL | (uint64_t)(letter))

struct fixture {
	struct call_paths *paths;
	struct dictionary *dictionary;
	struct counts counts;
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

	counts_release(&fixture->counts);
	call_paths_free(fixture->paths);
	dictionary_free(fixture->dictionary);
	free(fixture);
	return 0;
}

/* Instead of drain/table.c: the kernel's tables are arrays here. */
#define NODES_FD 5
#define THREADS_FD 6
static struct {
	uint64_t id[8];
	struct pp_call_node node[8];
	uint32_t count;
	struct pp_call_thread thread;
	bool is_alive;
	uint64_t removed[8];
	uint32_t removed_count;
} kernel;

int table_read(int map_fd, size_t key_bytes, size_t value_bytes, table_on_entry *on_entry,
	       void *context)
{
	uint32_t tid = kernel.thread.tid;
	int err = 0;

	if (map_fd == THREADS_FD) {
		assert_int_equal(key_bytes, sizeof(tid));
		assert_int_equal(value_bytes, sizeof(kernel.thread));
		return on_entry(context, &tid, &kernel.thread);
	}
	assert_int_equal(map_fd, NODES_FD);
	assert_int_equal(key_bytes, sizeof(kernel.id[0]));
	assert_int_equal(value_bytes, sizeof(kernel.node[0]));
	for (uint32_t i = 0; !err && i < kernel.count; i++)
		err = on_entry(context, &kernel.id[i], &kernel.node[i]);
	return err;
}

int table_drain(int map_fd, size_t key_bytes, table_on_entry *on_row, void *context)
{
	(void)map_fd, (void)key_bytes, (void)on_row, (void)context;
	return -ENOSYS;
}

int table_remove(int map_fd, const void *key)
{
	assert_int_equal(map_fd, NODES_FD);
	kernel.removed[kernel.removed_count++] = *(const uint64_t *)key;
	return 0;
}

static void note(struct fixture *fixture, uint64_t node, uint64_t parent, char letter,
		 uint64_t calls, uint64_t self_ns)
{
	const struct pp_call_node now = {.self_ns = self_ns,
					 .calls = calls,
					 .parent = parent,
					 .code = CODE(letter),
					 .id = {.tgid = 7},
					 .tid = 8};

	assert_int_equal(call_paths_note(fixture->paths, node, &now), 0);
}

static void add(struct fixture *fixture, uint64_t node, uint64_t parent, char letter)
{
	note(fixture, node, parent, letter, 1, 10);
}

static void count(struct fixture *fixture)
{
	counts_release(&fixture->counts);
	assert_int_equal(call_paths_count(fixture->paths, fixture->dictionary, &fixture->counts),
			 0);
}

/* Writes a stack as letters, leaf to root; a marker of missing frames is '?'. */
static void spell(struct fixture *fixture, const struct dict_stack *stack, char text[64])
{
	const size_t frames = stitch(stack, false, fixture->frame);

	memset(text, 0, 64);
	for (size_t i = 0; i < frames && i < 63; i++) {
		const packed_frame frame = fixture->frame[i];

		text[i] = '?';
		if (packed_kind(frame) == PP_FRAME_PYTHON)
			text[i] =
				(char)dictionary_code(fixture->dictionary, packed_code(frame))->id;
	}
}

/* Returns the counter of a path; one of zeros when there is none. */
static struct counted find(struct fixture *fixture, const char *letters)
{
	for (size_t i = 0; i < fixture->counts.count; i++) {
		const struct counted *entry = &fixture->counts.entry[i];
		const struct dict_stack *stack =
			dictionary_find_stack(fixture->dictionary, entry->key.user_stack);
		char text[64];

		assert_non_null(stack);
		assert_int_equal(stack->id.tgid, 7);
		spell(fixture, stack, text);
		if (!strcmp(text, letters))
			return *entry;
	}
	return (struct counted){};
}

static const struct dict_stack *only_stack(struct fixture *fixture)
{
	assert_int_equal(fixture->counts.count, 1);
	return dictionary_find_stack(fixture->dictionary, fixture->counts.entry[0].key.user_stack);
}

static void call_paths_count__stack_is_the_path_from_leaf_to_root(void **state)
{
	struct fixture *fixture = *state;
	const struct dict_stack *stack;

	add(fixture, 11, 0, 'm');
	add(fixture, 13, 11, 'f');
	add(fixture, 15, 13, 'g');
	add(fixture, 17, 11, 'g');
	count(fixture);
	assert_int_equal(fixture->counts.count, 4);
	assert_int_equal(find(fixture, "gfm").count.samples, 1);
	assert_int_equal(find(fixture, "gm").count.samples, 1);
	assert_int_equal(find(fixture, "m").count.samples, 1);
	stack = dictionary_find_stack(fixture->dictionary, find(fixture, "gfm").key.user_stack);
	assert_int_equal(stack->stop, PP_STOP_ROOT);
	assert_int_equal(stack->py_stop, PP_PY_STOP_ROOT);
	/* No instruction: the line is the function's first. */
	assert_int_equal(packed_what(stack->frame[0]), UINT32_MAX);
}

static void call_paths_count__recursion_is_one_path_a_level(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 11, 0, 'f');
	add(fixture, 13, 11, 'f');
	add(fixture, 15, 13, 'f');
	count(fixture);
	assert_int_equal(find(fixture, "f").count.samples, 1);
	assert_int_equal(find(fixture, "ff").count.samples, 1);
	assert_int_equal(find(fixture, "fff").count.samples, 1);
}

/* Two resumes of a generator at two lines, say. */
static void call_paths_count__nodes_of_one_path_are_one_counter(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 11, 0, 'm');
	note(fixture, 13, 11, 'f', 2, 20);
	note(fixture, 15, 11, 'f', 3, 30);
	count(fixture);
	assert_int_equal(fixture->counts.count, 2);
	assert_int_equal(find(fixture, "fm").count.samples, 5);
	assert_int_equal(find(fixture, "fm").count.weight, 50);
}

static void call_paths_count__each_window_has_what_is_new(void **state)
{
	struct fixture *fixture = *state;

	note(fixture, 11, 0, 'm', 2, 100);
	note(fixture, 13, 11, 'f', 0, 0);
	count(fixture);
	assert_int_equal(fixture->counts.count, 1);
	assert_int_equal(fixture->counts.entry[0].key.kind, PP_KIND_CALL);
	assert_int_equal(fixture->counts.entry[0].key.tid, 8);
	assert_int_equal(find(fixture, "m").count.samples, 2);
	assert_int_equal(find(fixture, "m").count.weight, 100);
	note(fixture, 11, 0, 'm', 5, 130);
	count(fixture);
	assert_int_equal(find(fixture, "m").count.samples, 3);
	assert_int_equal(find(fixture, "m").count.weight, 30);
	note(fixture, 11, 0, 'm', 5, 130);
	count(fixture);
	assert_int_equal(fixture->counts.count, 0);
}

/* A call that goes on at a window's end: its time up to there is in that window, and not again in
 * the next one, in which its return adds all of it. */
static void call_paths_note_thread__adds_the_time_since_its_last_event_once(void **state)
{
	struct fixture *fixture = *state;
	const struct pp_call_thread thread = {.top = 11, .last_ns = 1000};

	note(fixture, 11, 0, 'm', 1, 100);
	call_paths_note_thread(fixture->paths, &thread, 1400);
	call_paths_note_thread(fixture->paths, &thread, 1400);
	count(fixture);
	assert_int_equal(find(fixture, "m").count.weight, 500);
	note(fixture, 11, 0, 'm', 1, 100 + 450);
	count(fixture);
	assert_int_equal(find(fixture, "m").count.weight, 50);
	/* The kernel side took off what the hits cost: nothing is below zero. */
	call_paths_note_thread(fixture->paths, &thread, 1500);
	count(fixture);
	assert_int_equal(find(fixture, "m").count.weight, 500);
	note(fixture, 11, 0, 'm', 1, 1000);
	count(fixture);
	assert_int_equal(find(fixture, "m").count.weight, 0);
}

static bool is_alive(void *context, const struct pp_call_thread *thread)
{
	assert_ptr_equal(context, &kernel);
	assert_int_equal(thread->tid, 8);
	return kernel.is_alive;
}

static void call_paths_collect__reads_both_tables(void **state)
{
	struct fixture *fixture = *state;
	const struct call_tables tables = {.nodes = NODES_FD,
					   .threads = THREADS_FD,
					   .ended_ns = 2000,
					   .is_alive = is_alive,
					   .context = &kernel};

	kernel.count = 2;
	kernel.id[0] = 13; /* before its parent */
	kernel.node[0] = (struct pp_call_node){
		.calls = 3, .self_ns = 30, .parent = 11, .code = CODE('f'), .id.tgid = 7};
	kernel.id[1] = 11;
	kernel.node[1] =
		(struct pp_call_node){.calls = 1, .self_ns = 70, .code = CODE('m'), .id.tgid = 7};
	kernel.thread = (struct pp_call_thread){.tid = 8, .top = 11, .last_ns = 1500};
	kernel.is_alive = true;
	assert_int_equal(call_paths_collect(fixture->paths, &tables, fixture->dictionary,
					    &fixture->counts),
			 0);
	assert_int_equal(find(fixture, "fm").count.samples, 3);
	assert_int_equal(find(fixture, "m").count.weight, 70 + 500);
	/* One that has ended in a call. */
	kernel.is_alive = false;
	counts_release(&fixture->counts);
	assert_int_equal(call_paths_collect(fixture->paths, &tables, fixture->dictionary,
					    &fixture->counts),
			 0);
	assert_int_equal(fixture->counts.count, 0);
}

/* Nodes of a thread that has ended make room, and what they counted is in the next window. */
static void call_paths_tidy__removed_nodes_are_counted_once(void **state)
{
	struct fixture *fixture = *state;
	const struct call_tables tables = {
		.nodes = NODES_FD, .threads = THREADS_FD, .is_alive = is_alive, .context = &kernel};

	kernel.count = 1;
	kernel.id[0] = 11;
	kernel.node[0] = (struct pp_call_node){
		.calls = 1, .self_ns = 70, .code = CODE('m'), .id.tgid = 7, .tid = 8};
	kernel.is_alive = true;
	assert_int_equal(call_paths_tidy(fixture->paths, &tables), 0);
	kernel.is_alive = false;
	assert_int_equal(call_paths_tidy(fixture->paths, &tables), 1);
	assert_int_equal(kernel.removed_count, 1);
	assert_int_equal(kernel.removed[0], 11);
	kernel.count = 0;
	assert_int_equal(call_paths_tidy(fixture->paths, &tables), 0);
	count(fixture);
	assert_int_equal(find(fixture, "m").count.weight, 70);
	assert_int_equal(find(fixture, "m").key.tid, 0);
	count(fixture);
	assert_int_equal(fixture->counts.count, 0);
}

static void call_paths_count__unknown_parent_is_marked(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 13, 11, 'f');
	add(fixture, 15, 13, 'g');
	count(fixture);
	assert_int_equal(find(fixture, "gf?").count.samples, 1);
}

static void call_paths_count__cycle_ends_at_the_limit(void **state)
{
	struct fixture *fixture = *state;
	const struct dict_stack *stack;

	add(fixture, 11, 13, 'f');
	note(fixture, 13, 11, 'g', 0, 0);
	count(fixture);
	stack = only_stack(fixture);
	assert_int_equal(stack->python_count, PP_MAX_STEPS);
	assert_int_equal(stack->py_stop, PP_PY_STOP_MAX_STEPS);
}

/* A path that is deeper than a stack: the frames at both ends stay. */
static void call_paths_count__middle_of_a_deep_path_is_left_out(void **state)
{
	struct fixture *fixture = *state;
	const uint64_t depth = PP_MAX_FRAMES + 100;
	const struct dict_stack *stack;
	size_t frames, gaps = 0;

	note(fixture, 1, 0, 'r', 0, 0);
	for (uint64_t i = 1; i < depth; i++)
		note(fixture, 2 * i + 1, 2 * i - 1,
		     i == 1	      ? 's'
		     : i + 1 == depth ? 'l'
				      : 'f',
		     i + 1 == depth, 0);
	count(fixture);
	stack = only_stack(fixture);
	assert_int_equal(stack->python_count, depth);
	frames = stitch(stack, false, fixture->frame);
	for (size_t i = 0; i < frames; i++)
		gaps += packed_kind(fixture->frame[i]) == PP_FRAME_GAP;
	assert_int_equal(gaps, 1);
	assert_int_equal(dictionary_code(fixture->dictionary, packed_code(fixture->frame[0]))->id,
			 CODE('l'));
	assert_int_equal(
		dictionary_code(fixture->dictionary, packed_code(fixture->frame[frames - 2]))->id,
		CODE('s'));
	assert_int_equal(
		dictionary_code(fixture->dictionary, packed_code(fixture->frame[frames - 1]))->id,
		CODE('r'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			call_paths_count__stack_is_the_path_from_leaf_to_root, set_up, tear_down),
		cmocka_unit_test_setup_teardown(call_paths_count__recursion_is_one_path_a_level,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(call_paths_count__nodes_of_one_path_are_one_counter,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(call_paths_count__each_window_has_what_is_new,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			call_paths_note_thread__adds_the_time_since_its_last_event_once, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(call_paths_collect__reads_both_tables, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(call_paths_tidy__removed_nodes_are_counted_once,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(call_paths_count__unknown_parent_is_marked, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(call_paths_count__cycle_ends_at_the_limit, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(call_paths_count__middle_of_a_deep_path_is_left_out,
						set_up, tear_down),
	};

	return cmocka_run_group_tests_name("drain/call_paths", tests, NULL, NULL);
}
