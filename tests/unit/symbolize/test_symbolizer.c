/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/symbolizer.h"

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "symbolize/stitch.h"

#define PYTHON_FILE 16U
#define LIB_FILE 17U
#define MAX_FRAMES 16U

static const struct pp_process_id process_id = {.tgid = 70, .generation = 3};

/* Sources that answer from their arguments: 0x100 in the interpreter is _PyEval_Vector, in the
 * library addresses from 0x1000 on have no name. */
struct fixture {
	struct intern *strings;
	struct dictionary *dictionary;
	struct symbolizer *symbolizer;
	unsigned int native_calls, addresses_asked;
	unsigned int code_calls, code_requests; /* so many slices end before all are decoded */
	uint32_t anonymous_tgid;
	char text[1024];
};

static void fake_native(void *context, uint32_t file, const uint64_t *address, size_t n,
			struct symbol *ret)
{
	struct fixture *fixture = context;

	fixture->native_calls++;
	fixture->addresses_asked += (unsigned int)n;
	for (size_t i = 0; i < n; i++) {
		if (i)
			assert_true(address[i - 1] <= address[i]);
		if (file == PYTHON_FILE)
			ret[i] = (struct symbol){
				address[i] == 0x100 ? "_PyEval_Vector" : "list_sort", ""};
		else if (address[i] >= 0x1000)
			ret[i] = (struct symbol){"[libfast.so]", ""};
		else
			ret[i] = (struct symbol){"fast::run()", "_ZN4fast3runEv"};
	}
}

static void fake_kernel(void *context, uint64_t address, const char **ret_name,
			const char **ret_module)
{
	(void)context;
	*ret_name = address == 0xffff1000 ? "do_syscall_64" : "ext4_read";
	*ret_module = "";
}

static bool fake_anonymous(void *context, struct pp_process_id id, uint64_t address,
			   const char **ret_name)
{
	struct fixture *fixture = context;

	fixture->anonymous_tgid = id.tgid;
	if (address != 0x7f0000001000)
		return false;
	*ret_name = "jitted";
	return true;
}

static bool fake_codes(void *context, const struct slice *slice)
{
	struct fixture *fixture = context;

	fixture->code_calls++;
	return slice && fixture->code_calls <= fixture->code_requests;
}

static uint32_t fake_module(void *context, uint32_t file)
{
	(void)context;
	return file == PP_FILE_NONE ? 1 : file == PP_FILE_ANONYMOUS ? 2 : file;
}

static bool fake_is_interpreter(void *context, uint32_t file)
{
	(void)context;
	return file == PYTHON_FILE;
}

static bool fake_has_one_frame_segments(void *context, uint8_t python)
{
	(void)context;
	return python == 2;
}

static void open_fixture(struct fixture *fixture, bool raw, bool no_native)
{
	const struct symbolizer_sources sources = {
		.context = fixture,
		.native = fake_native,
		.kernel = fake_kernel,
		.anonymous = fake_anonymous,
		.codes = fake_codes,
		.module = fake_module,
		.is_interpreter = fake_is_interpreter,
		.has_one_frame_segments = fake_has_one_frame_segments,
	};
	const struct symbolizer_options options = {.raw = raw, .no_native = no_native};

	memset(fixture, 0, sizeof(*fixture));
	assert_int_equal(intern_new(&fixture->strings), 0);
	assert_int_equal(dictionary_new(1 << 20, &fixture->dictionary), 0);
	assert_int_equal(symbolizer_new(fixture->strings, fixture->dictionary, &sources, &options,
					&fixture->symbolizer),
			 0);
}

static void close_fixture(struct fixture *fixture)
{
	symbolizer_free(fixture->symbolizer);
	dictionary_free(fixture->dictionary);
	intern_free(fixture->strings);
}

static uint32_t add_code(struct fixture *fixture, const char *name, uint32_t first_line)
{
	struct python_code *code = calloc(1, sizeof(*code));
	uint32_t index = 0;

	assert_non_null(code);
	code->id = 0x1000 + first_line;
	code->name = strdup(name);
	code->filename = strdup("/srv/app.py");
	code->first_line = first_line;
	code->major = 3;
	code->minor = 9;
	/* From lasti 10 on: the next line. */
	code->row = calloc(2, sizeof(*code->row));
	assert_non_null(code->row);
	code->row[0] = (struct line_row){.start = 0, .line = first_line};
	code->row[1] = (struct line_row){.start = 10, .line = first_line + 1};
	code->row_count = 2;
	assert_int_equal(dictionary_add_code(fixture->dictionary, (struct pp_process_id){}, code,
					     &index),
			 0);
	return index;
}

