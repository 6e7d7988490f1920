/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/dictionary.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "drain/raw_codes.h"

#define ROOM (1U << 20)

/* ---- packing ---- */

static void packed_native__keeps_file_and_address(void **state)
{
	packed_frame frame = packed_native(PP_FRAME_NATIVE, 0x1fffff, 0xffffffffffULL);

	(void)state;
	assert_int_equal(packed_kind(frame), PP_FRAME_NATIVE);
	assert_int_equal(packed_file(frame), 0x1fffff);
	assert_int_equal(packed_address(frame), 0xffffffffffULL);
	frame = packed_native(PP_FRAME_EVAL, 16, 0x1a2b3c);
	assert_int_equal(packed_kind(frame), PP_FRAME_EVAL);
	assert_int_equal(packed_file(frame), 16);
	assert_int_equal(packed_address(frame), 0x1a2b3c);
}

static void packed_native__too_large_parts_do_not_touch_each_other(void **state)
{
	packed_frame frame = packed_native(PP_FRAME_NATIVE, 0xffe00010, 0xffff0000000000ffULL);

	(void)state;
	assert_int_equal(packed_kind(frame), PP_FRAME_NATIVE);
	assert_int_equal(packed_file(frame), 0x10);
	assert_int_equal(packed_address(frame), 0xff);
}

static void packed_python__keeps_code_and_instruction(void **state)
{
	packed_frame frame = packed_python(0x1fffffff, 0xfffffffe);

	(void)state;
	assert_int_equal(packed_kind(frame), PP_FRAME_PYTHON);
	assert_int_equal(packed_code(frame), 0x1fffffff);
	assert_int_equal(packed_what(frame), 0xfffffffe);
}

/* ---- stacks ---- */

struct stack_of_four {
	struct pp_stack_record record;
	struct pp_frame frame[4];
};

static int add_stack(struct dictionary *dictionary, const struct stack_of_four *stack)
{
	const struct decoded_stack decoded = {
		.record = &stack->record,
		.python = stack->frame,
		.native = stack->frame + stack->record.python_stored,
	};

	return dictionary_add_stack(dictionary, &decoded);
}

static const struct pp_process_id nobody;

/* One native frame; what tells stacks apart is the hash. */
static int add_plain_of(struct dictionary *dictionary, uint32_t tgid, uint64_t hash)
{
	const struct stack_of_four stack = {
		.record = {.hash = hash,
			   .id = {.tgid = tgid},
			   .native_stored = 1,
			   .native_count = 1,
			   .stop = PP_STOP_ROOT},
		.frame = {{.where = 0x400, .what = 16, .kind = PP_FRAME_NATIVE}},
	};

	return add_stack(dictionary, &stack);
}

static int add_plain(struct dictionary *dictionary, uint64_t hash)
{
	return add_plain_of(dictionary, 0, hash);
}

static int add_kernel(struct dictionary *dictionary, uint64_t hash, uint64_t address)
{
	uint64_t bytes[(sizeof(struct pp_kernel_record) + 8) / 8] = {0};
	struct pp_kernel_record *record = (struct pp_kernel_record *)bytes;
	const struct decoded_kernel decoded = {.record = record, .count = 1};

	record->hash = hash;
	record->address[0] = address;
	return dictionary_add_kernel(dictionary, &decoded);
}

static struct python_code *new_code(uint64_t id, const char *name)
{
	struct python_code *code = calloc(1, sizeof(*code));

	assert_non_null(code);
	code->id = id;
	code->name = strdup(name);
	code->filename = strdup("/srv/app.py");
	return code;
}

/* One that is not decoded. */
static struct python_code *raw_code(uint64_t id, uint32_t line_table_bytes)
{
	const size_t size = sizeof(struct python_code_raw) + line_table_bytes;
	struct python_code *code = calloc(1, sizeof(*code));

	assert_non_null(code);
	code->id = id;
	code->raw = calloc(1, size);
	assert_non_null(code->raw);
	code->raw->size = (uint32_t)size;
	code->raw->line_table_bytes = line_table_bytes;
	return code;
}

static struct python_code_text text_of(const char *name, uint32_t rows)
{
	struct python_code_text text = {.name = strdup(name),
					.filename = strdup("/srv/app.py"),
					.row = calloc(rows, sizeof(*text.row)),
					.row_count = rows};

	assert_non_null(text.row);
	text.row[0].line = 77;
	return text;
}

static struct dictionary_stats stats_of(const struct dictionary *dictionary)
{
	struct dictionary_stats stats;

	dictionary_get_stats(dictionary, &stats);
	return stats;
}

