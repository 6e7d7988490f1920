/* SPDX-License-Identifier: BSD-2-Clause */
/* Scanned threads of a process that does not exist: its stack, its interpreter and what unwinds
 * them are fakes in this file. */
#include "finish/scan_walk.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "finish/user_unwind.h"
#include "python/python_frames.h"
#include "python/python_process.h"

#define TGID 70U
#define TID 71U
#define BIAS 0x5000U
#define PAGE 4096U
#define STACK 0x7fff00000000ULL /* where it is mapped from */
#define PYTHON_INDEX 4U
#define SLOT_STATE 0x100U  /* the thread state that the thread's own slots lead to */
#define STACK_STATE 0x200U /* that its stack shows */
#define LIST_STATE 0x300U  /* that the interpreter lists */
#define LISTS_MAX 4096U

static struct finisher finisher;
static struct process process;
static struct python_info info;
static struct file interpreter = {.python = &info, .python_index = PYTHON_INDEX};
static struct process_python process_python;
static struct pp_scan_record thread;
static struct scan_walker *walker;
static bool is_published; /* context_table_python() has something to say */

/* ---- instead of base/: the process's memory ---- */

static uint64_t stack_end;
static bool is_first_refused; /* memory that is mapped after the first look */

static uint8_t byte_at(uint64_t address)
{
	return (uint8_t)(address * 0x9e3779b97f4a7c15ULL >> 56);
}

int process_read(pid_t pid, uint64_t address, void *buffer, size_t size)
{
	assert_int_equal(pid, TGID);
	if (is_first_refused || address < STACK || address + size > stack_end) {
		is_first_refused = false;
		return -EFAULT;
	}
	for (size_t i = 0; i < size; i++)
		((uint8_t *)buffer)[i] = byte_at(address + i);
	return 0;
}

/* ---- instead of attach/ and python/ ---- */

static int tls_result;
static uint8_t slot_mode; /* of the second slot */
static uint64_t slot_state, asked_state;
static bool are_several, owns_gil;
static unsigned int gil_asked, lists_read, threads_listed;
static struct python_frames frames; /* what the interpreter has */

struct process_python *context_table_python(struct process *asked)
{
	assert_int_equal(asked->id.tgid, process.id.tgid);
	return is_published ? &process_python : NULL;
}

/* What the file alone says differs from what was read by its address. */
static void fill_tls(struct pp_tls tls[2], uint64_t address)
{
	memset(tls, 0, 2 * sizeof(*tls));
	tls[0].address = address;
	tls[1].mode = slot_mode;
}

int python_process_tls_read(const struct python_info *of, pid_t pid, uint64_t bias, bool is_musl,
			    struct pp_tls ret_tls[2])
{
	assert_ptr_equal(of, &info);
	assert_int_equal(pid, process.id.tgid);
	assert_int_equal(bias, BIAS);
	assert_true(is_musl);
	if (!tls_result)
		fill_tls(ret_tls, 0x11);
	return tls_result;
}

void python_process_tls(const struct python_info *of, uint64_t bias, bool is_musl,
			struct pp_tls ret_tls[2])
{
	assert_ptr_equal(of, &info);
	assert_int_equal(bias, BIAS);
	assert_true(is_musl);
	fill_tls(ret_tls, 0x22);
}

static void check_where(const struct python_where *where)
{
	assert_int_equal(where->pid, process.id.tgid);
	assert_ptr_equal(where->layout, &info.bpf);
	assert_int_equal(where->bias, BIAS);
	assert_int_equal(where->tls[0].address, tls_result ? 0x22 : 0x11);
}

bool python_states_are_several(const struct python_where *where)
{
	check_where(where);
	return are_several;
}

uint64_t python_state_on_stack(const struct python_where *where, const struct python_stack *stack)
{
	check_where(where);
	assert_true(are_several);
	assert_int_equal(stack->thread_pointer, thread.thread_pointer);
	assert_ptr_equal(stack->registers, thread.registers);
	assert_int_equal(stack->size, stack_end - thread.sp);
	for (size_t i = 0; i < stack->size; i++)
		assert_int_equal(stack->bytes[i], byte_at(thread.sp + i));
	return STACK_STATE;
}

uint64_t python_thread_state_find(const struct python_where *where, uint64_t thread_pointer)
{
	check_where(where);
	assert_false(are_several);
	assert_int_equal(thread_pointer, thread.thread_pointer);
	return slot_state;
}

void python_frames_read(const struct python_where *where, uint64_t thread_state,
			struct python_frames *ret_frames)
{
	check_where(where);
	asked_state = thread_state;
	*ret_frames = frames;
}

