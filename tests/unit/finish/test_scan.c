/* SPDX-License-Identifier: BSD-2-Clause */
/* The scan of blocked threads over live processes, as the agent runs it.  Needs root; without it
 * the program says so and ends. */
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../at_rest.h"
#include "../python/interpreters.h"
#include "agent/stages.h"
#include "base/clock.h"
#include "child/children.h"
#include "drain/thread_slots.h"
#include "files/client.h"
#include "files/opening.h"
#include "files/serve.h"
#include "finish/scan.h"
#include "finish/scan_walk.h"
#include "processes/process_watch.h"
#include "scan_whole.h"
#include "symbolize/stitch.h"

#define TARGET_THREADS 7U
#define MAX_FRAMES 32U

/* What the target says of one of its threads. */
struct said {
	uint32_t tid;
	char reason[16];
	struct {
		uint32_t line;
		char name[64];
	} frame[MAX_FRAMES];
	size_t frame_count;
};

static struct options options = {.hz = 99,
				 .events = PP_CAPTURE_OFFCPU,
				 .interval_ns = 10 * NS_PER_SEC,
				 .output = "no",
				 .output_kind = OPTIONS_OUTPUT_NONE};
static struct agent agent;
static struct foreign *foreign; /* this program, started again */

/* An interpreter at work, and what it said of its threads. */
struct target {
	struct live_python live;
	struct said said[TARGET_THREADS];
	size_t count;
};
static struct target targets[MAX_INTERPRETERS];
static size_t target_count;

/* Of these processes or, without any, of the whole machine, which takes a second under
 * sanitizers. */
static int agent_open(int *pid, size_t count)
{
	int err;

	agent = (struct agent){.options = &options, .services.foreign = foreign};
	options.pid = pid;
	options.pid_count = count;
	err = stages_open(&agent);
	options.pid = NULL;
	options.pid_count = 0;
	if (err) {
		print_message("skipped: %s\n", strerror(-err));
		return err;
	}
	return process_watch_start(agent.watch);
}

static void agent_close(void)
{
	stages_release(&agent);
}

static size_t read_said(FILE *text, struct said said[TARGET_THREADS])
{
	size_t count = 0;
	char line[256];

	while (fgets(line, sizeof(line), text) && strncmp(line, "END", 3)) {
		struct said *last = count ? &said[count - 1] : NULL;
		uint32_t tid, number;
		char word[64];

		if (sscanf(line, "T %u %15[^\n]", &tid, word) == 2 && count < TARGET_THREADS) {
			said[count] = (struct said){.tid = tid};
			memcpy(said[count++].reason, word, 16);
		} else if (last && sscanf(line, "F %u %u %63[^\n]", &tid, &number, word) == 3 &&
			   tid == last->tid && last->frame_count < MAX_FRAMES) {
			last->frame[last->frame_count].line = number;
			memcpy(last->frame[last->frame_count++].name, word, 64);
		}
	}
	return count;
}

/* Names and lines in the order of the target's own, native frames before and behind them, no
 * gap. */
static void check_stack(const struct said *said, const struct dict_stack *stack,
			bool one_frame_segments)
{
	static packed_frame frame[STITCH_MAX_FRAMES];
	size_t count = stitch(stack, one_frame_segments, frame), seen = 0;

	assert_int_equal(stack->stop, PP_STOP_ROOT);
	assert_int_equal(stack->py_stop, PP_PY_STOP_ROOT);
	assert_int_equal(stack->python_count, said->frame_count);
	assert_int_equal(packed_kind(frame[0]), PP_FRAME_NATIVE);
	assert_int_equal(packed_kind(frame[count - 1]), PP_FRAME_NATIVE);
	for (size_t i = 0; i < count; i++) {
		const struct python_code *code;

		assert_int_not_equal(packed_kind(frame[i]), PP_FRAME_GAP);
		if (packed_kind(frame[i]) != PP_FRAME_PYTHON)
			continue;
		code = dictionary_code(agent.services.dictionary, packed_code(frame[i]));
		assert_non_null(code);
		if (code->raw) {
			struct python_code_text text;

			assert_int_equal(python_code_text_decode(code->raw, &text), 0);
			assert_int_equal(dictionary_decode_code(agent.services.dictionary,
								packed_code(frame[i]), &text),
					 0);
		}
		assert_true(seen < said->frame_count);
		assert_string_equal(code->name, said->frame[seen].name);
		assert_int_equal(python_code_line(code, packed_what(frame[i])),
				 said->frame[seen].line);
		seen++;
	}
	assert_int_equal(seen, said->frame_count);
}