static void add_stack__keeps_both_areas_and_what_is_told_of_them(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	const struct stack_of_four stack = {
		.record = {.hash = 77,
			   .id = {.tgid = 5, .generation = 6},
			   .python_stored = 1,
			   .native_stored = 3,
			   .python_count = 9,
			   .native_count = 30,
			   .stop = PP_STOP_NO_INFO,
			   .py_stop = PP_PY_STOP_ROOT,
			   .python = 2},
		.frame = {{.where = 0xc0de, .what = 44, .kind = PP_FRAME_PYTHON},
			  {.where = 3, .kind = PP_FRAME_SEGMENT},
			  {.where = 0x7f0012345678, .what = 1, .kind = PP_FRAME_ANONYMOUS},
			  {.kind = PP_FRAME_GAP}},
	};
	const struct dict_stack *found;
	uint32_t index = 0;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	assert_int_equal(dictionary_add_code(dictionary, nobody, new_code(0xc0de, "f"), &index), 0);
	assert_int_equal(add_stack(dictionary, &stack), 0);
	found = dictionary_find_stack(dictionary, 77);
	assert_non_null(found);
	assert_int_equal(found->id.tgid, 5);
	assert_int_equal(found->id.generation, 6);
	assert_int_equal(found->python_stored, 1);
	assert_int_equal(found->native_stored, 3);
	assert_int_equal(found->python_count, 9);
	assert_int_equal(found->native_count, 30);
	assert_int_equal(found->stop, PP_STOP_NO_INFO);
	assert_int_equal(found->py_stop, PP_PY_STOP_ROOT);
	assert_int_equal(found->python, 2);
	assert_int_equal(packed_kind(found->frame[0]), PP_FRAME_PYTHON);
	assert_int_equal(packed_code(found->frame[0]), index);
	assert_int_equal(packed_what(found->frame[0]), 44);
	assert_int_equal(packed_kind(found->frame[1]), PP_FRAME_SEGMENT);
	assert_int_equal(packed_what(found->frame[1]), 3);
	assert_int_equal(packed_kind(found->frame[2]), PP_FRAME_ANONYMOUS);
	assert_int_equal(found->frame[2] & ((1ULL << 61) - 1), 0x7f0012345678);
	assert_int_equal(packed_kind(found->frame[3]), PP_FRAME_GAP);
	assert_int_equal(packed_what(found->frame[3]), 0);
	assert_null(dictionary_find_stack(dictionary, 78));
	assert_null(dictionary_find_kernel(dictionary, 77));
}

static void add_stack__many_survive_growth(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	/* Hashes that collide in their low bits. */
	for (uint64_t i = 0; i < 5000; i++)
		assert_int_equal(add_plain(dictionary, i << 9 | 1), 0);
	for (uint64_t i = 0; i < 5000; i++) {
		const struct dict_stack *found = dictionary_find_stack(dictionary, i << 9 | 1);

		assert_non_null(found);
		assert_int_equal(found->hash, i << 9 | 1);
	}
	assert_int_equal(stats_of(dictionary).stacks, 5000);
}

static void add_stack__same_hash_is_kept_once(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	size_t bytes;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	assert_int_equal(add_plain(dictionary, 5), 0);
	bytes = stats_of(dictionary).bytes;
	assert_int_equal(add_plain(dictionary, 5), 0);
	assert_int_equal(stats_of(dictionary).stacks, 1);
	assert_int_equal(stats_of(dictionary).bytes, bytes);
}

/* ---- epochs ---- */

static void note_files__those_that_native_frames_name(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	OWNED_MEM uint64_t *named = calloc((1U << 21) / 64, sizeof(*named));
	const struct stack_of_four stack = {
		.record = {.hash = 77, .native_stored = 4, .native_count = 4, .stop = PP_STOP_ROOT},
		/* An id: how often the slot was used is above its 21 bits. */
		.frame = {{.where = 3, .what = 7U << 21 | 70, .kind = PP_FRAME_NATIVE},
			  {.where = 3, .what = 0x1fffff, .kind = PP_FRAME_EVAL},
			  {.where = 0x7f0012345678, .what = 1, .kind = PP_FRAME_ANONYMOUS},
			  {.kind = PP_FRAME_GAP}},
	};
	uint64_t all = 0;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	assert_int_equal(add_stack(dictionary, &stack), 0);
	dictionary_note_files(dictionary, named);
	assert_int_equal(named[70 / 64], 1ULL << 70 % 64);
	assert_int_equal(named[0x1fffff / 64], 1ULL << 63);
	for (size_t i = 0; i < (1U << 21) / 64; i++)
		all += named[i] != 0;
	assert_int_equal(all, 2);
}

static void count_frame(void *context, packed_frame frame)
{
	uint64_t *sum = context;

	sum[0]++;
	sum[1] += packed_address(frame) + packed_file(frame);
}

static void find_frames__those_in_the_files_asked_for(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	OWNED_MEM uint64_t *files = calloc((1U << 21) / 64, sizeof(*files));
	const struct stack_of_four stack = {
		.record = {.hash = 77, .native_stored = 4, .native_count = 4, .stop = PP_STOP_ROOT},
		.frame = {{.where = 3000, .what = 70, .kind = PP_FRAME_NATIVE},
			  {.where = 5000, .what = 70, .kind = PP_FRAME_EVAL},
			  {.where = 100, .what = 71, .kind = PP_FRAME_NATIVE},
			  {.where = 100, .what = 70, .kind = PP_FRAME_ANONYMOUS}},
	};
	uint64_t sum[2] = {0};

	(void)state;
	assert_non_null(files);
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	assert_int_equal(add_stack(dictionary, &stack), 0);
	dictionary_find_frames(dictionary, files, count_frame, sum);
	assert_int_equal(sum[0], 0);
	files[70 / 64] = 1ULL << 70 % 64;
	dictionary_find_frames(dictionary, files, count_frame, sum);
	assert_int_equal(sum[0], 2);
	assert_int_equal(sum[1], 3000 + 70 + 5000 + 70);
	/* Of high numbers. */
	for (uint32_t file = 200000; file < 200003; file++) {
		const struct stack_of_four high = {
			.record = {.hash = file, .native_stored = 1, .native_count = 1},
			.frame = {{.where = 100, .what = file, .kind = PP_FRAME_NATIVE}},
		};

		assert_int_equal(add_stack(dictionary, &high), 0);
	}
	memset(files, 0, (1U << 21) / 8);
	memset(sum, 0, sizeof(sum));
	files[200001 / 64] = 1ULL << 200001 % 64;
	dictionary_find_frames(dictionary, files, count_frame, sum);
	assert_int_equal(sum[0], 1);
	assert_int_equal(sum[1], 100 + 200001);
}