/* Python frames first; the stack is whole. */
struct built {
	union {
		struct dict_stack stack;
		uint8_t bytes[sizeof(struct dict_stack) + MAX_FRAMES * sizeof(packed_frame)];
	};
};

static void build(struct built *built, uint16_t python, uint16_t native, const packed_frame *frame)
{
	memset(built, 0, sizeof(*built));
	built->stack.stop = PP_STOP_ROOT;
	built->stack.py_stop = PP_PY_STOP_ROOT;
	built->stack.python = 1;
	built->stack.python_stored = python;
	built->stack.python_count = python;
	built->stack.native_stored = native;
	built->stack.native_count = native;
	memcpy(built->stack.frame, frame, (size_t)(python + native) * sizeof(*frame));
}

#define NATIVE(file, address) packed_native(PP_FRAME_NATIVE, file, address)
#define EVAL(address) packed_native(PP_FRAME_EVAL, PYTHON_FILE, address)
#define ANONYMOUS(address) ((uint64_t)PP_FRAME_ANONYMOUS << 61 | (address))
#define RUN(count) ((uint64_t)PP_FRAME_SEGMENT << 61 | (count))

static const char *name_of(const struct fixture *fixture, const struct frame *frame)
{
	return intern_get(fixture->strings, frame->name, NULL);
}

/* Names of the frames of a stack that was noted and resolved, leaf first, one a line. */
static const char *names(struct fixture *fixture, const struct dict_stack *user,
			 const struct dict_kernel *kernel)
{
	const struct frame *frame;
	size_t count, at = 0;

	if (user)
		assert_int_equal(symbolizer_note(fixture->symbolizer, user), 0);
	assert_int_equal(symbolizer_resolve_slice(fixture->symbolizer, NULL), 0);
	assert_int_equal(
		symbolizer_stack(fixture->symbolizer, process_id, user, kernel, &frame, &count), 0);
	fixture->text[0] = '\0';
	for (size_t i = 0; i < count; i++)
		at += (size_t)snprintf(fixture->text + at, sizeof(fixture->text) - at, "%s%s",
				       i ? "\n" : "", name_of(fixture, &frame[i]));
	return fixture->text;
}

static void symbolizer_stack__python_frame_has_name_file_and_lines(void **state)
{
	const struct frame *frame;
	struct fixture fixture;
	struct built built;
	size_t count;

	(void)state;
	open_fixture(&fixture, false, false);
	const packed_frame frames[] = {packed_python(add_code(&fixture, "Job.run", 40), 12),
				       packed_python(add_code(&fixture, "main", 7), 4)};
	build(&built, 2, 0, frames);
	assert_int_equal(symbolizer_stack(fixture.symbolizer, process_id, &built.stack, NULL,
					  &frame, &count),
			 0);
	assert_int_equal(count, 2);
	assert_int_equal(frame[0].kind, FRAME_PYTHON);
	assert_string_equal(name_of(&fixture, &frame[0]), "Job.run");
	assert_string_equal(intern_get(fixture.strings, frame[0].file, NULL), "/srv/app.py");
	assert_int_equal(frame[0].line, 41);
	assert_int_equal(frame[0].start_line, 40);
	assert_int_equal(frame[1].line, 7);
	close_fixture(&fixture);
}

static void symbolizer_stack__native_frame_has_both_names_module_and_address(void **state)
{
	const packed_frame frames[] = {NATIVE(LIB_FILE, 0x123)};
	const struct frame *frame;
	struct fixture fixture;
	struct built built;
	size_t count;

	(void)state;
	open_fixture(&fixture, false, false);
	build(&built, 0, 1, frames);
	assert_string_equal(names(&fixture, &built.stack, NULL), "fast::run()");
	assert_int_equal(symbolizer_stack(fixture.symbolizer, process_id, &built.stack, NULL,
					  &frame, &count),
			 0);
	assert_int_equal(frame[0].kind, FRAME_NATIVE);
	assert_string_equal(intern_get(fixture.strings, frame[0].system_name, NULL),
			    "_ZN4fast3runEv");
	assert_int_equal(frame[0].module, LIB_FILE);
	assert_int_equal(frame[0].address, 0x123);
	close_fixture(&fixture);
}