static void check_thread(const struct scan *scan, const struct said *said, bool one_frame_segments)
{
	const struct scanned *scanned = scan_find(scan, said->tid);
	const struct dict_stack *stack;

	assert_non_null(scanned);
	assert_int_equal(scanned->tid, said->tid);
	assert_false(scanned->is_torn);
	assert_string_equal(wait_label(scanned->wait), said->reason);
	assert_int_equal(scanned->flags >> PP_COUNT_WAIT_SHIFT & 0x1f, scanned->wait);
	assert_int_equal(scanned->flags >> PP_COUNT_STOP_SHIFT & 0xff, PP_STOP_ROOT);
	assert_true(scanned->flags & PP_COUNT_PYTHON);
	assert_false(scanned->flags & (PP_COUNT_GIL_HELD | PP_COUNT_GC));
	assert_non_null(dictionary_find_kernel(agent.services.dictionary, scanned->kernel_stack));
	stack = dictionary_find_stack(agent.services.dictionary, scanned->user_stack);
	assert_non_null(stack);
	check_stack(said, stack, one_frame_segments);
}

/* A busy machine may keep a scan from walking all threads within its time: it is made again. */
static int scan_in_time(struct scan **ret_scan)
{
	for (unsigned int tries = 0;; tries++) {
		struct scan_stats stats;
		int err = scan_whole(&agent.finisher, ret_scan);

		if (err)
			return err;
		scan_get_stats(*ret_scan, &stats);
		if (!stats.late || tries == 5)
			return 0;
		print_message("  again: %zu threads were late\n", stats.late);
		scan_free(TAKE(*ret_scan));
	}
}

/* Of no thread state: there are no frames. */
static int walk_state(struct process *process)
{
	OWNED(scan_walker) struct scan_walker *walker = NULL;
	OWNED_MEM struct pp_stack_record *record = NULL;
	struct scanned scanned = {};
	int err;

	assert_int_equal(scan_walker_new(&agent.finisher, &walker), 0);
	err = scan_walk_state(walker, process, process->id.tgid, 0, &scanned, &record);
	assert_int_equal(record != NULL, !err);
	if (record)
		assert_int_equal(record->python_stored, 0);
	return err;
}

static void check_walk_state(struct process *process, struct process_python *python)
{
	assert_int_equal(walk_state(process), 0);
	python->is_refused = true;
	assert_int_equal(walk_state(process), -ENOENT);
	python->is_refused = false;
}

static bool runs_any(const struct interpreter *interpreter)
{
	(void)interpreter;
	return true;
}

/* Starts the script in all interpreters that can run it: one agent looks at all of them, as the
 * kernel's verifier takes a third of a second for each agent. */
static void targets_start(const char *script, bool (*can_run)(const struct interpreter *))
{
	static struct interpreter interpreters[MAX_INTERPRETERS];
	size_t count = interpreters_find(interpreters);

	for (size_t i = 0; i < count; i++) {
		struct target *target = &targets[target_count];

		if (!can_run(&interpreters[i]))
			continue;
		print_message("  %s\n", interpreters[i].label);
		target->live = live_python_start(&interpreters[i], script);
		target_count++;
		assert_true(target->live.pid > 0);
		target->count = read_said(target->live.text, target->said);
	}
	if (!target_count) {
		print_message("skipped: no CPython that can run %s\n", script);
		skip();
	}
}

static void targets_open(void)
{
	int pid[MAX_INTERPRETERS];

	for (size_t i = 0; i < target_count; i++)
		pid[i] = (int)targets[i].live.pid;
	assert_int_equal(agent_open(pid, target_count), 0);
}

/* cmocka's teardown: a check that failed leaves its function without cleaning up. */
static int targets_stop(void **state)
{
	(void)state;
	while (target_count)
		live_python_stop(&targets[--target_count].live);
	return 0;
}

static void check_target(const struct scan *scan, const struct target *target)
{
	struct process_python *python;
	struct process *process;

	process = process_table_find_tgid(agent.services.processes, (uint32_t)target->live.pid);
	assert_non_null(process);
	python = context_table_python(process);
	assert_non_null(python->file);
	for (size_t i = 0; i < target->count; i++)
		check_thread(scan, &target->said[i],
			     python->file->python->bpf.chain == PP_CHAIN_FRAME_OBJECT);
	check_walk_state(process, python);
}