static void set_epoch__entries_not_sent_in_two_epochs_go(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	dictionary_set_epoch(dictionary, 10);
	assert_int_equal(add_plain(dictionary, 1), 0);
	assert_int_equal(add_plain(dictionary, 2), 0);
	assert_int_equal(add_kernel(dictionary, 3, 0xffff1), 0);
	assert_int_equal(add_kernel(dictionary, 4, 0xffff2), 0);
	dictionary_set_epoch(dictionary, 11);
	assert_non_null(dictionary_find_stack(dictionary, 1));
	assert_non_null(dictionary_find_kernel(dictionary, 3));
	/* Sent again: only these are refreshed. */
	assert_int_equal(add_plain(dictionary, 2), 0);
	assert_int_equal(add_kernel(dictionary, 4, 0xffff2), 0);
	dictionary_set_epoch(dictionary, 12);
	assert_null(dictionary_find_stack(dictionary, 1));
	assert_null(dictionary_find_kernel(dictionary, 3));
	assert_non_null(dictionary_find_stack(dictionary, 2));
	assert_int_equal(dictionary_find_kernel(dictionary, 4)->address[0], 0xffff2);
	assert_int_equal(stats_of(dictionary).stacks, 1);
	assert_int_equal(stats_of(dictionary).kernel_stacks, 1);
	/* A thread that sleeps under them sends nothing. */
	assert_non_null(dictionary_use_stack(dictionary, 2));
	assert_non_null(dictionary_use_kernel(dictionary, 4));
	dictionary_set_epoch(dictionary, 13);
	assert_non_null(dictionary_find_stack(dictionary, 2));
	assert_non_null(dictionary_find_kernel(dictionary, 4));
	assert_null(dictionary_use_stack(dictionary, 1));
	dictionary_set_epoch(dictionary, 14);
	assert_int_equal(stats_of(dictionary).stacks, 0);
	assert_int_equal(stats_of(dictionary).bytes, 0);
}

static int add_alias(struct dictionary *dictionary, uint64_t hash, uint64_t stack)
{
	bool again;
	int err = dictionary_add_alias(dictionary, hash, stack, &again);

	assert_false(again);
	return err;
}

static void add_alias__leads_to_the_stack_while_it_is_used(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	size_t bytes;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	dictionary_set_epoch(dictionary, 10);
	assert_int_equal(add_alias(dictionary, 100, 1), 0);
	assert_null(dictionary_find_stack(dictionary, 100));
	assert_int_equal(add_plain(dictionary, 1), 0);
	bytes = stats_of(dictionary).bytes;
	assert_int_equal(dictionary_find_stack(dictionary, 100)->hash, 1);
	assert_int_equal(add_alias(dictionary, 100, 1), 0);
	assert_int_equal(stats_of(dictionary).bytes, bytes);
	dictionary_set_epoch(dictionary, 11);
	assert_int_equal(stats_of(dictionary).bytes, bytes);
	assert_non_null(dictionary_use_stack(dictionary, 100));
	dictionary_set_epoch(dictionary, 12);
	assert_non_null(dictionary_find_stack(dictionary, 100));
	dictionary_set_epoch(dictionary, 13);
	assert_null(dictionary_find_stack(dictionary, 100));
	assert_int_equal(stats_of(dictionary).bytes, 0);
	assert_int_equal(add_plain(dictionary, 1), 0);
	assert_int_equal(add_alias(dictionary, 101, 1), 0);
	assert_int_equal(add_alias(dictionary, 102, 2), 0);
	dictionary_make_room(dictionary);
	assert_non_null(dictionary_find_stack(dictionary, 101));
	assert_int_equal(add_plain(dictionary, 2), 0);
	assert_null(dictionary_find_stack(dictionary, 102));
}

static void add_torn(struct dictionary *dictionary, uint64_t hash, enum pp_py_stop py_stop)
{
	struct pp_stack_record record = {.hash = hash, .py_stop = (uint8_t)py_stop};
	const struct decoded_stack stack = {.record = &record};

	assert_int_equal(dictionary_add_stack(dictionary, &stack), 0);
}

static void add_alias__asks_again_for_a_torn_stack_until_a_whole_one_comes(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	bool again = false;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	add_torn(dictionary, 1, PP_PY_STOP_TORN);
	add_torn(dictionary, 2, PP_PY_STOP_ROOT);
	add_torn(dictionary, 3, PP_PY_STOP_TORN);
	assert_int_equal(dictionary_add_alias(dictionary, 100, 1, &again), 0);
	assert_true(again);
	/* Another torn one says as little, but it is the newer one. */
	assert_int_equal(dictionary_add_alias(dictionary, 100, 3, &again), 0);
	assert_true(again);
	assert_int_equal(dictionary_find_stack(dictionary, 100)->hash, 3);
	assert_int_equal(dictionary_add_alias(dictionary, 100, 2, &again), 0);
	assert_false(again);
	assert_int_equal(dictionary_find_stack(dictionary, 100)->hash, 2);
	/* In a later epoch it is torn: what is known stays. */
	assert_int_equal(dictionary_add_alias(dictionary, 100, 1, &again), 0);
	assert_false(again);
	assert_int_equal(dictionary_find_stack(dictionary, 100)->hash, 2);
}