bool python_gil_owns(const struct python_where *where, const struct python_frames *of,
		     uint64_t word)
{
	check_where(where);
	assert_int_equal(of->gil, frames.gil);
	assert_int_equal(word, thread.argument);
	gil_asked++;
	return owns_gil;
}

/* The scanned thread is the second one. */
int python_process_threads(const struct python_info *of, pid_t pid, uint64_t bias,
			   struct python_thread **ret_threads, size_t *ret_count)
{
	struct python_thread *list;

	assert_ptr_equal(of, &info);
	assert_int_equal(pid, process.id.tgid);
	assert_int_equal(bias, BIAS);
	lists_read++;
	if (!threads_listed)
		return -EAGAIN;
	list = calloc(threads_listed, sizeof(*list));
	assert_non_null(list);
	for (unsigned int i = 0; i < threads_listed; i++)
		list[i] = (struct python_thread){.thread_state = LIST_STATE + i,
						 .thread_id = 0x9000 + i,
						 .native_id = 900 + i};
	*ret_threads = list;
	*ret_count = threads_listed;
	return 0;
}

/* ---- instead of finish/user_unwind.c ---- */

static struct pp_incomplete_record unwound;
static uint8_t copied[PP_STACK_COPY_BYTES];
static unsigned int unwinds;
static int unwind_result;
static bool is_of_process; /* else of its Python frames alone */

int user_unwind(const struct finisher *by, struct process *of,
		const struct decoded_incomplete *incomplete, struct pp_stack_record **ret_record)
{
	assert_ptr_equal(by, &finisher);
	assert_ptr_equal(of, is_of_process ? &process : NULL);
	unwound = *incomplete->record;
	assert_true(unwound.stack_bytes <= sizeof(copied));
	if (unwound.stack_bytes)
		memcpy(copied, incomplete->stack, unwound.stack_bytes);
	if (unwound.python_stored)
		assert_memory_equal(incomplete->python, frames.frame,
				    frames.stored * sizeof(frames.frame[0]));
	if (unwound.segment_count)
		assert_int_equal(incomplete->segment->anchor, frames.segment[0].anchor);
	unwinds++;
	if (unwind_result)
		return unwind_result;
	*ret_record = calloc(1, sizeof(**ret_record));
	assert_non_null(*ret_record);
	(*ret_record)->stop = PP_STOP_BAD_RULE;
	return 0;
}

/* ---- */

static int setup(void **state)
{
	(void)state;
	process = (struct process){.id = {.tgid = TGID, .generation = 3}};
	process_python =
		(struct process_python){.file = &interpreter, .bias = BIAS, .is_musl = true};
	thread = (struct pp_scan_record){.size = sizeof(thread),
					 .tgid = TGID,
					 .tid = TID,
					 .inner_tid = 901,
					 .state = 1,
					 .flags = PP_SCAN_USER,
					 .wait = PP_WAIT_SLEEP,
					 .argument = 0x4444,
					 .thread_pointer = 0x9001,
					 .first_word = 0x8888,
					 .pc = 0x1234,
					 .sp = STACK + 16,
					 .fp = STACK + 32};
	for (unsigned int i = 0; i < PP_REG_COUNT; i++)
		thread.registers[i] = 0x100 + i;
	memset(&frames, 0, sizeof(frames));
	frames.gil = 0x6666;
	frames.count_flags = PP_COUNT_PYTHON | PP_COUNT_GC;
	frames.stop = PP_PY_STOP_ROOT;
	frames.stored = 2;
	frames.count = 5;
	frames.segment_count = 1;
	frames.frame[0].where = 0x10;
	frames.frame[1].where = 0x20;
	frames.segment[0].anchor = STACK + 64;
	is_published = is_of_process = true;
	is_first_refused = are_several = owns_gil = false;
	tls_result = unwind_result = 0;
	slot_mode = PP_TLS_GLOBAL;
	slot_state = SLOT_STATE;
	stack_end = STACK + PAGE;
	asked_state = 0;
	gil_asked = lists_read = unwinds = 0;
	threads_listed = 3;
	memset(&unwound, 0, sizeof(unwound));
	return scan_walker_new(&finisher, &walker);
}

static int teardown(void **state)
{
	(void)state;
	scan_walker_free(walker);
	return 0;
}

static uint32_t flags_of(enum pp_stop stop, enum pp_py_stop py_stop, enum pp_wait wait)
{
	return (uint32_t)stop << PP_COUNT_STOP_SHIFT | (uint32_t)py_stop << PP_COUNT_PY_STOP_SHIFT |
	       (uint32_t)wait << PP_COUNT_WAIT_SHIFT;
}

