/* SPDX-License-Identifier: BSD-2-Clause */
/* Interpreters are stand-ins that give a name a look, as if its slice was over then. */
#include "processes/thread_names.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/context_table.h"
#include "attach/file_table.h"
#include "base/clock.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "processes/who.h"
#include "python/python_process.h"

#define PROCESSES 2U
#define NAMES 3U

static struct process process[PROCESSES + 1]; /* by pid */
static struct python_info info;
static struct file file = {.python = &info};
static struct process_python python = {.file = &file};
static unsigned int given[PROCESSES + 1]; /* names of each */
static char looked_at[64];		  /* pids, in their order */
static bool is_sliced;
static struct thread_names *names;

struct process *process_table_find(const struct process_table *table, struct pp_process_id id)
{
	(void)table;
	return id.tgid <= PROCESSES ? &process[id.tgid] : NULL;
}

struct process_python *context_table_python(struct process *of)
{
	(void)of;
	return &python;
}

void who_read_details(struct process_table *processes, struct process *of)
{
	(void)processes, (void)of;
}

int proc_status_read(uint32_t tid, struct proc_status *ret_status)
{
	(void)tid, (void)ret_status;
	return -ESRCH;
}

int thread_comm_read(uint32_t tgid, uint32_t tid, char comm[PP_COMM_BYTES])
{
	(void)tgid, (void)tid, (void)comm;
	return -ESRCH;
}

int python_process_inner_tid(pid_t pid, bool is_musl, uint64_t thread_id, uint64_t native_id,
			     uint32_t *ret_tid)
{
	(void)pid, (void)is_musl, (void)native_id;
	*ret_tid = (uint32_t)thread_id;
	return 0;
}

void python_names_hint_release(struct python_names_hint *hint)
{
	(void)hint;
}

int python_process_thread_names(const struct python_info *of, pid_t pid, uint64_t bias,
				struct python_names_hint *hint,
				struct python_thread_name **ret_names, size_t *ret_count)
{
	const size_t used = strlen(looked_at), count = is_sliced ? 1 : NAMES;

	(void)of, (void)bias;
	assert_non_null(hint->slice);
	snprintf(looked_at + used, sizeof(looked_at) - used, "%s%d", used ? " " : "", pid);
	*ret_names = calloc(NAMES, sizeof(**ret_names));
	assert_non_null(*ret_names);
	for (*ret_count = 0; *ret_count < count; ++*ret_count) {
		struct python_thread_name *name = &(*ret_names)[*ret_count];

		given[pid]++;
		name->thread_id = (uint64_t)pid * 10 + given[pid];
		snprintf(name->name, sizeof(name->name), "name-%u", given[pid]);
	}
	return given[pid] < NAMES;
}

static int setup(void **state)
{
	(void)state;
	for (uint32_t pid = 1; pid <= PROCESSES; pid++)
		process[pid] = (struct process){.id = {.tgid = pid, .generation = 1}};
	memset(given, 0, sizeof(given));
	looked_at[0] = '\0';
	is_sliced = false;
	return thread_names_new(NULL, &names);
}

static int teardown(void **state)
{
	(void)state;
	thread_names_free(names);
	return 0;
}

static void want_all(void)
{
	for (uint32_t pid = 1; pid <= PROCESSES; pid++)
		thread_names_want(names, process[pid].id);
}

static void tick__reads_those_that_are_wanted(void **state)
{
	(void)state;
	want_all();
	thread_names_tick(names);
	assert_string_equal(looked_at, "1 2");
	assert_string_equal(thread_names_get(names, &process[1], 11, ""), "name-1");
	assert_string_equal(thread_names_get(names, &process[2], 23, ""), "name-3");
	/* Nobody looks again at once. */
	want_all();
	thread_names_tick(names);
	assert_string_equal(looked_at, "1 2");
}

/* The rest of a process with many threads comes after the others, a part a tick. */
static void tick__goes_on_with_the_rest_after_the_others(void **state)
{
	(void)state;
	is_sliced = true;
	want_all();
	for (unsigned int tick = 1; tick <= PROCESSES * NAMES; tick++)
		thread_names_tick(names);
	assert_string_equal(looked_at, "1 2 1 2 1 2");
	for (uint32_t i = 1; i <= NAMES; i++) {
		char wanted[16];

		snprintf(wanted, sizeof(wanted), "name-%u", i);
		assert_string_equal(thread_names_get(names, &process[1], 10 + i, ""), wanted);
	}
	/* Done: the next look is a new one, and not due yet. */
	want_all();
	thread_names_tick(names);
	assert_string_equal(looked_at, "1 2 1 2 1 2");
}

/* All parts are one look: names of earlier parts are kept as long as those of the last. */
static void expire__keeps_the_names_of_all_parts(void **state)
{
	(void)state;
	is_sliced = true;
	thread_names_want(names, process[1].id);
	for (unsigned int tick = 1; tick <= NAMES; tick++)
		thread_names_tick(names);
	thread_names_expire(names, mono_ns());
	for (uint32_t i = 1; i <= NAMES; i++)
		assert_memory_equal(thread_names_get(names, &process[1], 10 + i, ""), "name-", 5);
}

/* The kernel's name comes with each sample.  It is not the thread's own where the thread has it
 * from its creator, or where Python has told the kernel the first bytes of its name. */
static void get__follows_what_the_program_told_the_kernel(void **state)
{
	const struct process *of = &process[1];

	(void)state;
	memcpy(process[1].comm, "shop", sizeof("shop"));
	assert_string_equal(thread_names_get(names, of, 12, "GET /list"), "GET /list");
	assert_string_equal(thread_names_get(names, of, 12, "GET /report"), "GET /report");
	want_all();
	thread_names_tick(names);
	assert_string_equal(thread_names_get(names, of, 12, "GET /list"), "GET /list");
	assert_string_equal(thread_names_get(names, of, 12, "name-"), "name-2");
	assert_string_equal(thread_names_get(names, of, 12, "shop"), "name-2");
	assert_string_equal(thread_names_get(names, of, 12, "python3.12"), "name-2");
	assert_string_equal(thread_names_get(names, of, 12, ""), "name-2");
	/* No sample says what it is called: the last one that did, else the process's name. */
	assert_string_equal(thread_names_get(names, of, 99, ""), "shop");
	assert_string_equal(thread_names_get(names, of, 99, "0123456789abcdef"), "0123456789abcde");
	assert_string_equal(thread_names_get(names, of, 99, ""), "0123456789abcde");
}

static void tick__of_a_process_that_has_ended_reads_nothing(void **state)
{
	(void)state;
	is_sliced = true;
	thread_names_want(names, process[1].id);
	thread_names_tick(names);
	process[1].exit_ns = 5;
	thread_names_tick(names);
	thread_names_tick(names);
	assert_string_equal(looked_at, "1");
}

static void tick__has_nothing_to_do_before_any_is_wanted(void **state)
{
	(void)state;
	thread_names_tick(names);
	assert_string_equal(looked_at, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tick__reads_those_that_are_wanted),
		TEST(tick__goes_on_with_the_rest_after_the_others),
		TEST(expire__keeps_the_names_of_all_parts),
		TEST(tick__has_nothing_to_do_before_any_is_wanted),
		TEST(tick__of_a_process_that_has_ended_reads_nothing),
		TEST(get__follows_what_the_program_told_the_kernel),
	};

	return cmocka_run_group_tests_name("agent/thread_names", tests, NULL, NULL);
}