static void add_alias__gives_up_a_stack_that_is_always_torn(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	unsigned int asked = 0;
	bool again = true;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	add_torn(dictionary, 1, PP_PY_STOP_TORN);
	for (; again; asked += again)
		assert_int_equal(dictionary_add_alias(dictionary, 100, 1, &again), 0);
	assert_int_equal(asked, DICTIONARY_ALIAS_TRIES - 1);
	assert_int_equal(dictionary_add_alias(dictionary, 100, 1, &again), 0);
	assert_false(again);
}

static void set_epoch__wraps(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	dictionary_set_epoch(dictionary, UINT32_MAX);
	assert_int_equal(add_plain(dictionary, 1), 0);
	dictionary_set_epoch(dictionary, 0);
	assert_non_null(dictionary_find_stack(dictionary, 1));
	dictionary_set_epoch(dictionary, 1);
	assert_null(dictionary_find_stack(dictionary, 1));
}

static void set_epoch__keeps_code_objects_and_frees_room(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	uint32_t index = 0;
	size_t code_bytes;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	dictionary_set_epoch(dictionary, 1);
	assert_int_equal(dictionary_add_code(dictionary, nobody, new_code(9, "f"), &index), 0);
	code_bytes = stats_of(dictionary).bytes;
	assert_int_equal(add_plain(dictionary, 1), 0);
	assert_true(stats_of(dictionary).bytes > code_bytes);
	dictionary_set_epoch(dictionary, 3);
	assert_int_equal(stats_of(dictionary).bytes, code_bytes);
	assert_string_equal(dictionary_code(dictionary, index)->name, "f");
}

/* ---- code objects ---- */

static void add_code__same_id_is_one_code(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	uint32_t first = 0, second = 0, other = 0;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	assert_int_equal(dictionary_add_code(dictionary, nobody, new_code(9, "f"), &first), 0);
	assert_int_equal(dictionary_add_code(dictionary, nobody, new_code(9, "f"), &second), 0);
	assert_int_equal(dictionary_add_code(dictionary, nobody, new_code(10, "g"), &other), 0);
	assert_int_not_equal(first, 0);
	assert_int_equal(first, second);
	assert_int_not_equal(first, other);
	assert_int_equal(stats_of(dictionary).codes, 2);
	assert_null(dictionary_code(dictionary, 0));
	assert_null(dictionary_code(dictionary, other + 1));
	assert_null(dictionary_code(dictionary, UINT32_MAX));
}

static void add_code__many_survive_growth(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;

	(void)state;
	assert_int_equal(dictionary_new(4 * ROOM, &dictionary), 0);
	for (uint32_t i = 0; i < 3000; i++) {
		uint32_t index = 0;

		assert_int_equal(dictionary_add_code(dictionary, nobody, new_code(1000 + i, "f"),
						     &index),
				 0);
		assert_int_equal(index, i + 1);
	}
	for (uint32_t i = 0; i < 3000; i++)
		assert_int_equal(dictionary_code(dictionary, i + 1)->id, 1000 + i);
}

static struct stack_of_four python_stack(uint16_t kind, uint64_t where)
{
	return (struct stack_of_four){
		.record = {.hash = 5,
			   .id = {.tgid = 70},
			   .python = 3,
			   .python_stored = 1,
			   .python_count = 1},
		.frame = {{.where = where, .what = 8, .kind = kind}},
	};
}

static void add_stack__unknown_code_has_index_0_and_is_counted(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	const struct stack_of_four stack = python_stack(PP_FRAME_PYTHON, 0xdead);

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	assert_int_equal(add_stack(dictionary, &stack), 0);
	assert_int_equal(packed_code(dictionary_find_stack(dictionary, 5)->frame[0]), 0);
	assert_int_equal(packed_what(dictionary_find_stack(dictionary, 5)->frame[0]), 8);
	assert_int_equal(stats_of(dictionary).unknown_code, 1);
}

struct asked {
	struct pp_process_id id;
	uint8_t python;
	uint64_t address;
	int answer;
};

static int fake_read_raw(void *context, struct pp_process_id id, uint8_t python, uint64_t address,
			 struct python_code **ret_code)
{
	struct asked *asked = context;

	asked->id = id;
	asked->python = python;
	asked->address = address;
	if (!asked->answer)
		*ret_code = new_code(55, "read_later");
	return asked->answer;
}

static void add_stack__raw_code_is_asked_from_the_reader(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	const struct stack_of_four stack = python_stack(PP_FRAME_PYTHON_RAW, 0x7f0000aa0000);
	struct asked asked = {};
	const struct dict_stack *found;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	dictionary_set_reader(dictionary, fake_read_raw, &asked);
	assert_int_equal(add_stack(dictionary, &stack), 0);
	assert_int_equal(asked.id.tgid, 70);
	assert_int_equal(asked.python, 3);
	assert_int_equal(asked.address, 0x7f0000aa0000);
	found = dictionary_find_stack(dictionary, 5);
	assert_int_equal(packed_kind(found->frame[0]), PP_FRAME_PYTHON);
	assert_string_equal(dictionary_code(dictionary, packed_code(found->frame[0]))->name,
			    "read_later");
	assert_int_equal(stats_of(dictionary).unknown_code, 0);
}

