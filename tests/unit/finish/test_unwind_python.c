/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of Python frames of a process that is this one: code objects are words of this program. */
#include "finish/unwind_python.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <pyprofd/config.h>

#include "attach/context_table.h"
#include "attach/file_table.h"
#include "discover/proc_scan.h"
#include "drain/dictionary.h"
#include "python/python_code.h"

#define LINE_TABLE 16U /* offset of its pointer, behind the other word that guards an object */
#define CODES 3U
#define ANCHOR 0x7700000000002000ULL
#define WHERE 0x7700000000000010ULL /* of the first frame that was walked */

/* Of an object: a word that nobody looks at, the two that guard it. */
static uint64_t code[CODES][3];
static struct python_info info;
static struct file interpreter;
static struct process_python known;
static struct process process;
static struct unwind_python *python;
static unsigned int code_reads, additions;
static int read_result, add_result, resume_result;
static bool is_known, is_code_known;
static uint32_t resumed_frames; /* stored, as resuming sees them */

/* Nobody here looks into it. */
#define SECRET 0x123456789abcdefULL
#define DICTIONARY ((struct dictionary *)&additions)

static uint64_t address_of(unsigned int at)
{
	return (uint64_t)code[at];
}

/* ---- instead of attach/, drain/ and python/ ---- */

struct process_python *context_table_python(struct process *asked)
{
	assert_ptr_equal(asked, &process);
	return is_known ? &known : NULL;
}

int python_code_read(pid_t pid, const struct pp_python *layout, uint64_t bias, uint64_t address,
		     uint64_t user_key, struct python_code **ret_code)
{
	assert_int_equal(pid, getpid());
	assert_ptr_equal(layout, &info.bpf);
	assert_int_equal(user_key, pp_user_key(1000, SECRET));
	assert_int_equal(bias, 0x5000);
	code_reads++;
	if (read_result)
		return read_result;
	*ret_code = calloc(1, sizeof(**ret_code));
	assert_non_null(*ret_code);
	(*ret_code)->id = address + 1;
	return 0;
}

uint32_t process_user_kept(struct process *asked)
{
	assert_ptr_equal(asked, &process);
	return 1000;
}

int dictionary_add_code(struct dictionary *dictionary, struct pp_process_id id,
			struct python_code *added, uint32_t *ret_index)
{
	assert_ptr_equal(dictionary, DICTIONARY);
	assert_int_equal(id.tgid, process.id.tgid);
	free(added);
	additions++;
	*ret_index = 0;
	return add_result;
}

bool dictionary_knows_code(const struct dictionary *dictionary, uint64_t id)
{
	assert_ptr_equal(dictionary, DICTIONARY);
	assert_int_equal(id % 8, 1);
	return is_code_known;
}

/* Two frames more, and an anchor. */
int python_frames_resume(const struct python_where *where, const struct python_resume *resume,
			 struct python_frames *frames)
{
	assert_int_equal(where->pid, getpid());
	assert_ptr_equal(where->layout, &info.bpf);
	assert_int_equal(where->bias, 0x5000);
	assert_int_equal(resume->frame, 0x100);
	assert_int_equal(resume->cframe, 0x200);
	assert_int_equal(resume->segment_frames, 7);
	assert_int_equal(resume->head[1], 0x77);
	assert_int_equal(frames->stored, resumed_frames);
	assert_int_equal(frames->count, 5);
	assert_int_equal(frames->segment_count, 2);
	assert_int_equal(frames->frame[0].where, WHERE);
	assert_int_equal(frames->frame[1].where, WHERE + 1);
	assert_int_equal(frames->segment[1].anchor, ANCHOR);
	if (resume_result)
		return resume_result;
	frames->frame[2].where = WHERE + 2;
	frames->frame[3].where = WHERE + 3;
	frames->stored = 4;
	frames->count = 8;
	frames->segment_count = 3;
	frames->stop = PP_PY_STOP_ROOT;
	return 0;
}

/* ---- */

static int setup(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < CODES; i++)
		code[i][1] = code[i][2] = 40 + i;
	info.bpf.code_line_table = LINE_TABLE;
	interpreter.python = &info;
	known = (struct process_python){.file = &interpreter, .bias = 0x5000};
	process = (struct process){.id = {.tgid = (uint32_t)getpid(), .generation = 3}};
	code_reads = additions = 0;
	read_result = add_result = resume_result = 0;
	is_known = is_code_known = true;
	resumed_frames = 2;
	return unwind_python_new(DICTIONARY, SECRET, &python);
}