/* Walks, and expects a stack. */
static struct scanned walk(void)
{
	struct pp_stack_record *record = NULL;
	/* What an earlier walk said does not remain. */
	struct scanned scanned = {.flags = ~0U, .wait = PP_WAIT_DISK};
	const unsigned int before = unwinds;

	assert_int_equal(scan_walk(walker, &thread, &process, &scanned, &record), 0);
	assert_int_equal(unwinds, before + 1);
	assert_non_null(record);
	free(record);
	return scanned;
}

static void scan_walk__unwinder_gets_the_registers_and_the_stack(void **state)
{
	(void)state;
	is_published = false;
	walk();
	assert_int_equal(unwound.key.id.tgid, TGID);
	assert_int_equal(unwound.key.id.generation, 3);
	assert_int_equal(unwound.key.tid, TID);
	assert_int_equal(unwound.pc, 0x1234);
	assert_int_equal(unwound.sp, STACK + 16);
	assert_int_equal(unwound.fp, STACK + 32);
	assert_memory_equal(unwound.registers, thread.registers, sizeof(thread.registers));
	assert_int_equal(unwound.is_leaf, 1);
	assert_int_equal(unwound.stop, PP_STOP_NONE);
	assert_int_equal(unwound.first_word, 0x8888);
	assert_int_equal(unwound.thread_pointer, 0x9001);
	assert_int_equal(unwound.stack_start, STACK + 16);
	assert_int_equal(unwound.stack_bytes, PAGE - 16);
	for (size_t i = 0; i < PAGE - 16; i++)
		assert_int_equal(copied[i], byte_at(STACK + 16 + i));
}

/* `at` bytes into its first page, of a stack that is mapped for so many bytes. */
static void expect_copied(uint32_t at, uint32_t mapped, uint32_t copied_bytes)
{
	thread.sp = STACK + at;
	stack_end = STACK + mapped;
	walk();
	assert_int_equal(unwound.stack_bytes, copied_bytes);
	for (size_t i = 0; i < copied_bytes; i++)
		assert_int_equal(copied[i], byte_at(thread.sp + i));
}

static void scan_walk__stack_is_read_as_far_as_it_is_mapped(void **state)
{
	(void)state;
	expect_copied(0, PAGE, PAGE);
	expect_copied(16, 2 * PAGE, 2 * PAGE - 16);
	expect_copied(16, 3 * PAGE, 3 * PAGE - 16);
	expect_copied(PAGE - 8, 3 * PAGE, 2 * PAGE + 8);
	expect_copied(0, 8 * PAGE, PP_STACK_COPY_BYTES);
	expect_copied(24, 8 * PAGE, PP_STACK_COPY_BYTES);
	expect_copied(16, 0, 0);
}

static void scan_walk__stack_that_is_mapped_meanwhile_is_read_in_whole_pages(void **state)
{
	(void)state;
	is_first_refused = true;
	expect_copied(0, 8 * PAGE, PP_STACK_COPY_BYTES);
	is_first_refused = true;
	expect_copied(16, 8 * PAGE, PP_STACK_COPY_BYTES - 16);
}

static void scan_walk__python_frames_and_their_flags_are_handed_on(void **state)
{
	struct scanned scanned = walk();

	(void)state;
	assert_int_equal(asked_state, SLOT_STATE);
	assert_int_equal(unwound.python, PYTHON_INDEX);
	assert_int_equal(unwound.py_stop, PP_PY_STOP_ROOT);
	assert_int_equal(unwound.python_stored, 2);
	assert_int_equal(unwound.python_count, 5);
	assert_int_equal(unwound.segment_count, 1);
	assert_int_equal(scanned.wait, PP_WAIT_SLEEP);
	assert_int_equal(scanned.flags,
			 PP_COUNT_PYTHON | PP_COUNT_GC |
				 flags_of(PP_STOP_BAD_RULE, PP_PY_STOP_ROOT, PP_WAIT_SLEEP));
	/* Slots that cannot be read yet are where the file says. */
	tls_result = -EAGAIN;
	walk();
	assert_int_equal(asked_state, SLOT_STATE);
}

static void expect_no_python(void)
{
	assert_int_equal(walk().flags,
			 flags_of(PP_STOP_BAD_RULE, PP_PY_STOP_NOT_PYTHON, PP_WAIT_SLEEP));
	assert_int_equal(asked_state, 0);
	assert_int_equal(unwound.py_stop, PP_PY_STOP_NOT_PYTHON);
	assert_int_equal(unwound.python, 0);
	assert_int_equal(unwound.python_stored, 0);
	assert_int_equal(unwound.segment_count, 0);
}