static void add_stack__raw_code_that_cannot_be_read_is_unknown(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	const struct stack_of_four stack = python_stack(PP_FRAME_PYTHON_RAW, 0x7f0000aa0000);
	struct asked asked = {.answer = -ESRCH};

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	dictionary_set_reader(dictionary, fake_read_raw, &asked);
	assert_int_equal(add_stack(dictionary, &stack), 0);
	assert_int_equal(packed_code(dictionary_find_stack(dictionary, 5)->frame[0]), 0);
	assert_int_equal(stats_of(dictionary).unknown_code, 1);
}

/* ---- the budget ---- */

static void budget__what_does_not_fit_is_refused_and_counted(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	uint32_t index = 12345;
	size_t one;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	assert_int_equal(add_plain(dictionary, 1), 0);
	one = stats_of(dictionary).bytes;
	dictionary_free(TAKE(dictionary));

	/* One process may have half. */
	assert_int_equal(dictionary_new(4 * one, &dictionary), 0);
	assert_int_equal(add_plain(dictionary, 1), 0);
	assert_int_equal(add_plain(dictionary, 2), 0);
	assert_int_equal(add_plain(dictionary, 3), -ENOSPC);
	assert_int_equal(dictionary_add_code(dictionary, nobody, new_code(9, "f"), &index),
			 -ENOSPC);
	assert_int_equal(index, 12345);
	assert_int_equal(stats_of(dictionary).refused, 2);
	assert_int_equal(stats_of(dictionary).bytes, 2 * one);
	assert_null(dictionary_find_stack(dictionary, 3));
	assert_true(dictionary_was_refused(dictionary, 3));
	assert_false(dictionary_was_refused(dictionary, 2));
	/* What is there is still refreshed. */
	assert_int_equal(add_plain(dictionary, 2), 0);
	assert_int_equal(stats_of(dictionary).refused, 2);
	/* Kernel stacks are nobody's, and bounded by the whole. */
	for (uint64_t hash = 100; !add_kernel(dictionary, hash, 0xffff1); hash++)
		assert_true(hash < 200);
	assert_int_equal(stats_of(dictionary).refused, 3);
	assert_true(stats_of(dictionary).bytes <= 4 * one);
	/* It is sent once more in the next epoch: nothing is known of it then. */
	dictionary_set_epoch(dictionary, 1);
	assert_false(dictionary_was_refused(dictionary, 3));
}

static void budget__expiry_makes_room(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	size_t one;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	assert_int_equal(add_plain(dictionary, 1), 0);
	one = stats_of(dictionary).bytes;
	dictionary_free(TAKE(dictionary));

	assert_int_equal(dictionary_new(2 * one, &dictionary), 0);
	assert_int_equal(add_plain(dictionary, 1), 0);
	assert_int_equal(add_plain(dictionary, 2), -ENOSPC);
	dictionary_set_epoch(dictionary, 2);
	assert_int_equal(add_plain(dictionary, 2), 0);
}

/* Nine processes with stacks without end, and one that has ten. */
static void budget__greedy_processes_leave_room_to_the_others(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	uint64_t hash = 1, honest = 1ULL << 40;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	for (uint32_t i = 0; i < 100000; i++)
		(void)add_plain_of(dictionary, 1 + i % 9, hash++);
	assert_true(stats_of(dictionary).refused > 1000);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(add_plain_of(dictionary, 77, honest + i), 0);
	assert_true(stats_of(dictionary).bytes <= ROOM);
}

/* tgid 77 is another user's. */
static uint32_t user_of(void *context, struct pp_process_id id)
{
	return id.tgid == 77 ? *(const uint32_t *)context : 1000;
}

/* One user, in 9,000 processes with ten stacks each, and another user's with hundreds. */
static void budget__greedy_user_leaves_room_to_the_others(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	uint64_t hash = 1, honest = 1ULL << 40;
	uint32_t other = 1001;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	dictionary_set_users(dictionary, user_of, &other);
	for (uint32_t i = 0; i < 90000; i++)
		(void)add_plain_of(dictionary, 100 + i % 9000, hash++);
	assert_true(stats_of(dictionary).users_refused > 1000);
	assert_int_equal(stats_of(dictionary).users_refused, stats_of(dictionary).refused);
	assert_true(stats_of(dictionary).bytes <= ROOM / 2 + 1024);
	for (uint32_t i = 0; i < 300; i++)
		assert_int_equal(add_plain_of(dictionary, 77, honest + i), 0);
	/* Stacks keep their user when all is counted again. */
	dictionary_set_epoch(dictionary, 1);
	assert_int_equal(add_plain_of(dictionary, 100, hash++), -ENOSPC);
	for (uint32_t i = 300; i < 400; i++)
		assert_int_equal(add_plain_of(dictionary, 77, honest + i), 0);
}

static void make_room__greedy_ones_go_and_the_others_stay(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	const struct stack_of_four honest = {
		.record = {.hash = 1ULL << 40,
			   .id = {.tgid = 77},
			   .python_stored = 1,
			   .python_count = 1},
		.frame = {{.where = 0xc0de, .kind = PP_FRAME_PYTHON}},
	};
	uint32_t used = 0, unused = 0, next = 0;
	uint64_t hash = 1;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	dictionary_set_epoch(dictionary, 5);
	assert_int_equal(dictionary_add_code(dictionary, nobody, new_code(0xdead, "g"), &unused),
			 0);
	assert_int_equal(dictionary_add_code(dictionary, nobody, new_code(0xc0de, "f"), &used), 0);
	assert_int_equal(add_stack(dictionary, &honest), 0);
	while (!add_plain_of(dictionary, 1, hash))
		hash++;
	assert_true(hash > 1000);
	dictionary_make_room(dictionary);
	assert_non_null(dictionary_find_stack(dictionary, 1ULL << 40));
	assert_null(dictionary_find_stack(dictionary, 1));
	assert_string_equal(dictionary_code(dictionary, used)->name, "f");
	assert_null(dictionary_code(dictionary, unused));
	assert_int_equal(stats_of(dictionary).codes, 1);
	assert_true(stats_of(dictionary).bytes < 4096);
	/* The number is given again, to nobody's harm: no stack had it. */
	assert_int_equal(dictionary_add_code(dictionary, nobody, new_code(0xbeef, "h"), &next), 0);
	assert_int_equal(next, unused);
	assert_string_equal(dictionary_code(dictionary, next)->name, "h");
	assert_int_equal(add_plain_of(dictionary, 1, 1), 0);
}

