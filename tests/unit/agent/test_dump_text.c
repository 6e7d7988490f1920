/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/dump.h"

#include "stacks.h"

#include "attach/file_table.h"
#include "base/slice.h"
#include "discover/process_table.h"
#include "drain/thread_slots.h"
#include "finish/user_unwind.h"
#include "live/record.h"
#include "processes/thread_names.h"
#include "windows/source.h"

#define LONG_NAME_BYTES 4096U

static const struct known_stack stacks[] = {
	{1, "pn", {"work", "main"}, .file = "/app/mod.py", .line = 12, .module = 4},
	{3, "n", {"lost"}, .module = 5},
	{5, "k", {"do_sleep"}, .file = NULL},
};
static struct finisher finisher;
static const struct services services = {.finisher = &finisher};
static struct process process;
static struct dump_text *text;
static char *reply;
static size_t reply_size;
static char long_name[LONG_NAME_BYTES + 1];
static bool has_long_names;

const struct dict_stack *dictionary_find_stack(const struct dictionary *dictionary, uint64_t hash)
{
	(void)dictionary;
	return dict_user(hash);
}

const struct dict_kernel *dictionary_find_kernel(const struct dictionary *dictionary, uint64_t hash)
{
	(void)dictionary;
	return dict_kernel(hash);
}

struct file *file_table_in_slot(const struct file_table *table, uint32_t slot)
{
	static char path[] = "/usr/bin/python3";
	static struct file file = {.path = path};

	(void)table;
	return slot == 4 ? &file : NULL;
}

const char *thread_names_get(struct thread_names *names, const struct process *of, uint32_t tid,
			     const char *comm)
{
	(void)names, (void)comm;
	assert_ptr_equal(of, &process);
	return has_long_names ? long_name : tid == 70 ? "worker" : "";
}

const char *wait_label(enum pp_wait wait)
{
	return wait == PP_WAIT_LOCK ? "lock" : "sleep";
}

/* ---- */

static int setup(void **state)
{
	(void)state;
	known_stacks = stacks;
	known_stack_count = sizeof(stacks) / sizeof(stacks[0]);
	stacks_fail = NULL;
	has_long_names = false;
	memset(long_name, 'x', LONG_NAME_BYTES);
	process = (struct process){.id = {.tgid = 70, .generation = 1}, .uid = 1000, .comm = "app"};
	assert_int_equal(dump_text_new(&services, false, &text), 0);
	strings = NULL; /* the reply has strings of its own: stacks.h takes them from the call */
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	dump_text_free(text);
	text = NULL;
	free(reply);
	reply = NULL;
	return symbolizers != 0;
}

static int add(const struct dump_thread *thread, size_t count)
{
	int err = dump_text_add(text, &process, thread, count, NULL);

	dump_text_end_process(text);
	return err;
}

static const char *taken(void)
{
	free(reply);
	reply = NULL;
	assert_int_equal(dump_text_take(text, &reply, &reply_size), 0);
	assert_int_equal(strlen(reply), reply_size);
	return reply;
}

#define ROOT (PP_STOP_ROOT << PP_COUNT_STOP_SHIFT)

static void reply__has_each_stack_once_a_process(void **state)
{
	const struct dump_thread thread[] = {
		{.tid = 70,
		 .user_stack = 1,
		 .kernel_stack = 5,
		 .flags = ROOT,
		 .wait = PP_WAIT_LOCK},
		{.tid = 71, .user_stack = 1, .kernel_stack = 5, .flags = ROOT, .waited_ns = 9},
		{.tid = 72, .user_stack = 3, .flags = ROOT},
		{.tid = 73, .user_stack = 1, .flags = ROOT},
	};

	(void)state;
	assert_int_equal(add(thread, 4), 0);
	assert_int_equal(noted_count, 4);
	assert_true(is_noted(1) && is_noted(3));
	assert_false(begun_with.no_native);
	assert_null(begun_with.modules);
	process.id.tgid = 80;
	assert_int_equal(add(&thread[2], 1), 0);
	assert_string_equal(taken(), "process\t70\t1000\tapp\n"
				     "stack\t1\t3\n"
				     "frame\t2\t0\tdo_sleep\t\t\n"
				     "frame\t0\t12\twork\t/app/mod.py\t\n"
				     "frame\t1\t0\tmain\t\t/usr/bin/python3\n"
				     "thread\t70\t1\t0\t0\tworker\tlock\n"
				     "thread\t71\t1\t0\t9\t\tsleep\n"
				     "stack\t2\t1\n"
				     "frame\t1\t0\tlost\t\t\n" /* its file is not known any more */
				     "thread\t72\t2\t0\t0\t\tsleep\n"
				     "stack\t3\t2\n"
				     "frame\t0\t12\twork\t/app/mod.py\t\n"
				     "frame\t1\t0\tmain\t\t/usr/bin/python3\n"
				     "thread\t73\t3\t0\t0\t\tsleep\n"
				     "process\t80\t1000\tapp\n"
				     "stack\t4\t1\n"
				     "frame\t1\t0\tlost\t\t\n"
				     "thread\t72\t4\t0\t0\t\tsleep\n"
				     "end\t5\t0\t0\t0\n");
}

