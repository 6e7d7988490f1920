/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/code.bpf.h: what is sent of a code object, and when. */
#include "host.h"
#include "python.h"

#include <sys/mman.h>
#include <unistd.h>

#include "python/python_code.h"

static void walk(void)
{
	if (walk_python_begin(0))
		return;
	while (!python_step())
		continue;
}

/* Walks a thread whose only frame runs the code. */
static void walk_frame_of(uint64_t code)
{
	put_word(state_address + TS_FRAME, new_frame(code, 0, 0));
	walk();
}

static uint64_t describe(uint64_t code)
{
	host->walk.code_address = code;
	/* As the next walk would: the memo of this one does not answer. */
	host->walk.started_ns++;
	assert_int_equal(walk_code(0), 0);
	return host->walk.code_id;
}

static void code__is_sent_once_and_whole(void **state)
{
	const struct pp_code_record *record;
	uint64_t code, id;

	(void)state;
	code = new_code("Job.run", 42);
	id = describe(code);
	assert_int_equal(host->record_count, 1);
	assert_ptr_equal(host->record[0].ring, &stacks);
	record = host->record[0].data;
	assert_int_equal(host->record[0].size, sizeof(*record) + 7 + 11 + 3);
	assert_int_equal(record->record.size, host->record[0].size);
	assert_int_equal(record->id, id);
	assert_int_not_equal(id, 0);
	assert_int_equal(record->address, code);
	assert_int_equal(record->process.tgid, 70);
	assert_int_equal(record->first_line, 42);
	assert_int_equal(record->code_flags, 0x43);
	assert_int_equal(record->python, 1);
	assert_int_equal(record->flags, 0);
	assert_int_equal(record->name_kind, 1);
	assert_int_equal(record->filename_kind, 1);
	assert_int_equal(record->line_table_bytes, 3);
	assert_memory_equal(record->bytes, "Job.run/srv/app.py\x80\x01\x02", 21);
	assert_int_equal(describe(code), id);
	assert_int_equal(host->record_count, 1);
}

static void code__same_content_elsewhere_has_the_same_id(void **state)
{
	uint64_t first, id;

	(void)state;
	first = new_code("Job.run", 42);
	id = describe(first);
	/* The body of another lies in the buffer in between: old bytes must not count. */
	describe(new_code("a_much_longer_name_than_the_first_one", 42));
	assert_int_equal(describe(new_code("Job.run", 42)), id);
	assert_int_equal(host->record_count, 2);
	host->walk.context.code_space = 10;
	assert_int_equal(describe(first), id);
	assert_int_equal(host->record_count, 2);
}

/* Its content can be made such that any id comes out. */
static void code__of_another_user_has_another_id(void **state)
{
	uint64_t id;

	(void)state;
	host->walk.user_key = pp_user_key(1000, 0x123456789abcdef1);
	id = describe(new_code("Job.run", 42));
	host->walk.user_key = pp_user_key(1001, 0x123456789abcdef1);
	assert_int_not_equal(describe(new_code("Job.run", 42)), id);
	host->walk.user_key = pp_user_key(1000, 0x123456789abcdef1);
	assert_int_equal(describe(new_code("Job.run", 42)), id);
}

static void code__each_part_of_the_content_changes_the_id(void **state)
{
	uint64_t id, code;

	(void)state;
	id = describe(new_code("Job.run", 42));
	assert_int_not_equal(describe(new_code("Job.ruN", 42)), id);
	assert_int_not_equal(describe(new_code("Job.run", 43)), id);
	code = new_code("Job.run", 42);
	put_word(code + CODE_FILENAME, new_string("/srv/app.pz"));
	assert_int_not_equal(describe(code), id);
	code = new_code("Job.run", 42);
	put_word(code + CODE_LINES, new_line_table("\x80\x01\x03", 3));
	assert_int_not_equal(describe(code), id);
	code = new_code("Job.run", 42);
	put_u32(code + CODE_FLAGS, 0x63);
	assert_int_not_equal(describe(code), id);
	assert_int_equal(host->record_count, 6);
}