static int teardown(void **state)
{
	(void)state;
	unwind_python_free(python);
	return 0;
}

/* A stack of one frame; returns whether it has got its id. */
static bool names_at(uint64_t address)
{
	struct pp_stack_record *record = calloc(1, sizeof(*record) + 2 * sizeof(record->frame[0]));
	bool is_named;

	assert_non_null(record);
	record->python_stored = 1;
	record->frame[0] = (struct pp_frame){.where = address, .kind = PP_FRAME_PYTHON_RAW};
	record->frame[1] = record->frame[0]; /* behind the Python ones */
	unwind_python_name(python, &process, record);
	is_named = record->frame[0].kind == PP_FRAME_PYTHON;
	assert_int_equal(record->frame[0].where, address + is_named);
	assert_int_equal(record->frame[1].kind, PP_FRAME_PYTHON_RAW);
	free(record);
	return is_named;
}

static bool names(unsigned int at)
{
	return names_at(address_of(at));
}

static void unwind_python_name__gives_each_object_its_id(void **state)
{
	(void)state;
	assert_true(names(0));
	assert_true(names(1));
	assert_int_equal(code_reads, 2);
	assert_int_equal(additions, 2);
	/* Known by now. */
	assert_true(names(0));
	assert_true(names(1));
	assert_int_equal(code_reads, 2);
}

static void unwind_python_name__reads_what_became_another_object(void **state)
{
	(void)state;
	for (unsigned int guard = 1; guard <= 2; guard++) {
		assert_true(names(0));
		code_reads = 0;
		code[0][guard]++;
		assert_true(names(0));
		assert_int_equal(code_reads, 1);
	}
	/* What is not part of the guard does not matter. */
	code[0][0]++;
	assert_true(names(0));
	assert_int_equal(code_reads, 1);
	/* The dictionary has dropped it. */
	is_code_known = false;
	assert_true(names(0));
	assert_int_equal(code_reads, 2);
	is_code_known = true;
	/* The pid's next program. */
	process.id.generation++;
	assert_true(names(0));
	assert_int_equal(code_reads, 3);
}

/* All of the line table's pointer and of the field before it, and nothing else: an object of which
 * only they can be read, as memory ends behind them, is known again. */
static void unwind_python_name__guards_an_object_by_two_whole_words(void **state)
{
	uint8_t *page =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *object = page + 4096 - sizeof(code[0]);

	(void)state;
	assert_true(page != MAP_FAILED);
	munmap(page + 4096, 4096);
	assert_true(names_at((uint64_t)object));
	for (size_t at = 0; at < sizeof(code[0]); at++) {
		code_reads = 0;
		object[at] ^= 0x80;
		assert_true(names_at((uint64_t)object));
		assert_int_equal(code_reads, at >= sizeof(code[0][0]));
	}
	munmap(page, 4096);
}

/* Recursion: the frames of one stack are looked up once. */
static void unwind_python_name__looks_once_a_stack(void **state)
{
	struct pp_stack_record *record = calloc(1, sizeof(*record) + 4 * sizeof(record->frame[0]));

	(void)state;
	assert_non_null(record);
	is_code_known = false;
	record->python_stored = 4;
	for (unsigned int i = 0; i < 4; i++)
		record->frame[i] =
			(struct pp_frame){.where = address_of(0), .kind = PP_FRAME_PYTHON_RAW};
	record->frame[1] = (struct pp_frame){.where = 5, .kind = PP_FRAME_PYTHON};
	unwind_python_name(python, &process, record);
	assert_int_equal(code_reads, 1);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(record->frame[i].kind, PP_FRAME_PYTHON);
		assert_int_equal(record->frame[i].where, i == 1 ? 5 : address_of(0) + 1);
	}
	free(record);
}