/* Their numbers are used again, each once. */
static void make_room__many_code_objects_may_go_at_once(void **state)
{
	enum { CODES = 3000 };
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	static bool is_taken[CODES + 1];
	uint32_t index = 0;

	(void)state;
	memset(is_taken, 0, sizeof(is_taken));
	assert_int_equal(dictionary_new(4 * ROOM, &dictionary), 0);
	for (uint64_t i = 0; i < CODES; i++)
		assert_int_equal(
			dictionary_add_code(dictionary, nobody, new_code(1 + i, "f"), &index), 0);
	assert_int_equal(index, CODES);
	dictionary_make_room(dictionary);
	assert_null(dictionary_code(dictionary, CODES));
	for (uint64_t i = 0; i < CODES; i++) {
		assert_int_equal(dictionary_add_code(dictionary, nobody, new_code(9000 + i, "f"),
						     &index),
				 0);
		assert_in_range(index, 1, CODES);
		assert_false(is_taken[index]);
		is_taken[index] = true;
		assert_int_equal(dictionary_code(dictionary, index)->id, 9000 + i);
	}
}

/* Stacks lie by the low bits of their hashes: here all are 0, or all are 1. */
static void make_room__code_of_a_stack_stays_wherever_the_stack_lies(void **state)
{
	static const uint64_t hash[] = {1ULL << 40, (1ULL << 40) - 1};
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	uint32_t index[2];

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	for (int i = 0; i < 2; i++) {
		const struct stack_of_four stack = {
			.record = {.hash = hash[i], .python_stored = 1, .python_count = 1},
			.frame = {{.where = 0xc0de + (uint64_t)i, .kind = PP_FRAME_PYTHON}},
		};

		assert_int_equal(dictionary_add_code(dictionary, nobody,
						     new_code(stack.frame[0].where, "f"),
						     &index[i]),
				 0);
		assert_int_equal(add_stack(dictionary, &stack), 0);
	}
	dictionary_make_room(dictionary);
	for (int i = 0; i < 2; i++)
		assert_non_null(dictionary_code(dictionary, index[i]));
	/* It goes with its stack. */
	dictionary_set_epoch(dictionary, 1);
	dictionary_make_room(dictionary);
	for (int i = 0; i < 2; i++)
		assert_null(dictionary_code(dictionary, index[i]));
}

/* An address that no program has must not pass for another kind of frame. */
static void add_stack__anonymous_code_is_that_wherever_it_lies(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	const struct stack_of_four stack = {
		.record = {.hash = 5, .native_stored = 2, .native_count = 2},
		.frame = {{.where = UINT64_MAX, .kind = PP_FRAME_ANONYMOUS},
			  {.where = 0x7fffffffffff, .kind = PP_FRAME_ANONYMOUS}},
	};
	const struct dict_stack *found;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	assert_int_equal(add_stack(dictionary, &stack), 0);
	found = dictionary_find_stack(dictionary, 5);
	assert_non_null(found);
	for (int i = 0; i < 2; i++)
		assert_int_equal(packed_kind(found->frame[i]), PP_FRAME_ANONYMOUS);
	assert_int_equal(found->frame[1] & 0x7fffffffffff, 0x7fffffffffff);
}

static void make_room__what_this_epoch_did_not_use_goes(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	dictionary_set_epoch(dictionary, 5);
	assert_int_equal(add_plain(dictionary, 1), 0);
	assert_int_equal(add_plain(dictionary, 2), 0);
	assert_int_equal(add_kernel(dictionary, 3, 0xffff1), 0);
	dictionary_set_epoch(dictionary, 6);
	assert_int_equal(add_plain(dictionary, 2), 0);
	dictionary_make_room(dictionary);
	assert_null(dictionary_find_stack(dictionary, 1));
	assert_non_null(dictionary_find_stack(dictionary, 2));
	assert_null(dictionary_find_kernel(dictionary, 3));
}

/* Its code object's record came late, or was dropped with what was unused. */
static void add_stack__that_lacks_code_is_completed_when_it_comes_again(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	const struct stack_of_four stack = {
		.record = {.hash = 7, .python_stored = 1, .python_count = 1},
		.frame = {{.where = 0xc0de, .what = 3, .kind = PP_FRAME_PYTHON}},
	};
	uint32_t index;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	assert_int_equal(add_stack(dictionary, &stack), 0);
	assert_int_equal(packed_code(dictionary_find_stack(dictionary, 7)->frame[0]), 0);
	assert_int_equal(dictionary_add_code(dictionary, nobody, new_code(0xc0de, "f"), &index), 0);
	assert_int_equal(add_stack(dictionary, &stack), 0);
	assert_int_equal(packed_code(dictionary_find_stack(dictionary, 7)->frame[0]), index);
	assert_int_equal(packed_what(dictionary_find_stack(dictionary, 7)->frame[0]), 3);
}