static void code__new_one_at_a_known_address_is_sent(void **state)
{
	uint64_t code, id;

	(void)state;
	code = new_code("Job.run", 42);
	id = describe(code);
	put_word(code + CODE_NAME, new_string("other"));
	put_word(code + CODE_QUALNAME, new_string("Job.other"));
	assert_int_not_equal(describe(code), id);
	assert_int_equal(host->record_count, 2);
	/* The same function, compiled anew. */
	id = host->walk.code_id;
	put_word(code + CODE_LINES, new_line_table("\x80\x05\x06", 3));
	assert_int_not_equal(describe(code), id);
	assert_int_equal(host->record_count, 3);
}

static void code__long_parts_are_cut_and_marked(void **state)
{
	static char name[PP_MAX_NAME_BYTES + 200], lines[PP_MAX_LINE_TABLE_BYTES + 77];
	const struct pp_code_record *record;
	uint64_t code;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	memset(lines, 7, sizeof(lines));
	code = new_code(name, 1);
	put_word(code + CODE_LINES, new_line_table(lines, sizeof(lines)));
	describe(code);
	record = host->record[0].data;
	assert_int_equal(record->flags, PP_CODE_TRUNCATED);
	assert_int_equal(record->name_bytes, PP_MAX_NAME_BYTES);
	assert_int_equal(record->filename_bytes, 11);
	assert_int_equal(record->line_table_bytes, PP_MAX_LINE_TABLE_BYTES);
	/* The agent reads the rest from the live process: soon. */
	assert_int_equal(host->record[0].flags, BPF_RB_FORCE_WAKEUP);
}

static void code__wide_names_tell_their_kind(void **state)
{
	const struct pp_code_record *record;
	uint64_t code, name;

	(void)state;
	code = new_code("-", 1);
	name = heap_take(128);
	put_word(name + STR_LENGTH, 3);
	put_u32(name + STR_STATE, 2 << 2);
	put_bytes(name + STR_COMPACT, "\x31\x04\x32\x04\x33\x04", 6);
	put_word(code + CODE_QUALNAME, name);
	describe(code);
	record = host->record[0].data;
	assert_int_equal(record->name_kind, 2);
	assert_int_equal(record->name_bytes, 6);
	assert_memory_equal(record->bytes, "\x31\x04\x32\x04\x33\x04", 6);
}

static void code__byte_names_of_2_7(void **state)
{
	const struct pp_code_record *record;
	uint64_t code, name;

	(void)state;
	python_begin(PP_CHAIN_FRAME_OBJECT, 7);
	host->python.major = 2;
	host->python.flags = PP_PYTHON_BYTES_NAMES | PP_PYTHON_LASTI;
	host->python.code_qualname = PP_NO_OFFSET;
	code = new_code("-", 1);
	name = heap_take(128);
	put_word(name + STR_LENGTH, 4);
	put_bytes(name + STR_ASCII, "old\xe9", 4);
	put_word(code + CODE_NAME, name);
	describe(code);
	record = host->record[0].data;
	assert_int_equal(record->name_kind, 1);
	assert_memory_equal(record->bytes, "old\xe9", 4);
}

static void code__that_is_not_resident_is_left_to_the_agent(void **state)
{
	uint64_t code;

	(void)state;
	code = new_code("a", 1);
	put_fault(code, 8);
	walk_frame_of(code);
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_ROOT);
	assert_frame(python_frame(0), PP_FRAME_PYTHON_RAW, code, CODE_ADAPTIVE + 100);
	assert_int_equal(host->record_count, 0);
}