static void symbolizer_stack__hides_machinery_of_the_interpreter_only(void **state)
{
	struct fixture fixture;
	struct built built;

	(void)state;
	open_fixture(&fixture, false, false);
	const packed_frame frames[] = {packed_python(add_code(&fixture, "f", 1), 0),
				       NATIVE(PYTHON_FILE, 0x200), RUN(1),
				       NATIVE(PYTHON_FILE, 0x100), NATIVE(LIB_FILE, 0x100)};
	build(&built, 1, 4, frames);
	assert_string_equal(names(&fixture, &built.stack, NULL), "list_sort\nf\nfast::run()");
	close_fixture(&fixture);
}

static void symbolizer_stack__says_where_python_frames_were_not_read(void **state)
{
	struct fixture fixture;
	struct built built;

	(void)state;
	open_fixture(&fixture, false, false);
	const packed_frame frames[] = {NATIVE(PYTHON_FILE, 0x200), NATIVE(PYTHON_FILE, 0x100),
				       NATIVE(PYTHON_FILE, 0x100), NATIVE(LIB_FILE, 0x100)};
	build(&built, 0, 4, frames);
	built.stack.py_stop = PP_PY_STOP_TORN;
	assert_string_equal(names(&fixture, &built.stack, NULL),
			    "list_sort\n[Python frames not read]\nfast::run()");
	/* A thread that runs no Python has none. */
	built.stack.py_stop = PP_PY_STOP_NO_THREAD_STATE;
	assert_string_equal(names(&fixture, &built.stack, NULL), "list_sort\nfast::run()");
	close_fixture(&fixture);
}

static void symbolizer_stack__says_that_callers_were_left_out(void **state)
{
	struct fixture fixture;
	struct built built;

	(void)state;
	open_fixture(&fixture, false, false);
	const packed_frame frames[] = {NATIVE(LIB_FILE, 0x100)};
	build(&built, 0, 1, frames);
	built.stack.stop = PP_STOP_LEFT_OUT;
	assert_string_equal(names(&fixture, &built.stack, NULL),
			    "fast::run()\n"
			    "[callers left out: its user has too many incomplete stacks]");
	/* Without a frame the reason stands alone: agent/samples.c. */
	build(&built, 0, 0, frames);
	built.stack.stop = PP_STOP_LEFT_OUT;
	assert_string_equal(names(&fixture, &built.stack, NULL), "");
	close_fixture(&fixture);
}

static void symbolizer_stack__raw_keeps_machinery_and_eval_frames(void **state)
{
	struct fixture fixture;
	struct built built;

	(void)state;
	open_fixture(&fixture, true, false);
	const packed_frame frames[] = {packed_python(add_code(&fixture, "f", 1), 0), EVAL(0x300),
				       RUN(1), NATIVE(PYTHON_FILE, 0x100)};
	build(&built, 1, 3, frames);
	assert_string_equal(names(&fixture, &built.stack, NULL), "list_sort\nf\n_PyEval_Vector");
	close_fixture(&fixture);
}

static void symbolizer_stack__no_native_leaves_python_and_kernel(void **state)
{
	uint64_t bytes[(sizeof(struct dict_kernel) + sizeof(uint64_t)) / sizeof(uint64_t)] = {0};
	struct dict_kernel *kernel = (struct dict_kernel *)bytes;
	struct fixture fixture;
	struct built built;

	(void)state;
	open_fixture(&fixture, false, true);
	kernel->count = 1;
	kernel->address[0] = 0xffff1000;
	const packed_frame frames[] = {packed_python(add_code(&fixture, "f", 1), 0),
				       NATIVE(LIB_FILE, 0x10),
				       ANONYMOUS(0x7f0000001000),
				       packed_gap(0),
				       RUN(1),
				       NATIVE(LIB_FILE, 0x20)};
	build(&built, 1, 5, frames);
	assert_string_equal(names(&fixture, &built.stack, kernel), "do_syscall_64\nf");
	assert_int_equal(fixture.native_calls, 0);
	close_fixture(&fixture);
}