/* Two stacks of one hash: the first one's room is not the second one's. */
static void add_stack__of_a_known_hash_and_another_length_changes_nothing(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	const struct pp_frame native = {.where = 0x400, .what = 16, .kind = PP_FRAME_NATIVE};
	struct stack_of_four stack = {
		.record = {.hash = 7, .python_stored = 1, .python_count = 1},
		.frame = {{.where = 0xc0de, .what = 3, .kind = PP_FRAME_PYTHON},
			  native,
			  native,
			  native},
	};
	const struct dict_stack *found;
	uint32_t index;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	assert_int_equal(add_stack(dictionary, &stack), 0);
	stack.record.native_stored = stack.record.native_count = 3;
	assert_int_equal(add_stack(dictionary, &stack), 0);
	found = dictionary_find_stack(dictionary, 7);
	assert_int_equal(found->native_stored, 0);
	assert_int_equal(packed_what(found->frame[0]), 3);
	/* Nor is one changed that lacks nothing. */
	stack.record.native_stored = stack.record.native_count = 0;
	assert_int_equal(dictionary_add_code(dictionary, nobody, new_code(0xc0de, "f"), &index), 0);
	assert_int_equal(add_stack(dictionary, &stack), 0);
	stack.frame[0].what = 4;
	assert_int_equal(add_stack(dictionary, &stack), 0);
	assert_int_equal(packed_what(dictionary_find_stack(dictionary, 7)->frame[0]), 3);
}

static uint32_t fake_user_of(void *context, struct pp_process_id id)
{
	(void)context;
	return id.tgid;
}

static void raw_codes__are_those_not_decoded_by_user(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	struct python_code_text text = text_of("f", 2);
	struct raw_codes *raw;
	uint32_t decoded, first, second;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	raw = dictionary_raw_codes(dictionary);
	dictionary_set_users(dictionary, fake_user_of, NULL);
	assert_int_equal(dictionary_add_code(dictionary, nobody, new_code(1, "g"), &decoded), 0);
	assert_int_equal(raw->count, 0);
	assert_int_equal(dictionary_add_code(dictionary, (struct pp_process_id){.tgid = 500},
					     raw_code(2, 8), &first),
			 0);
	assert_int_equal(dictionary_add_code(dictionary, (struct pp_process_id){.tgid = 501},
					     raw_code(3, 8), &second),
			 0);
	assert_int_equal(raw->count, 2);
	assert_int_equal(raw->waiting->user, 500);
	assert_int_equal(raw->waiting->first->index, first);
	assert_int_equal(dictionary_decode_code(dictionary, first, &text), 0);
	assert_null(text.name);
	assert_string_equal(dictionary_code(dictionary, first)->name, "f");
	assert_int_equal(dictionary_code(dictionary, first)->row[0].line, 77);
	assert_int_equal(raw->count, 1);
	assert_int_equal(raw->waiting->user, 501);
	assert_int_equal(raw->waiting->first->index, second);
	dictionary_give_up_code(dictionary, second);
	assert_null(dictionary_code(dictionary, second)->name);
	assert_int_equal(raw->count, 0);
}

/* A line table of a few bytes can have lines of many. */
static void decode_code__lines_for_which_there_is_no_room_are_the_first(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	struct python_code_text large = text_of("f", 100000), small = text_of("g", 2);
	struct dictionary_stats before;
	uint32_t first, second;

	(void)state;
	assert_int_equal(dictionary_new(8192, &dictionary), 0);
	assert_int_equal(dictionary_add_code(dictionary, nobody, raw_code(2, 8), &first), 0);
	assert_int_equal(dictionary_add_code(dictionary, nobody, raw_code(3, 8), &second), 0);
	before = stats_of(dictionary);
	assert_int_equal(dictionary_decode_code(dictionary, first, &large), 0);
	assert_string_equal(dictionary_code(dictionary, first)->name, "f");
	assert_int_equal(dictionary_code(dictionary, first)->row_count, 0);
	assert_int_equal(stats_of(dictionary).refused, before.refused + 1);
	assert_int_equal(stats_of(dictionary).bytes, before.bytes);
	assert_int_equal(dictionary_decode_code(dictionary, second, &small), 0);
	assert_int_equal(dictionary_code(dictionary, second)->row_count, 2);
	assert_int_equal(stats_of(dictionary).refused, before.refused + 1);
	assert_true(stats_of(dictionary).bytes > before.bytes);
}

/* A byte of a name becomes up to three. */
static void decode_code__names_for_which_there_is_no_room_are_given_up(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	char name[2000];
	struct python_code_text large, fits;
	struct dictionary_stats before;
	uint32_t first, second;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	large = text_of(name, 100);
	name[1000] = '\0';
	fits = text_of(name, 2000);
	assert_int_equal(dictionary_new(4096, &dictionary), 0);
	assert_int_equal(dictionary_add_code(dictionary, nobody, raw_code(2, 8), &first), 0);
	assert_int_equal(dictionary_add_code(dictionary, nobody, raw_code(3, 8), &second), 0);
	dictionary_set_max_bytes(dictionary, stats_of(dictionary).bytes * 2 + 2500);
	before = stats_of(dictionary);
	assert_int_equal(dictionary_decode_code(dictionary, first, &large), -ENOSPC);
	assert_null(dictionary_code(dictionary, first)->name);
	assert_null(dictionary_code(dictionary, first)->filename);
	assert_null(dictionary_code(dictionary, first)->row);
	assert_int_equal(dictionary_code(dictionary, first)->row_count, 0);
	assert_int_equal(stats_of(dictionary).refused, before.refused + 1);
	assert_int_equal(stats_of(dictionary).bytes, before.bytes);
	/* Names are taken before lines, and are accounted for. */
	assert_int_equal(dictionary_decode_code(dictionary, second, &fits), 0);
	assert_int_equal(strlen(dictionary_code(dictionary, second)->name), 1000);
	assert_int_equal(dictionary_code(dictionary, second)->row_count, 0);
	assert_int_equal(stats_of(dictionary).refused, before.refused + 2);
	assert_in_range(stats_of(dictionary).bytes, before.bytes + 900, before.bytes + 1100);
	assert_int_equal(dictionary_raw_codes(dictionary)->count, 0);
}