static const struct dump_thread some[] = {
	{.tid = 70, .user_stack = 1, .kernel_stack = 5, .flags = ROOT},
	{.tid = 71, .user_stack = 3, .flags = ROOT},
	{.tid = 72, .user_stack = 1, .kernel_stack = 5, .flags = ROOT},
};

/* Each slice is over after one step. */
static int add_a_step(void)
{
	const struct slice over = {};

	return dump_text_add(text, &process, some, 3, &over);
}

static void process__in_slices_is_the_same(void **state)
{
	char *whole;
	unsigned int slices = 1;

	(void)state;
	assert_int_equal(add(some, 3), 0);
	whole = strdup(taken());
	dump_text_free(text);
	assert_int_equal(dump_text_new(&services, false, &text), 0);
	late_files = 2;
	while (add_a_step() == 1)
		slices++;
	/* Three stacks noted, two files named, three threads written; the last file and thread
	 * share a slice. */
	assert_int_equal(slices, 3 + 2 + 3);
	dump_text_end_process(text);
	assert_string_equal(taken(), whole);
	free(whole);
}

static void process__that_is_left_in_the_middle_tells_of_the_rest(void **state)
{
	(void)state;
	while (!symbolizers || !is_resolved)
		assert_int_equal(add_a_step(), 1);
	dump_text_end_process(text);
	assert_int_equal(symbolizers, 0);
	assert_string_equal(taken(), "process\t70\t1000\tapp\n"
				     "stack\t1\t3\n"
				     "frame\t2\t0\tdo_sleep\t\t\n"
				     "frame\t0\t12\twork\t/app/mod.py\t\n"
				     "frame\t1\t0\tmain\t\t/usr/bin/python3\n"
				     "thread\t70\t1\t0\t0\tworker\tsleep\n"
				     "end\t1\t0\t0\t2\n");
}

/* What has no name yet gets another symbolizer, and nothing is written twice. */
static void refresh__names_the_rest_anew(void **state)
{
	(void)state;
	while (!symbolizers || !is_resolved)
		assert_int_equal(add_a_step(), 1);
	dump_text_refresh(text);
	assert_int_equal(symbolizers, 0);
	while (add_a_step() == 1)
		;
	assert_int_equal(noted_count, 2);
	dump_text_end_process(text);
	assert_string_equal(taken(), "process\t70\t1000\tapp\n"
				     "stack\t1\t3\n"
				     "frame\t2\t0\tdo_sleep\t\t\n"
				     "frame\t0\t12\twork\t/app/mod.py\t\n"
				     "frame\t1\t0\tmain\t\t/usr/bin/python3\n"
				     "thread\t70\t1\t0\t0\tworker\tsleep\n"
				     "stack\t2\t1\n"
				     "frame\t1\t0\tlost\t\t\n"
				     "thread\t71\t2\t0\t0\t\tsleep\n"
				     "thread\t72\t1\t0\t0\t\tsleep\n"
				     "end\t3\t0\t0\t0\n");
}

static void thread__without_a_stack_is_bare(void **state)
{
	const struct dump_thread thread[] = {
		{.tid = 70, .wait = PP_WAIT_LOCK},
		{.tid = 71, .user_stack = 99, .wait = PP_WAIT_LOCK}, /* a lost one */
	};

	(void)state;
	assert_int_equal(add(thread, 2), 0);
	assert_string_equal(taken(), "process\t70\t1000\tapp\n"
				     "thread\t70\t0\t0\t0\tworker\tlock\n"
				     "thread\t71\t0\t0\t0\t\tlock\n"
				     "end\t2\t0\t2\t0\n");
}

/* Returns the number in the field `at` of the first thread's record. */
static unsigned long thread_field(const struct dump_thread *thread, unsigned int at)
{
	const char *field;

	dump_text_free(text);
	assert_int_equal(dump_text_new(&services, false, &text), 0);
	assert_int_equal(add(thread, 1), 0);
	field = strstr(taken(), "thread\t");
	for (unsigned int i = 0; i < at; i++)
		field = strchr(field, '\t') + 1;
	return strtoul(field, NULL, 10);
}

static unsigned long flags_of(const struct dump_thread *thread)
{
	return thread_field(thread, 3);
}