static void symbolizer_stack__no_native_keeps_a_stack_without_python(void **state)
{
	const packed_frame frames[] = {NATIVE(LIB_FILE, 0x10)};
	struct fixture fixture;
	struct built built;

	(void)state;
	open_fixture(&fixture, false, true);
	build(&built, 0, 1, frames);
	assert_string_equal(names(&fixture, &built.stack, NULL), "fast::run()");
	close_fixture(&fixture);
}

static void symbolizer_stack__merges_unnamed_neighbours_of_one_file(void **state)
{
	const packed_frame frames[] = {NATIVE(LIB_FILE, 0x1000), NATIVE(LIB_FILE, 0x2000),
				       NATIVE(LIB_FILE, 0x10),	 NATIVE(LIB_FILE, 0x20),
				       NATIVE(LIB_FILE, 0x3000), NATIVE(18, 0x3000)};
	struct fixture fixture;
	struct built built;

	(void)state;
	open_fixture(&fixture, false, false);
	build(&built, 0, 6, frames);
	assert_string_equal(names(&fixture, &built.stack, NULL),
			    "[libfast.so]\nfast::run()\nfast::run()\n[libfast.so]\n[libfast.so]");
	close_fixture(&fixture);
	open_fixture(&fixture, true, false);
	assert_string_equal(names(&fixture, &built.stack, NULL),
			    "[libfast.so]\n[libfast.so]\nfast::run()\nfast::run()\n[libfast.so]\n"
			    "[libfast.so]");
	close_fixture(&fixture);
}

