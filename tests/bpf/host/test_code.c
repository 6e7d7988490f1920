/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/code.bpf.h: the bounds of a code object's record, when it is sent again, and the memo of
 * objects seen lately. */
#include "host.h"
#include "python.h"

static void walk(void)
{
	assert_int_equal(walk_python_begin(0), 0);
	while (!python_step())
		continue;
}

static uint64_t describe(uint64_t code)
{
	host->walk.code_address = code;
	assert_int_equal(walk_code(0), 0);
	return host->walk.code_id;
}

/* What just fits is whole. */
static void code__parts_of_the_largest_size_are_whole(void **state)
{
	static char name[PP_MAX_NAME_BYTES + 1], lines[PP_MAX_LINE_TABLE_BYTES];
	const struct pp_code_record *record;
	uint64_t code;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	memset(name, 'n', sizeof(name) - 1);
	memset(lines, 7, sizeof(lines));
	code = new_code(name, 1);
	put_word(code + CODE_LINES, new_line_table(lines, sizeof(lines)));
	describe(code);
	record = host->record[0].data;
	assert_int_equal(record->flags, 0);
	assert_int_equal(record->name_bytes, PP_MAX_NAME_BYTES);
	assert_int_equal(record->line_table_bytes, PP_MAX_LINE_TABLE_BYTES);
	assert_int_not_equal(host->record[0].flags, BPF_RB_FORCE_WAKEUP);
}

/* One byte more of either part. */
static void code__either_part_that_is_cut_is_marked(void **state)
{
	static char name[PP_MAX_NAME_BYTES + 2], lines[PP_MAX_LINE_TABLE_BYTES + 1];
	const struct pp_code_record *record;
	uint64_t code;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	memset(name, 'n', sizeof(name) - 1);
	describe(new_code(name, 1));
	record = host->record[0].data;
	assert_int_equal(record->flags, PP_CODE_TRUNCATED);
	assert_int_equal(record->name_bytes, PP_MAX_NAME_BYTES);
	code = new_code("a", 1);
	put_word(code + CODE_LINES, new_line_table(lines, sizeof(lines)));
	describe(code);
	record = host->record[1].data;
	assert_int_equal(record->flags, PP_CODE_TRUNCATED);
	assert_int_equal(record->line_table_bytes, PP_MAX_LINE_TABLE_BYTES);
}

/* The record of a whole object says nothing of the truncated one before it. */
static void code__record_is_its_own(void **state)
{
	static char name[PP_MAX_NAME_BYTES + 2];
	const struct pp_code_record *record;
	uint64_t code;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	memset(name, 'n', sizeof(name) - 1);
	memset(&host->walk.code_out, 0xff, sizeof(host->walk.code_out));
	describe(new_code(name, 1));
	code = new_code("a", 7);
	describe(code);
	record = host->record[1].data;
	assert_int_equal(record->flags, 0);
	assert_int_equal(record->pad, 0);
	assert_int_equal(record->address, code);
	assert_int_equal(record->first_line, 7);
	assert_int_equal(record->name_bytes, 1);
	assert_int_equal(record->filename_bytes, 11);
	assert_int_equal(record->process.generation, 3);
	assert_int_equal(host->record[1].size, sizeof(*record) + 1 + 11 + 3);
	assert_memory_equal(record->bytes, "a/srv/app.py\x80\x01\x02", 15);
}

/* Another object at a known address, of which one thing only is another. */
static void code__each_part_of_the_head_tells_objects_apart(void **state)
{
	uint64_t code, id;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	code = new_code("Job.run", 42);
	id = describe(code);
	put_u32(code + CODE_FIRST_LINE, 43);
	assert_int_not_equal(describe(code), id);
	put_u32(code + CODE_FIRST_LINE, 42);
	put_word(code + CODE_FILENAME, new_string("/srv/other.py"));
	assert_int_not_equal(describe(code), id);
	assert_int_equal(host->record_count, 3);
}

/* Names, files and line tables are interned: objects of two places may share them, lambdas of two
 * classes do. */
static void code__objects_that_share_their_parts_are_told_apart(void **state)
{
	uint64_t one, other, id;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	one = new_code("A.<lambda>", 42);
	other = new_code("B.<lambda>", 42);
	for (int i = 0; i < 3; i++) {
		static const uint16_t fields[] = {CODE_NAME, CODE_FILENAME, CODE_LINES};
		uint64_t part;

		memcpy(&part, memory_at(one + fields[i], sizeof(part)), sizeof(part));
		put_word(other + fields[i], part);
	}
	id = describe(one);
	assert_int_not_equal(describe(other), id);
	assert_int_equal(host->record_count, 2);
	assert_int_equal(describe(one), id);
}

/* Another process may have another object at the same addresses. */
static void code__addresses_say_something_in_one_process_only(void **state)
{
	uint64_t code, name, id;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	code = new_code("Job.run", 42);
	id = describe(code);
	memcpy(&name, memory_at(code + CODE_QUALNAME, sizeof(name)), sizeof(name));
	put_bytes(name + STR_ASCII, "Job.ran", 7);
	host->walk.context.code_space++;
	assert_int_not_equal(describe(code), id);
	assert_int_equal(host->record_count, 2);
}