static void scan__sleeping_threads_of_every_interpreter(void **state)
{
	OWNED(scan) struct scan *scan = NULL;

	(void)state;
	targets_start("tests/unit/finish/sleepers.py", runs_any);
	targets_open();
	assert_int_equal(scan_in_time(&scan), 0);
	for (size_t i = 0; i < target_count; i++) {
		assert_int_equal(targets[i].count, TARGET_THREADS);
		check_target(scan, &targets[i]);
	}
	agent_close();
}

/* Returns the number of the system call that the thread sleeps in; -1: it is in none. */
static int system_call(pid_t pid, uint32_t tid)
{
	OWNED_FILE FILE *file = NULL;
	char path[64];
	int number = -1;

	snprintf(path, sizeof(path), "/proc/%d/task/%u/syscall", pid, tid);
	file = fopen(path, "r");
	if (file && fscanf(file, "%d", &number) != 1)
		number = -1; /* "running" */
	return number;
}

/* Once the holder sleeps with the GIL in its hands, the other one can only wait for it. */
static void wait_for_gil_waiter(pid_t pid, const struct said said[2])
{
	bool is_held = false;

	for (unsigned int i = 0; i < 20000; i++) {
		const int held_in = system_call(pid, said[0].tid);

		is_held |= held_in == SYS_clock_nanosleep || held_in == SYS_nanosleep;
		if (is_held && system_call(pid, said[1].tid) == SYS_futex)
			return;
		usleep(1000);
	}
	fail_msg("nobody waits for the GIL");
}

/* The waiter wakes up every 5 ms to ask again: whether it is torn is a matter of chance. */
static void check_gil(const struct scan *scan, const struct said said[2])
{
	const struct scanned *holder = scan_find(scan, said[0].tid);
	const struct scanned *waiter = scan_find(scan, said[1].tid);

	assert_non_null(holder);
	assert_int_equal(holder->wait, PP_WAIT_SLEEP);
	assert_true(holder->flags & PP_COUNT_GIL_HELD);
	/* It may have been awake when the scan came by. */
	if (waiter) {
		assert_int_equal(waiter->wait, PP_WAIT_GIL);
		assert_false(waiter->flags & PP_COUNT_GIL_HELD);
	}
}

/* Python 3.8 or later with ctypes. */
static bool can_hold_gil(const struct interpreter *interpreter)
{
	char command[1024];

	snprintf(command, sizeof(command),
		 "%s -c 'import ctypes, threading; threading.get_native_id' 2> /dev/null",
		 interpreter->command);
	return !system(command);
}

static void scan__tells_of_the_gil(void **state)
{
	OWNED(scan) struct scan *scan = NULL;

	(void)state;
	targets_start("tests/unit/finish/gil_waiters.py", can_hold_gil);
	for (size_t i = 0; i < target_count; i++) {
		assert_int_equal(targets[i].count, 2);
		wait_for_gil_waiter(targets[i].live.pid, targets[i].said);
	}
	targets_open();
	assert_int_equal(scan_whole(&agent.finisher, &scan), 0);
	for (size_t i = 0; i < target_count; i++)
		check_gil(scan, targets[i].said);
	agent_close();
}

/* A child that sleeps, in a process of its own. */
static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	if (!pid) {
		for (;;)
			pause();
	}
	wait_for_rest(pid, 0);
	return pid;
}