static void symbolizer_stack__lost_code_and_gaps_say_so(void **state)
{
	const packed_frame frames[] = {packed_python(0, 0), packed_gap(0), packed_gap(17), RUN(1)};
	const struct frame *frame;
	struct fixture fixture;
	struct built built;
	size_t count;

	(void)state;
	open_fixture(&fixture, false, false);
	build(&built, 1, 3, frames);
	assert_string_equal(names(&fixture, &built.stack, NULL),
			    "[unwind gap]\n[17 frames omitted]\n[python frame, name lost]");
	assert_int_equal(symbolizer_stack(fixture.symbolizer, process_id, &built.stack, NULL,
					  &frame, &count),
			 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(frame[i].kind, FRAME_MARKER);
	close_fixture(&fixture);
}

static void symbolizer_stack__anonymous_memory_is_asked_by_process(void **state)
{
	const packed_frame frames[] = {ANONYMOUS(0x7f0000001000), ANONYMOUS(0x7f0000002000)};
	const struct frame *frame;
	struct fixture fixture;
	struct built built;
	size_t count;

	(void)state;
	open_fixture(&fixture, false, false);
	build(&built, 0, 2, frames);
	assert_string_equal(names(&fixture, &built.stack, NULL), "jitted\n[anon]");
	assert_int_equal(fixture.anonymous_tgid, 70);
	assert_int_equal(symbolizer_stack(fixture.symbolizer, process_id, &built.stack, NULL,
					  &frame, &count),
			 0);
	assert_int_equal(frame[0].kind, FRAME_JIT);
	assert_int_equal(frame[0].address, 0x7f0000001000);
	assert_int_equal(frame[0].module, 2);
	close_fixture(&fixture);
}

static void symbolizer_stack__kernel_frames_come_first(void **state)
{
	uint64_t bytes[(sizeof(struct dict_kernel) + 2 * sizeof(uint64_t)) / sizeof(uint64_t)] = {
		0};
	struct dict_kernel *kernel = (struct dict_kernel *)bytes;
	const packed_frame frames[] = {NATIVE(LIB_FILE, 0x10)};
	const struct frame *frame;
	struct fixture fixture;
	struct built built;
	size_t count;

	(void)state;
	open_fixture(&fixture, false, false);
	kernel->count = 2;
	kernel->address[0] = 0xffff2000;
	kernel->address[1] = 0xffff1000;
	build(&built, 0, 1, frames);
	assert_string_equal(names(&fixture, &built.stack, kernel),
			    "ext4_read\ndo_syscall_64\nfast::run()");
	assert_string_equal(names(&fixture, NULL, kernel), "ext4_read\ndo_syscall_64");
	assert_int_equal(
		symbolizer_stack(fixture.symbolizer, process_id, NULL, kernel, &frame, &count), 0);
	assert_int_equal(frame[0].kind, FRAME_KERNEL);
	assert_int_equal(frame[0].module, 1);
	assert_int_equal(frame[0].address, 0xffff2000);
	assert_string_equal(names(&fixture, NULL, NULL), "");
	close_fixture(&fixture);
}

static void symbolizer_resolve__asks_once_a_file_and_once_an_address(void **state)
{
	const packed_frame frames[] = {NATIVE(LIB_FILE, 0x30), NATIVE(PYTHON_FILE, 0x200),
				       NATIVE(LIB_FILE, 0x10), NATIVE(LIB_FILE, 0x30)};
	struct fixture fixture;
	struct built built;

	(void)state;
	open_fixture(&fixture, false, false);
	build(&built, 0, 4, frames);
	assert_int_equal(symbolizer_note(fixture.symbolizer, &built.stack), 0);
	assert_int_equal(symbolizer_note(fixture.symbolizer, &built.stack), 0);
	assert_int_equal(symbolizer_resolve_slice(fixture.symbolizer, NULL), 0);
	assert_int_equal(fixture.native_calls, 2);
	assert_int_equal(fixture.addresses_asked, 3);
	names(&fixture, &built.stack, NULL);
	assert_int_equal(fixture.native_calls, 2);
	close_fixture(&fixture);
}

static void symbolizer_resolve__names_a_file_in_each_slice_that_is_over(void **state)
{
	static const struct slice over = {.ends_ns = 1};
	const packed_frame frames[] = {NATIVE(LIB_FILE, 0x30), NATIVE(PYTHON_FILE, 0x200),
				       NATIVE(LIB_FILE, 0x10)};
	struct fixture fixture;
	struct built built;

	(void)state;
	open_fixture(&fixture, false, false);
	build(&built, 0, 3, frames);
	assert_int_equal(symbolizer_note(fixture.symbolizer, &built.stack), 0);
	assert_int_equal(symbolizer_resolve_slice(fixture.symbolizer, &over), 1);
	assert_int_equal(fixture.native_calls, 1);
	assert_int_equal(symbolizer_resolve_slice(fixture.symbolizer, &over), 0);
	assert_int_equal(fixture.native_calls, 2);
	assert_int_equal(fixture.addresses_asked, 3);
	/* Nothing is left, and nothing is asked again. */
	assert_int_equal(symbolizer_resolve_slice(fixture.symbolizer, &over), 0);
	names(&fixture, &built.stack, NULL);
	assert_int_equal(fixture.native_calls, 2);
	close_fixture(&fixture);
}

/* Requests about code objects are as long as those about files. */
static void symbolizer_resolve_slice__ends_before_all_codes_are_decoded(void **state)
{
	const packed_frame frames[] = {NATIVE(LIB_FILE, 0x30)};
	const struct slice over = slice_begin(0);
	struct fixture fixture;
	struct built built;

	(void)state;
	open_fixture(&fixture, false, false);
	build(&built, 0, 1, frames);
	assert_int_equal(symbolizer_note(fixture.symbolizer, &built.stack), 0);
	fixture.code_requests = 2;
	assert_int_equal(symbolizer_resolve_slice(fixture.symbolizer, &over), 1);
	assert_int_equal(symbolizer_resolve_slice(fixture.symbolizer, &over), 1);
	assert_int_equal(fixture.native_calls, 0);
	assert_int_equal(symbolizer_resolve_slice(fixture.symbolizer, &over), 0);
	assert_int_equal(fixture.code_calls, 3);
	assert_int_equal(fixture.native_calls, 1);
	close_fixture(&fixture);
}

static void symbolizer_stack__code_that_is_not_decoded_says_so(void **state)
{
	struct python_code *code = calloc(1, sizeof(*code));
	packed_frame frames[1];
	struct fixture fixture;
	struct built built;
	uint32_t index;

	(void)state;
	assert_non_null(code);
	code->id = 5;
	code->raw = calloc(1, sizeof(*code->raw));
	open_fixture(&fixture, false, false);
	assert_int_equal(
		dictionary_add_code(fixture.dictionary, (struct pp_process_id){}, code, &index), 0);
	frames[0] = packed_python(index, 0);
	build(&built, 1, 0, frames);
	assert_string_equal(names(&fixture, &built.stack, NULL),
			    "[python frame, name not decoded]");
	close_fixture(&fixture);
}

static void symbolizer_stack__native_frame_that_was_not_noted_is_named(void **state)
{
	const packed_frame frames[] = {NATIVE(LIB_FILE, 0x30)};
	const struct frame *frame;
	struct fixture fixture;
	struct built built;
	size_t count;

	(void)state;
	open_fixture(&fixture, false, false);
	build(&built, 0, 1, frames);
	assert_int_equal(symbolizer_stack(fixture.symbolizer, process_id, &built.stack, NULL,
					  &frame, &count),
			 0);
	assert_int_equal(frame[0].kind, FRAME_NATIVE);
	assert_string_equal(name_of(&fixture, &frame[0]), "fast::run()");
	close_fixture(&fixture);
}

static void symbolizer_stack__survives_growth_of_its_memo(void **state)
{
	struct fixture fixture;
	struct built built;

	(void)state;
	open_fixture(&fixture, false, false);
	for (uint64_t i = 0; i < 10000; i++) {
		const packed_frame frames[] = {NATIVE(LIB_FILE, i)};

		build(&built, 0, 1, frames);
		assert_int_equal(symbolizer_note(fixture.symbolizer, &built.stack), 0);
	}
	const packed_frame frames[] = {NATIVE(LIB_FILE, 0xfff), NATIVE(LIB_FILE, 0x1000)};
	build(&built, 0, 2, frames);
	assert_string_equal(names(&fixture, &built.stack, NULL), "fast::run()\n[libfast.so]");
	assert_int_equal(fixture.addresses_asked, 10000);
	close_fixture(&fixture);
}

static void symbolizer_stack__one_frame_segments_follow_the_stacks_interpreter(void **state)
{
	struct fixture fixture;
	struct built built;

	(void)state;
	open_fixture(&fixture, false, false);
	const packed_frame frames[] = {packed_python(add_code(&fixture, "f", 1), 0), RUN(1),
				       NATIVE(LIB_FILE, 0x10), RUN(1)};
	build(&built, 1, 3, frames);
	assert_string_equal(names(&fixture, &built.stack, NULL), "f\nfast::run()");
	built.stack.python = 2;
	assert_string_equal(names(&fixture, &built.stack, NULL), "fast::run()\nf");
	close_fixture(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbolizer_stack__python_frame_has_name_file_and_lines),
		cmocka_unit_test(symbolizer_stack__native_frame_has_both_names_module_and_address),
		cmocka_unit_test(symbolizer_stack__hides_machinery_of_the_interpreter_only),
		cmocka_unit_test(symbolizer_stack__says_where_python_frames_were_not_read),
		cmocka_unit_test(symbolizer_stack__says_that_callers_were_left_out),
		cmocka_unit_test(symbolizer_stack__raw_keeps_machinery_and_eval_frames),
		cmocka_unit_test(symbolizer_stack__no_native_leaves_python_and_kernel),
		cmocka_unit_test(symbolizer_stack__no_native_keeps_a_stack_without_python),
		cmocka_unit_test(symbolizer_stack__merges_unnamed_neighbours_of_one_file),
		cmocka_unit_test(symbolizer_stack__lost_code_and_gaps_say_so),
		cmocka_unit_test(symbolizer_stack__anonymous_memory_is_asked_by_process),
		cmocka_unit_test(symbolizer_stack__kernel_frames_come_first),
		cmocka_unit_test(symbolizer_resolve__asks_once_a_file_and_once_an_address),
		cmocka_unit_test(symbolizer_resolve__names_a_file_in_each_slice_that_is_over),
		cmocka_unit_test(symbolizer_resolve_slice__ends_before_all_codes_are_decoded),
		cmocka_unit_test(symbolizer_stack__code_that_is_not_decoded_says_so),
		cmocka_unit_test(symbolizer_stack__native_frame_that_was_not_noted_is_named),
		cmocka_unit_test(symbolizer_stack__survives_growth_of_its_memo),
		cmocka_unit_test(
			symbolizer_stack__one_frame_segments_follow_the_stacks_interpreter),
	};

	return cmocka_run_group_tests_name("symbolize/symbolizer", tests, NULL, NULL);
}