/* Pages of the other parts may be missing: what was there is sent, the agent reads the rest. */
static void code__without_filename_or_lines_is_sent(void **state)
{
	static const struct {
		uint64_t field;
		uint32_t filename_bytes, line_table_bytes;
	} cases[] = {{CODE_FILENAME, 0, 3}, {CODE_LINES, 11, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int is_null = 0; is_null < 2; is_null++) {
			const struct pp_code_record *record;
			uint64_t code;

			host_teardown(NULL);
			host_setup(NULL);
			python_begin(PP_CHAIN_SHIM, 13);
			code = new_code("a", 1);
			put_word(code + cases[i].field, is_null ? 0 : 0x1000);
			assert_int_not_equal(describe(code), 0);
			assert_int_equal(host->record_count, 1);
			record = host->record[0].data;
			assert_int_equal(record->name_bytes, 1);
			assert_int_equal(record->filename_bytes, cases[i].filename_bytes);
			assert_int_equal(record->line_table_bytes, cases[i].line_table_bytes);
			assert_int_equal(host->record[0].size, sizeof(*record) + 1 +
								       cases[i].filename_bytes +
								       cases[i].line_table_bytes);
		}
}

/* In a new epoch each object is sent once more. */
static void code__is_sent_in_each_epoch(void **state)
{
	uint64_t id;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	host->config.epoch = 5;
	id = describe(new_code("Job.run", 42));
	assert_int_equal(describe(new_code("Job.run", 42)), id);
	assert_int_equal(host->record_count, 1);
	host->config.epoch = 6;
	assert_int_equal(describe(new_code("Job.run", 42)), id);
	assert_int_equal(describe(new_code("Job.run", 42)), id);
	assert_int_equal(host->record_count, 2);
}

/* ---- the memo of code objects ---- */

/* Walks a stack of one frame; `is_next`: as the walk after the last one. */
static void walk_again(uint64_t frame, bool is_next)
{
	host->walk.started_ns += is_next;
	host->walk.python_count = host->walk.python_stored = 0;
	put_word(state_address + TS_FRAME, frame);
	walk();
	assert_int_equal(host->walk.python_count, 1);
}

/* The object at a known address is another one when a field that guards it changed; the same walk
 * need not look twice. */
static void memo__holds_while_the_object_is_the_same(void **state)
{
	static const uint64_t guards[] = {CODE_QUALNAME, CODE_LINES};
	uint64_t code, frame, reads;

	(void)state;
	for (size_t i = 0; i < sizeof(guards) / sizeof(guards[0]); i++) {
		host_teardown(NULL);
		host_setup(NULL);
		python_begin(PP_CHAIN_SHIM, 13);
		host->walk.started_ns = 100;
		code = new_code("a", 1);
		frame = new_frame(code, 0, 0);
		walk_again(frame, true);
		assert_int_equal(host->record_count, 1);
		reads = host->user_reads;
		walk_again(frame, false);
		reads = host->user_reads - reads;
		/* Another walk reads the guard and nothing else. */
		host->user_reads = 0;
		walk_again(frame, true);
		assert_int_equal(host->user_reads, reads + 1);
		host->user_reads = 0;
		walk_again(frame, false);
		assert_int_equal(host->user_reads, reads);
		assert_int_equal(host->record_count, 1);
		put_word(code + guards[i], guards[i] == CODE_LINES
						   ? new_line_table("\x80\x07\x08", 3)
						   : new_string("b"));
		/* The table `codes` does not look at the qualified name. */
		memset(host->codes.entry, 0, sizeof(host->codes.entry));
		walk_again(frame, false);
		assert_int_equal(host->record_count, 1);
		walk_again(frame, true);
		assert_int_equal(host->record_count, 2);
	}
}

/* In another process an address says something else. */
static void memo__is_of_one_code_space(void **state)
{
	uint64_t frame, first;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	frame = new_frame(new_code("a", 1), 0, 0);
	walk_again(frame, true);
	first = host->user_reads;
	host->walk.context.code_space++;
	host->user_reads = 0;
	walk_again(frame, false);
	/* Read in full once more. */
	assert_int_equal(host->user_reads, first);
}

static void memo__codes_spread_over_it(void **state)
{
	static const uint64_t strides[] = {16, 0x90, 0x200, 0x1000};

	(void)state;
	for (size_t i = 0; i < sizeof(strides) / sizeof(strides[0]); i++) {
		bool is_used[WALK_CODES] = {false};
		uint32_t used = 0;

		for (uint32_t k = 0; k < 4 * WALK_CODES; k++) {
			size_t at = (size_t)(memo_of(&host->walk, HEAP + k * strides[i]) -
					     host->walk.memo);

			assert_true(at < WALK_CODES);
			used += !is_used[at];
			is_used[at] = true;
		}
		if (used < WALK_CODES * 3 / 4)
			fail_msg("stride %u: %u entries", (uint32_t)strides[i], used);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(code__parts_of_the_largest_size_are_whole),
		host_test(code__either_part_that_is_cut_is_marked),
		host_test(code__record_is_its_own),
		host_test(code__each_part_of_the_head_tells_objects_apart),
		host_test(code__objects_that_share_their_parts_are_told_apart),
		host_test(code__addresses_say_something_in_one_process_only),
		host_test(code__without_filename_or_lines_is_sent),
		host_test(code__is_sent_in_each_epoch),
		host_test(memo__holds_while_the_object_is_the_same),
		host_test(memo__is_of_one_code_space),
		host_test(memo__codes_spread_over_it),
	};

	return cmocka_run_group_tests_name("bpf/code", tests, NULL, NULL);
}
