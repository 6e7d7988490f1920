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
#define CODE 0xc0deULL
#define INSTRUCTION 24U
#define TGID 7U
#define TID 8U

struct fixture {
	struct hash_set rows;
	struct dictionary *dictionary;
	struct counts counts;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct python_code *code = calloc(1, sizeof(*code));
	uint32_t index;

	assert_non_null(fixture);
	assert_non_null(code);
	hash_set_init(&fixture->rows);
	assert_int_equal(dictionary_new(ROOM, &fixture->dictionary), 0);
	code->id = CODE;
	assert_int_equal(dictionary_add_code(fixture->dictionary, (struct pp_process_id){}, code,
					     &index),
			 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	counts_release(&fixture->counts);
	hash_set_release(&fixture->rows);
	dictionary_free(fixture->dictionary);
	free(fixture);
	return 0;
}

/* Instead of drain/table.c: the kernel's tables have one entry. */
#define ROWS_FD 5
#define RUNS_FD 6
static struct {
	struct pp_line_row row;
	struct pp_line_run run;
	bool is_alive;
} kernel;

int table_read(int map_fd, size_t key_bytes, size_t value_bytes, table_on_entry *on_entry,
	       void *context)
{
	const struct pp_line_run_key key = {};
	const uint64_t id = 11;

	if (map_fd == RUNS_FD) {
		assert_int_equal(key_bytes, sizeof(key));
		assert_int_equal(value_bytes, sizeof(kernel.run));
		return on_entry(context, &key, &kernel.run);
	}
	assert_int_equal(map_fd, ROWS_FD);
	assert_int_equal(key_bytes, sizeof(id));
	assert_int_equal(value_bytes, sizeof(kernel.row));
	return on_entry(context, &id, &kernel.row);
}

int table_drain(int map_fd, size_t key_bytes, table_on_entry *on_row, void *context)
{
	(void)map_fd, (void)key_bytes, (void)on_row, (void)context;
	return -ENOSYS;
}

int table_remove(int map_fd, const void *key)
{
	(void)map_fd, (void)key;
	return -ENOSYS;
}

static void note(struct fixture *fixture, uint64_t id, uint64_t hits, uint64_t ns)
{
	const struct pp_line_row now = {.hits = hits,
					.ns = ns,
					.code = CODE,
					.instruction = INSTRUCTION,
					.id = {.tgid = TGID}};

	assert_int_equal(line_rows_note(&fixture->rows, id, &now), 0);
}

static void count(struct fixture *fixture)
{
	counts_release(&fixture->counts);
	assert_int_equal(line_rows_count(&fixture->rows, fixture->dictionary, &fixture->counts), 0);
}

/* Returns the only counter. */
static const struct counted *only(struct fixture *fixture)
{
	assert_int_equal(fixture->counts.count, 1);
	return &fixture->counts.entry[0];
}

static void line_rows_count__stack_is_the_frame_at_the_line(void **state)
{
	struct fixture *fixture = *state;
	packed_frame frame[STITCH_MAX_FRAMES];
	const struct dict_stack *stack;

	note(fixture, 11, 3, 40);
	count(fixture);
	assert_int_equal(only(fixture)->key.kind, PP_KIND_LINE);
	assert_int_equal(only(fixture)->key.id.tgid, TGID);
	assert_int_equal(only(fixture)->count.samples, 3);
	assert_int_equal(only(fixture)->count.weight, 40);
	stack = dictionary_find_stack(fixture->dictionary, only(fixture)->key.user_stack);
	assert_non_null(stack);
	assert_int_equal(stitch(stack, false, frame), 1);
	assert_int_equal(packed_kind(frame[0]), PP_FRAME_PYTHON);
	assert_int_equal(packed_what(frame[0]), INSTRUCTION);
	assert_int_equal(dictionary_code(fixture->dictionary, packed_code(frame[0]))->id, CODE);
}

static void line_rows_count__each_window_has_what_is_new(void **state)
{
	struct fixture *fixture = *state;

	note(fixture, 11, 3, 40);
	note(fixture, 13, 0, 0);
	count(fixture);
	assert_int_equal(only(fixture)->count.samples, 3);
	note(fixture, 11, 5, 40);
	count(fixture);
	assert_int_equal(only(fixture)->count.samples, 2);
	assert_int_equal(only(fixture)->count.weight, 0);
	count(fixture);
	assert_int_equal(fixture->counts.count, 0);
}

/* A line that goes on at a window's end: its time up to there is in that window, and not again in
 * the next one, in which its end adds all of it. */
static void line_rows_note_run__adds_the_time_since_its_last_event_once(void **state)
{
	struct fixture *fixture = *state;
	struct pp_line_run run = {.since_ns = 1000, .depth = 2, .row = {13, 11}};

	note(fixture, 11, 1, 40);
	line_rows_note_run(&fixture->rows, &run, 1500);
	count(fixture);
	assert_int_equal(only(fixture)->count.weight, 540);
	note(fixture, 11, 1, 700);
	count(fixture);
	assert_int_equal(only(fixture)->count.weight, 160);
}

/* Two threads may be in one line. */
static void line_rows_note_run__threads_add_up(void **state)
{
	struct fixture *fixture = *state;
	struct pp_line_run run = {.since_ns = 1000, .depth = 1, .row = {11}};

	note(fixture, 11, 2, 0);
	line_rows_note_run(&fixture->rows, &run, 1500);
	line_rows_note_run(&fixture->rows, &run, 1500);
	count(fixture);
	assert_int_equal(only(fixture)->count.weight, 1000);
}

static void line_rows_note_run__outside_of_lines_is_nobodys(void **state)
{
	struct fixture *fixture = *state;
	struct pp_line_run run = {.since_ns = 1000, .row = {11}};

	note(fixture, 11, 1, 40);
	line_rows_note_run(&fixture->rows, &run, 1500); /* in no activation */
	run.depth = PP_LINE_DEPTH + 1;
	line_rows_note_run(&fixture->rows, &run, 1500); /* too deep to have a line */
	run.depth = 1;
	run.row[0] = 0;
	line_rows_note_run(&fixture->rows, &run, 1500); /* before its first line */
	run.row[0] = 11;
	line_rows_note_run(&fixture->rows, &run, 900); /* it began in the next window */
	count(fixture);
	assert_int_equal(only(fixture)->count.weight, 40);
}

static bool is_alive(uint32_t tgid, uint32_t tid)
{
	assert_int_equal(tgid, TGID);
	assert_int_equal(tid, TID);
	return kernel.is_alive;
}

static void line_rows_collect__thread_that_has_ended_is_in_no_line(void **state)
{
	struct fixture *fixture = *state;
	const struct line_tables tables = {
		.rows = ROWS_FD, .runs = RUNS_FD, .ended_ns = 1500, .is_alive = is_alive};

	kernel.row = (struct pp_line_row){.hits = 1, .ns = 40, .code = CODE, .id.tgid = TGID};
	kernel.run = (struct pp_line_run){
		.since_ns = 1000, .depth = 1, .row = {11}, .tgid = TGID, .tid = TID};
	kernel.is_alive = false;
	assert_int_equal(line_rows_collect(&fixture->rows, &tables, fixture->dictionary,
					   &fixture->counts),
			 0);
	assert_int_equal(only(fixture)->count.weight, 40);
	kernel.is_alive = true;
	counts_release(&fixture->counts);
	assert_int_equal(line_rows_collect(&fixture->rows, &tables, fixture->dictionary,
					   &fixture->counts),
			 0);
	assert_int_equal(only(fixture)->count.weight, 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(line_rows_count__stack_is_the_frame_at_the_line,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(line_rows_count__each_window_has_what_is_new,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			line_rows_note_run__adds_the_time_since_its_last_event_once, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(line_rows_note_run__threads_add_up, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(line_rows_note_run__outside_of_lines_is_nobodys,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			line_rows_collect__thread_that_has_ended_is_in_no_line, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("drain/line_rows", tests, NULL, NULL);
}