static void scan_walk__process_without_a_sound_interpreter_has_no_python_frames(void **state)
{
	(void)state;
	is_published = false;
	expect_no_python();
	is_published = true;
	process_python.is_refused = true;
	expect_no_python();
	process_python.is_refused = false;
	process_python.file = NULL;
	expect_no_python();
}

static void scan_walk__lock_of_the_gil_is_a_wait_for_the_gil(void **state)
{
	struct scanned scanned;

	(void)state;
	owns_gil = true;
	thread.wait = PP_WAIT_LOCK;
	scanned = walk();
	assert_int_equal(scanned.wait, PP_WAIT_GIL);
	assert_int_equal(pp_count_wait(scanned.flags), PP_WAIT_GIL);
	owns_gil = false;
	scanned = walk();
	assert_int_equal(scanned.wait, PP_WAIT_LOCK);
	assert_int_equal(pp_count_wait(scanned.flags), PP_WAIT_LOCK);
	assert_int_equal(gil_asked, 2);
	/* Only futexes are asked about. */
	owns_gil = true;
	thread.wait = PP_WAIT_PIPE;
	assert_int_equal(walk().wait, PP_WAIT_PIPE);
	assert_int_equal(gil_asked, 2);
}

static void scan_walk__state_of_one_of_several_interpreters_is_on_the_stack(void **state)
{
	(void)state;
	are_several = true;
	walk();
	assert_int_equal(asked_state, STACK_STATE);
}

static void scan_walk__without_a_slot_the_state_is_looked_up_in_the_list(void **state)
{
	(void)state;
	slot_state = 0;
	/* A slot that says that there is none is believed. */
	walk();
	assert_int_equal(asked_state, 0);
	assert_int_equal(lists_read, 0);
	slot_mode = PP_TLS_NONE;
	walk();
	assert_int_equal(asked_state, LIST_STATE + 1);
	/* Each thread has its own; the list is read once. */
	thread.thread_pointer = 0x9000;
	thread.inner_tid = 900;
	walk();
	assert_int_equal(asked_state, LIST_STATE);
	thread.thread_pointer = 0x9002;
	thread.inner_tid = 902;
	walk();
	assert_int_equal(asked_state, LIST_STATE + 2);
	thread.thread_pointer = 0x9003;
	thread.inner_tid = 903;
	walk();
	assert_int_equal(asked_state, 0);
	assert_int_equal(lists_read, 1);
	/* Of another process another one, and all of them again after a pass. */
	process.id.generation++;
	walk();
	assert_int_equal(lists_read, 2);
	scan_walker_forget(walker);
	walk();
	assert_int_equal(lists_read, 3);
	slot_state = SLOT_STATE;
	walk();
	assert_int_equal(asked_state, SLOT_STATE);
}

static void scan_walk__list_that_cannot_be_read_is_not_asked_again(void **state)
{
	(void)state;
	slot_state = 0;
	slot_mode = PP_TLS_NONE;
	threads_listed = 0;
	walk();
	walk();
	assert_int_equal(asked_state, 0);
	assert_int_equal(lists_read, 1);
}

static void scan_walk__lists_of_4096_processes_are_kept(void **state)
{
	(void)state;
	slot_state = 0;
	slot_mode = PP_TLS_NONE;
	thread.sp = STACK - PAGE; /* nothing to copy */
	for (uint32_t i = 0; i < LISTS_MAX; i++) {
		process.id.generation = 10 + i;
		walk();
		assert_int_equal(asked_state, LIST_STATE + 1);
	}
	/* One more has no list, while those that have one still do. */
	process.id.generation = 5;
	walk();
	assert_int_equal(asked_state, 0);
	process.id.generation = 10;
	walk();
	assert_int_equal(asked_state, LIST_STATE + 1);
	assert_int_equal(lists_read, LISTS_MAX);
}

static void expect_no_user(struct process *of, enum pp_stop stop)
{
	struct pp_stack_record *record = (struct pp_stack_record *)&unwound;
	struct scanned scanned = {.flags = ~0U};

	assert_int_equal(scan_walk(walker, &thread, of, &scanned, &record), 0);
	assert_null(record);
	assert_int_equal(scanned.wait, PP_WAIT_SLEEP);
	assert_int_equal(scanned.flags, flags_of(stop, PP_PY_STOP_NONE, PP_WAIT_SLEEP));
	assert_int_equal(unwinds, 0);
}