static void stop_sleeper(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void scan_refresh__keeps_what_the_dictionary_would_forget(void **state)
{
	OWNED(scan) struct scan *scan = NULL;
	pid_t pid = start_sleeper();
	const struct scanned *scanned;
	struct scanned *each;
	uint64_t user, kernel;

	(void)state;
	assert_int_equal(agent_open(NULL, 0), 0);
	assert_int_equal(scan_whole(&agent.finisher, &scan), 0);
	scanned = scan_find(scan, (uint32_t)pid);
	assert_non_null(scanned);
	assert_int_equal(scanned->wait, PP_WAIT_SLEEP);
	assert_int_equal(scanned->id.tgid, pid);
	user = scanned->user_stack;
	kernel = scanned->kernel_stack;
	for (uint32_t epoch = 1; epoch < 5; epoch++) {
		dictionary_set_epoch(agent.services.dictionary, epoch);
		assert_int_equal(scan_refresh(scan), 0);
	}
	assert_non_null(dictionary_find_stack(agent.services.dictionary, user));
	dictionary_set_epoch(agent.services.dictionary, 8);
	assert_int_equal(scan_refresh(scan), 0);
	assert_non_null(dictionary_find_stack(agent.services.dictionary, user));
	assert_non_null(dictionary_find_kernel(agent.services.dictionary, kernel));
	/* All that have its stacks are forgotten: the next epochs are without them. */
	for (each = scan_next(scan, NULL); each; each = scan_next(scan, each))
		scan_forget(scan, each);
	assert_null(scan_find(scan, (uint32_t)pid));
	dictionary_set_epoch(agent.services.dictionary, 10);
	assert_int_equal(scan_refresh(scan), 0);
	assert_null(dictionary_find_stack(agent.services.dictionary, user));
	agent_close();
	stop_sleeper(pid);
}

static void scan__only_threads_that_pass_the_filter(void **state)
{
	OWNED(scan) struct scan *scan = NULL;
	pid_t wanted = start_sleeper(), other = start_sleeper();
	size_t count = 0;

	(void)state;
	assert_int_equal(agent_open(&wanted, 1), 0);
	assert_int_equal(scan_whole(&agent.finisher, &scan), 0);
	assert_non_null(scan_find(scan, (uint32_t)wanted));
	assert_null(scan_find(scan, (uint32_t)other));
	for (const struct scanned *scanned = scan_next(scan, NULL); scanned;
	     scanned = scan_next(scan, scanned))
		count++;
	assert_int_equal(count, 1);
	assert_int_equal(
		walk_state(process_table_find_tgid(agent.services.processes, (uint32_t)wanted)),
		-ENOENT);
	agent_close();
	stop_sleeper(wanted);
	stop_sleeper(other);
}

/* Slices end soon after their budget, and all of them together find what one run finds. */
static void scan_step__works_in_slices(void **state)
{
	OWNED(scan) struct scan *scan = NULL;
	pid_t pid = start_sleeper();
	struct scan_stats stats;
	unsigned int slices = 0;
	int more;

	(void)state;
	assert_int_equal(agent_open(NULL, 0), 0);
	assert_int_equal(scan_new(&agent.finisher, &(struct scan_scope){}, &scan), 0);
	while ((more = scan_step(scan, 1)) > 0) {
		assert_null(scan_find(scan, (uint32_t)pid));
		slices++;
	}
	assert_int_equal(more, 0);
	assert_int_equal(scan_step(scan, 1), 0);
	assert_non_null(scan_find(scan, (uint32_t)pid));
	scan_get_stats(scan, &stats);
	assert_true(slices >= stats.threads);
	assert_true(stats.passes >= 2);
	assert_true(stats.spent_ns > 0);
	/* Without a bound, as few steps as there are tasks before it. */
	scan_free(TAKE(scan));
	assert_int_equal(scan_new(&agent.finisher, &(struct scan_scope){}, &scan), 0);
	for (slices = 0; scan_step(scan, UINT64_MAX) > 0; slices++)
		;
	assert_true(slices < stats.threads / 2);
	assert_non_null(scan_find(scan, (uint32_t)pid));
	print_message("  %zu threads, %zu torn, %zu walks, %zu passes, %.1f ms\n", stats.threads,
		      stats.torn, stats.walks, stats.passes, (double)stats.spent_ns / 1e6);
	agent_close();
	stop_sleeper(pid);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(scan__sleeping_threads_of_every_interpreter,
					  targets_stop),
		cmocka_unit_test_teardown(scan__tells_of_the_gil, targets_stop),
		cmocka_unit_test(scan_refresh__keeps_what_the_dictionary_would_forget),
		cmocka_unit_test(scan__only_threads_that_pass_the_filter),
		cmocka_unit_test(scan_step__works_in_slices),
	};

	int failed;

	if (argc && child_named(argv[0]) == CHILD_OPENER)
		opening_child_main();
	if (argc && child_named(argv[0]) == CHILD_FILES)
		foreign_child_main();
	if (geteuid()) {
		printf("skipped: the scan needs root\n");
		return 0;
	}
	if (foreign_new("/proc/self/exe", &foreign) || !foreign_await(foreign) ||
	    agent_open(NULL, 0)) {
		foreign_free(foreign);
		return 0;
	}
	agent_close();
	failed = cmocka_run_group_tests_name("agent/scan", tests, NULL, NULL);
	foreign_free(foreign);
	return failed;
}