/* Each field may lie in the last word that is read of an object, and none behind it. */
static void code__fields_may_lie_in_the_last_word_that_is_read(void **state)
{
	static const struct {
		uint16_t offset;
		uint32_t record_count;
	} cases[] = {{PP_CODE_READ_BYTES - 8, 1}, {PP_CODE_READ_BYTES - 7, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t code;

		host_teardown(NULL);
		host_setup(NULL);
		python_begin(PP_CHAIN_SHIM, 13);
		host->python.code_line_table = cases[i].offset;
		code = new_code("a", 1);
		put_word(code + cases[i].offset, new_line_table("\x80\x01\x02", 3));
		walk_frame_of(code);
		assert_int_equal(host->record_count, cases[i].record_count);
		if (cases[i].record_count) {
			const struct pp_code_record *record = host->record[0].data;

			assert_int_equal(record->line_table_bytes, 3);
		}
	}
}

/* Its line table's pointer is the last field that is used. */
static void code__may_end_where_its_page_does(void **state)
{
	uint64_t code;

	(void)state;
	code = new_code("a", 1);
	put_fault(code + CODE_LINES + 8, 8);
	walk_frame_of(code);
	assert_python(0, "a", CODE_ADAPTIVE + 100);
}

static void code__whose_name_cannot_be_read_is_counted(void **state)
{
	uint64_t code, name;

	(void)state;
	code = new_code("a", 1);
	name = new_string("gone");
	put_word(code + CODE_QUALNAME, name);
	put_fault(name, 8);
	walk_frame_of(code);
	assert_frame(python_frame(0), PP_FRAME_PYTHON_RAW, code, CODE_ADAPTIVE + 100);
	assert_int_equal(host->losses[PP_LOSS_CODE_FAULT], 1);
}

static void code__that_does_not_fit_into_the_ring_is_sent_later(void **state)
{
	uint64_t code;

	(void)state;
	code = new_code("a", 1);
	host->ring_is_full = true;
	assert_int_equal(describe(code), 0);
	assert_int_equal(host->losses[PP_LOSS_RING_FULL], 1);
	host->ring_is_full = false;
	assert_int_not_equal(describe(code), 0);
	assert_int_equal(host->record_count, 1);
}

static void code__table_that_is_busy_is_counted(void **state)
{
	uint64_t code, id;

	(void)state;
	code = new_code("a", 1);
	host->codes.refuses = -EBUSY;
	id = describe(code);
	assert_int_not_equal(id, 0);
	assert_int_equal(host->losses[PP_LOSS_CODES_BUSY], 1);
	/* Described again, not sent again. */
	assert_int_equal(describe(code), id);
	assert_int_equal(host->record_count, 1);
}

/* Stacks that the agent finishes hold codes that either side has read. */
static void code__has_the_id_that_the_agent_gives_it(void **state)
{
	OWNED(python_code) struct python_code *code = NULL;
	char name[PP_MAX_NAME_BYTES + 100];
	uint64_t short_code, long_code;
	void *memory;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	/* With 11 bytes of a file's name and 3 of lines that is a whole number of words. */
	short_code = new_code("outer.<locals>.inner_twice", 7);
	long_code = new_code(name, 8);
	put_word(state_address + TS_FRAME, new_frame(short_code, new_frame(long_code, 0, 0), 0));
	host->walk.user_key = pp_user_key(1000, 0x123456789abcdef1);
	walk();
	/* The target's memory is our own, at the same addresses. */
	memory = mmap((void *)HEAP, HEAP_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	assert_ptr_equal(memory, HEAP);
	memcpy(memory, host->region[1].bytes, HEAP_BYTES);
	assert_int_equal(python_code_read(getpid(), &host->python, INTERPRETER, short_code,
					  host->walk.user_key, &code),
			 0);
	assert_int_equal(host->walk.out.frame[0].where, code->id);
	python_code_free(TAKE(code));
	assert_int_equal(python_code_read(getpid(), &host->python, INTERPRETER, long_code,
					  host->walk.user_key, &code),
			 0);
	assert_int_equal(host->walk.out.frame[1].where, code->id);
	munmap(memory, HEAP_BYTES);
}

static int shim_setup(void **state)
{
	const int err = host_setup(state);

	if (!err)
		python_begin(PP_CHAIN_SHIM, 13);
	return err;
}
#define shim_test(test) cmocka_unit_test_setup_teardown(test, shim_setup, host_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		shim_test(code__is_sent_once_and_whole),
		shim_test(code__same_content_elsewhere_has_the_same_id),
		shim_test(code__of_another_user_has_another_id),
		shim_test(code__each_part_of_the_content_changes_the_id),
		shim_test(code__new_one_at_a_known_address_is_sent),
		shim_test(code__long_parts_are_cut_and_marked),
		shim_test(code__wide_names_tell_their_kind),
		host_test(code__byte_names_of_2_7),
		shim_test(code__that_is_not_resident_is_left_to_the_agent),
		host_test(code__fields_may_lie_in_the_last_word_that_is_read),
		shim_test(code__may_end_where_its_page_does),
		shim_test(code__whose_name_cannot_be_read_is_counted),
		shim_test(code__that_does_not_fit_into_the_ring_is_sent_later),
		shim_test(code__table_that_is_busy_is_counted),
		shim_test(code__has_the_id_that_the_agent_gives_it),
	};

	return cmocka_run_group_tests_name("bpf/code_record", tests, NULL, NULL);
}