static void scan_walk__flags_say_why_there_is_no_user_stack(void **state)
{
	(void)state;
	expect_no_user(NULL, PP_STOP_NO_IMAGE);
	process.exit_ns = 1;
	expect_no_user(&process, PP_STOP_NO_IMAGE);
	process.exit_ns = 0;
	thread.flags = 0;
	expect_no_user(&process, PP_STOP_NO_USER);
	thread.flags = PP_SCAN_COMPAT | PP_SCAN_IOWAIT;
	expect_no_user(&process, PP_STOP_COMPAT);
	expect_no_user(NULL, PP_STOP_COMPAT);
}

static void scan_walk__lack_of_memory_is_told(void **state)
{
	struct pp_stack_record *record = (struct pp_stack_record *)&unwound;
	struct scanned scanned = {};

	(void)state;
	unwind_result = -ENOMEM;
	assert_int_equal(scan_walk(walker, &thread, &process, &scanned, &record), -ENOMEM);
	assert_null(record);
	assert_int_equal(scanned.flags, frames.count_flags);
}

static int walk_state(struct scanned *scanned, struct pp_stack_record **record)
{
	return scan_walk_state(walker, &process, TID, 0x777, scanned, record);
}

static void scan_walk_state__running_thread_has_its_python_frames_alone(void **state)
{
	struct pp_stack_record *record = NULL;
	struct scanned scanned = {.flags = ~0U, .wait = PP_WAIT_DISK};

	(void)state;
	is_of_process = false;
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(walk_state(&scanned, &record), 0);
		free(record);
		assert_int_equal(asked_state, 0x777);
		tls_result = -EAGAIN;
	}
	assert_int_equal(scanned.wait, PP_WAIT_NONE);
	assert_int_equal(scanned.flags,
			 PP_COUNT_PYTHON | PP_COUNT_GC |
				 flags_of(PP_STOP_NO_USER, PP_PY_STOP_ROOT, PP_WAIT_NONE));
	assert_int_equal(unwound.key.id.tgid, TGID);
	assert_int_equal(unwound.key.tid, TID);
	assert_int_equal(unwound.stop, PP_STOP_NO_USER);
	assert_int_equal(unwound.py_stop, PP_PY_STOP_ROOT);
	assert_int_equal(unwound.python, PYTHON_INDEX);
	assert_int_equal(unwound.python_stored, 2);
	assert_int_equal(unwound.python_count, 5);
	assert_int_equal(unwound.stack_bytes, 0);
	unwind_result = -ENOMEM;
	assert_int_equal(walk_state(&scanned, &record), -ENOMEM);
}

static void scan_walk_state__without_a_sound_interpreter_is_enoent(void **state)
{
	struct pp_stack_record *record = NULL;
	struct scanned scanned = {};

	(void)state;
	is_published = false;
	assert_int_equal(walk_state(&scanned, &record), -ENOENT);
	is_published = true;
	process_python.is_refused = true;
	assert_int_equal(walk_state(&scanned, &record), -ENOENT);
	process_python.is_refused = false;
	process_python.file = NULL;
	assert_int_equal(walk_state(&scanned, &record), -ENOENT);
	assert_int_equal(unwinds, 0);
}

static void scan_walker_free__of_none_does_nothing(void **state)
{
	(void)state;
	scan_walker_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(scan_walk__unwinder_gets_the_registers_and_the_stack),
		TEST(scan_walk__stack_is_read_as_far_as_it_is_mapped),
		TEST(scan_walk__stack_that_is_mapped_meanwhile_is_read_in_whole_pages),
		TEST(scan_walk__python_frames_and_their_flags_are_handed_on),
		TEST(scan_walk__process_without_a_sound_interpreter_has_no_python_frames),
		TEST(scan_walk__lock_of_the_gil_is_a_wait_for_the_gil),
		TEST(scan_walk__state_of_one_of_several_interpreters_is_on_the_stack),
		TEST(scan_walk__without_a_slot_the_state_is_looked_up_in_the_list),
		TEST(scan_walk__list_that_cannot_be_read_is_not_asked_again),
		TEST(scan_walk__lists_of_4096_processes_are_kept),
		TEST(scan_walk__flags_say_why_there_is_no_user_stack),
		TEST(scan_walk__lack_of_memory_is_told),
		TEST(scan_walk_state__running_thread_has_its_python_frames_alone),
		TEST(scan_walk_state__without_a_sound_interpreter_is_enoent),
		TEST(scan_walker_free__of_none_does_nothing),
	};

	return cmocka_run_group_tests_name("finish/scan_walk", tests, NULL, NULL);
}