static void has_raw__while_a_code_object_of_the_stack_is_not_decoded(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	struct python_code_text text = text_of("f", 2);
	const struct stack_of_four stack = {
		.record = {.hash = 7, .python_count = 2, .python_stored = 2},
		.frame = {{.where = 1, .kind = PP_FRAME_PYTHON},
			  {.where = 2, .kind = PP_FRAME_PYTHON}},
	};
	uint32_t first, second;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	assert_int_equal(dictionary_add_code(dictionary, nobody, new_code(1, "g"), &first), 0);
	assert_int_equal(dictionary_add_code(dictionary, nobody, raw_code(2, 8), &second), 0);
	assert_int_equal(add_stack(dictionary, &stack), 0);
	assert_true(dictionary_has_raw(dictionary, dictionary_find_stack(dictionary, 7)));
	assert_int_equal(dictionary_decode_code(dictionary, second, &text), 0);
	assert_false(dictionary_has_raw(dictionary, dictionary_find_stack(dictionary, 7)));
}

static void make_room__code_that_is_not_decoded_may_go(void **state)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	uint32_t index;

	(void)state;
	assert_int_equal(dictionary_new(ROOM, &dictionary), 0);
	assert_int_equal(dictionary_add_code(dictionary, nobody, raw_code(2, 8), &index), 0);
	dictionary_make_room(dictionary);
	assert_int_equal(dictionary_raw_codes(dictionary)->count, 0);
	assert_null(dictionary_raw_codes(dictionary)->waiting);
	assert_int_equal(dictionary_add_code(dictionary, nobody, raw_code(3, 8), &index), 0);
	assert_int_equal(dictionary_raw_codes(dictionary)->waiting->first->index, index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packed_native__keeps_file_and_address),
		cmocka_unit_test(raw_codes__are_those_not_decoded_by_user),
		cmocka_unit_test(decode_code__lines_for_which_there_is_no_room_are_the_first),
		cmocka_unit_test(decode_code__names_for_which_there_is_no_room_are_given_up),
		cmocka_unit_test(has_raw__while_a_code_object_of_the_stack_is_not_decoded),
		cmocka_unit_test(make_room__code_that_is_not_decoded_may_go),
		cmocka_unit_test(packed_native__too_large_parts_do_not_touch_each_other),
		cmocka_unit_test(note_files__those_that_native_frames_name),
		cmocka_unit_test(find_frames__those_in_the_files_asked_for),
		cmocka_unit_test(packed_python__keeps_code_and_instruction),
		cmocka_unit_test(add_stack__keeps_both_areas_and_what_is_told_of_them),
		cmocka_unit_test(add_stack__many_survive_growth),
		cmocka_unit_test(add_stack__same_hash_is_kept_once),
		cmocka_unit_test(set_epoch__entries_not_sent_in_two_epochs_go),
		cmocka_unit_test(add_alias__leads_to_the_stack_while_it_is_used),
		cmocka_unit_test(add_alias__asks_again_for_a_torn_stack_until_a_whole_one_comes),
		cmocka_unit_test(add_alias__gives_up_a_stack_that_is_always_torn),
		cmocka_unit_test(set_epoch__wraps),
		cmocka_unit_test(set_epoch__keeps_code_objects_and_frees_room),
		cmocka_unit_test(add_code__same_id_is_one_code),
		cmocka_unit_test(add_code__many_survive_growth),
		cmocka_unit_test(add_stack__unknown_code_has_index_0_and_is_counted),
		cmocka_unit_test(add_stack__raw_code_is_asked_from_the_reader),
		cmocka_unit_test(add_stack__raw_code_that_cannot_be_read_is_unknown),
		cmocka_unit_test(budget__what_does_not_fit_is_refused_and_counted),
		cmocka_unit_test(budget__expiry_makes_room),
		cmocka_unit_test(budget__greedy_processes_leave_room_to_the_others),
		cmocka_unit_test(budget__greedy_user_leaves_room_to_the_others),
		cmocka_unit_test(make_room__greedy_ones_go_and_the_others_stay),
		cmocka_unit_test(make_room__many_code_objects_may_go_at_once),
		cmocka_unit_test(make_room__code_of_a_stack_stays_wherever_the_stack_lies),
		cmocka_unit_test(add_stack__anonymous_code_is_that_wherever_it_lies),
		cmocka_unit_test(make_room__what_this_epoch_did_not_use_goes),
		cmocka_unit_test(add_stack__that_lacks_code_is_completed_when_it_comes_again),
		cmocka_unit_test(add_stack__of_a_known_hash_and_another_length_changes_nothing),
	};

	return cmocka_run_group_tests_name("drain/dictionary", tests, NULL, NULL);
}