static void unwind_python_name__what_cannot_be_read_keeps_its_address(void **state)
{
	(void)state;
	read_result = -EFAULT;
	assert_false(names(0));
	assert_int_equal(additions, 0);
	read_result = 0;
	add_result = -ENOSPC;
	assert_false(names(0));
	add_result = 0;
	/* Neither is remembered as read. */
	assert_true(names(0));
	assert_int_equal(code_reads, 3);
	/* An object that is forgotten when its successor cannot be read. */
	code[0][1]++;
	read_result = -EFAULT;
	assert_false(names(0));
	assert_false(names(0));
	code[0][1]--;
	assert_false(names(0));
}

static void unwind_python_name__needs_a_live_interpreter(void **state)
{
	(void)state;
	is_known = false;
	assert_false(names(0));
	is_known = true;
	known.file = NULL;
	assert_false(names(0));
	known.file = &interpreter;
	known.is_refused = true;
	assert_false(names(0));
	known.is_refused = false;
	process.exit_ns = 1;
	assert_false(names(0));
	process.exit_ns = 0;
	assert_true(names(0));
}

/* ---- frames ---- */

static const struct python_frames *resume(uint16_t stored, struct pp_stack_record *record)
{
	static struct pp_frame frame[PP_MAX_PYTHON_FRAMES + 1] = {{.where = WHERE},
								  {.where = WHERE + 1}};
	static const struct pp_segment segment[] = {{.anchor = 0x1000}, {.anchor = ANCHOR}};
	struct pp_incomplete_record from = {.python_frame = 0x100,
					    .cframe = 0x200,
					    .segment_frames = 7,
					    .python_stored = stored,
					    .python_count = 5,
					    .segment_count = 2};
	const struct decoded_incomplete incomplete = {
		.record = &from, .python = frame, .segment = segment};

	from.frame_head[1] = 0x77;
	return unwind_python_resume(python, &process, &incomplete, record);
}

static void unwind_python_resume__goes_on_where_the_kernel_side_stopped(void **state)
{
	struct pp_stack_record *record = calloc(1, sizeof(*record) + 4 * sizeof(record->frame[0]));
	const struct python_frames *frames;

	(void)state;
	assert_non_null(record);
	frames = resume(2, record);
	assert_non_null(frames);
	assert_int_equal(frames->segment_count, 3);
	assert_int_equal(record->python_stored, 4);
	assert_int_equal(record->python_count, 8);
	assert_int_equal(record->py_stop, PP_PY_STOP_ROOT);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(record->frame[i].where, WHERE + i);
	/* The frame is another one by now. */
	record->python_stored = 2;
	resume_result = -ESTALE;
	assert_null(resume(2, record));
	assert_int_equal(record->py_stop, PP_PY_STOP_TORN);
	assert_int_equal(record->python_stored, 2);
	free(record);
}

static void unwind_python_resume__needs_a_live_interpreter(void **state)
{
	struct pp_stack_record record = {.py_stop = PP_PY_STOP_MAX_TIME};

	(void)state;
	is_known = false;
	assert_null(resume(2, &record));
	is_known = true;
	known.file = NULL;
	assert_null(resume(2, &record));
	known.file = &interpreter;
	known.is_refused = true;
	assert_null(resume(2, &record));
	known.is_refused = false;
	process.exit_ns = 1;
	assert_null(resume(2, &record));
	process.exit_ns = 0;
	/* More than there is room for. */
	assert_null(resume(PP_MAX_PYTHON_FRAMES + 1, &record));
	assert_int_equal(record.py_stop, PP_PY_STOP_MAX_TIME);
	/* As many as there is room for are tried. */
	resumed_frames = PP_MAX_PYTHON_FRAMES;
	resume_result = -ESTALE;
	assert_null(resume(PP_MAX_PYTHON_FRAMES, &record));
	assert_int_equal(record.py_stop, PP_PY_STOP_TORN);
}

#define python_test(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		python_test(unwind_python_name__gives_each_object_its_id),
		python_test(unwind_python_name__reads_what_became_another_object),
		python_test(unwind_python_name__guards_an_object_by_two_whole_words),
		python_test(unwind_python_name__looks_once_a_stack),
		python_test(unwind_python_name__what_cannot_be_read_keeps_its_address),
		python_test(unwind_python_name__needs_a_live_interpreter),
		python_test(unwind_python_resume__goes_on_where_the_kernel_side_stopped),
		python_test(unwind_python_resume__needs_a_live_interpreter),
	};

	return cmocka_run_group_tests_name("finish/unwind_python", tests, NULL, NULL);
}