static void flags__tell_what_the_thread_does(void **state)
{
	struct dump_thread thread = {.tid = 70, .user_stack = 1};

	(void)state;
	thread.flags = ROOT | PP_COUNT_GIL_HELD | PP_COUNT_PYTHON;
	assert_int_equal(flags_of(&thread), LIVE_GIL_HELD);
	thread.flags = ROOT | PP_COUNT_GC;
	assert_int_equal(flags_of(&thread), LIVE_GC);
	thread.flags = ROOT;
	thread.is_torn = true;
	assert_int_equal(flags_of(&thread), LIVE_TORN);
	assert_non_null(strstr(reply, "end\t1\t1\t0\t0\n"));
	thread.is_torn = false;
	thread.runs = true;
	assert_int_equal(flags_of(&thread), LIVE_RUNS);
	assert_non_null(strstr(reply, "\tworker\t\n")); /* it waits for nothing */
}

static void stack__that_does_not_reach_the_root_is_cut(void **state)
{
	struct dump_thread thread = {.tid = 70, .user_stack = 1};

	(void)state;
	for (enum pp_stop stop = 0; stop < PP_STOP_COUNT; stop++) {
		bool is_whole = stop == PP_STOP_ROOT || stop == PP_STOP_FINISHED;

		/* What the Python stack ended with is another thing. */
		thread.flags = stop << PP_COUNT_STOP_SHIFT | PP_PY_STOP_ROOT
								     << PP_COUNT_PY_STOP_SHIFT;
		assert_int_equal(flags_of(&thread), is_whole ? 0 : LIVE_CUT);
	}
	thread.flags = PP_STOP_READ_FAULT << PP_COUNT_STOP_SHIFT;
	thread.user_stack = 99;
	assert_int_equal(flags_of(&thread), 0); /* there is none */
	thread.user_stack = 1;
	thread.runs = true;
	assert_int_equal(flags_of(&thread), LIVE_RUNS); /* it has Python frames only */
}

static void process__name_may_fill_its_bytes(void **state)
{
	(void)state;
	memset(process.comm, 'n', sizeof(process.comm));
	assert_int_equal(add(NULL, 0), 0);
	assert_string_equal(taken(), "process\t70\t1000\tnnnnnnnnnnnnnnnn\nend\t0\t0\t0\t0\n");
}

static void reply__is_bounded_and_what_is_missing_counted(void **state)
{
	static struct dump_thread thread[DUMP_TEXT_MAX_BYTES / LONG_NAME_BYTES + 100];
	const size_t count = sizeof(thread) / sizeof(thread[0]);
	unsigned long long written, left_out, torn, bare;

	(void)state;
	has_long_names = true;
	assert_int_equal(add(thread, count), 0);
	assert_int_equal(add(thread, 7), 0); /* a process that has no place at all */
	dump_text_count(text, 1000);
	assert_int_equal(sscanf(strstr(taken(), "\nend\t"), "\nend\t%llu\t%llu\t%llu\t%llu",
				&written, &torn, &bare, &left_out),
			 4);
	assert_true(reply_size > DUMP_TEXT_MAX_BYTES);
	assert_true(reply_size < DUMP_TEXT_MAX_BYTES + 2 * LONG_NAME_BYTES);
	assert_int_equal(written + left_out, count + 7 + 1000);
	assert_true(left_out >= 1107 && left_out < 1207);
	assert_null(strstr(reply + 1, "process")); /* none but the first */
}

static void options__of_the_request_reach_the_names(void **state)
{
	(void)state;
	dump_text_free(text);
	assert_int_equal(dump_text_new(&services, true, &text), 0);
	assert_int_equal(add(NULL, 0), 0);
	assert_true(begun_with.no_native);
}

static void error__of_each_step_is_returned(void **state)
{
	static const char *const step[] = {"begin", "note", "resolve", "stack"};
	const struct dump_thread thread = {.tid = 70, .user_stack = 1, .flags = ROOT};

	(void)state;
	for (size_t i = 0; i < sizeof(step) / sizeof(step[0]); i++) {
		stacks_fail = step[i];
		assert_int_equal(add(&thread, 1), -ENOMEM);
		assert_int_equal(symbolizers, 0);
	}
	stacks_fail = NULL;
	assert_int_equal(add(&thread, 1), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reply__has_each_stack_once_a_process),
		TEST(process__in_slices_is_the_same),
		TEST(process__that_is_left_in_the_middle_tells_of_the_rest),
		TEST(refresh__names_the_rest_anew),
		TEST(thread__without_a_stack_is_bare),
		TEST(flags__tell_what_the_thread_does),
		TEST(stack__that_does_not_reach_the_root_is_cut),
		TEST(process__name_may_fill_its_bytes),
		TEST(reply__is_bounded_and_what_is_missing_counted),
		TEST(options__of_the_request_reach_the_names),
		TEST(error__of_each_step_is_returned),
	};

	return cmocka_run_group_tests_name("agent/dump_text", tests, NULL, NULL);
}
