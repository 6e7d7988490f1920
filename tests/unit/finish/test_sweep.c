/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: all */
/* The scan of blocked threads over live processes, as the agent runs it.  Needs root; without it
 * the program says so and ends. */
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "../python/interpreters.h"
#include "agent/agent.h"
#include "agent/finishing.h"
#include "agent/process_watch.h"
#include "agent/thread_names.h"
#include "base/clock.h"
#include "discover/cpus.h"
#include "drain/thread_slots.h"
#include "finish/miss_python.h"
#include "finish/sweep.h"
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

static struct options options = {
	.hz = 99, .events = PP_CAPTURE_OFFCPU, .interval_ns = 10 * NS_PER_SEC, .output = "-"};
static struct agent agent;
static pid_t wanted_pid; /* 0: no filter */

static int read_code(void *context, struct pp_process_id id, uint8_t python, uint64_t address,
		     struct python_code **ret_code)
{
	struct process *process = process_table_find(agent.processes, id);
	struct process_python *where = process ? image_table_python(process) : NULL;

	(void)context;
	(void)python;
	if (!where || !where->file)
		return -ESRCH;
	return python_code_read((pid_t)id.tgid, &where->file->python->bpf, where->bias, address,
				ret_code);
}

static void ignore_stack(void *context, const struct decoded_stack *stack)
{
	(void)context;
	(void)stack;
}
static void ignore_kernel(void *context, const struct decoded_kernel *kernel)
{
	(void)context;
	(void)kernel;
}
static void ignore_code(void *context, const struct pp_code_record *record)
{
	(void)context;
	(void)record;
}
static void ignore_miss(void *context, const struct decoded_miss *miss)
{
	(void)context;
	(void)miss;
}

/* As agent.c opens it, up to the first sample. */
static int agent_open(void)
{
	struct kernel_side_options side = {
		.hz = options.hz, .interval_ns = options.interval_ns, .waits = true};
	const struct drain_handlers handlers = {.context = &agent,
						.stack = ignore_stack,
						.kernel = ignore_kernel,
						.code = ignore_code,
						.miss = ignore_miss,
						.event = process_watch_on_event};
	char why[512] = "";
	int err = cpus_possible_count(&side.cpu_count);

	side.online_count = side.cpu_count;
	agent = (struct agent){.options = &options, .is_filtered = wanted_pid};
	if (wanted_pid)
		assert_int_equal(target_add_pid(&agent.filter, (uint32_t)wanted_pid), 0);
	if (!err)
		err = kernel_side_open(&side, why, sizeof(why), &agent.kernel);
	if (err) {
		print_message("skipped: %s: %s\n", strerror(-err), why);
		return err;
	}
	kernel_side_config(agent.kernel)->flags = PP_CONFIG_PAUSED;
	assert_int_equal(row_store_new(kernel_side_row_memory(agent.kernel), &agent.rows), 0);
	assert_int_equal(file_table_new(agent.rows, &agent.files), 0);
	assert_int_equal(image_table_new(agent.kernel, agent.files, &agent.images), 0);
	assert_int_equal(process_table_new(&agent.processes), 0);
	assert_int_equal(dictionary_new(20 << 20, &agent.dictionary), 0);
	assert_int_equal(miss_python_new(agent.dictionary, &agent.miss_python), 0);
	assert_int_equal(thread_names_new(&agent, &agent.thread_names), 0);
	finishing_prepare(&agent);
	dictionary_set_reader(agent.dictionary, read_code, NULL);
	assert_int_equal(sideband_open(NULL, &agent.sideband), 0);
	assert_int_equal(ring_new(kernel_side_stacks_ring(agent.kernel), RING_STACKS, &handlers,
				  &agent.stacks_ring),
			 0);
	assert_int_equal(ring_new(kernel_side_events_ring(agent.kernel), RING_EVENTS, &handlers,
				  &agent.events_ring),
			 0);
	return process_watch_start(&agent);
}

static void agent_close(void)
{
	ring_free(agent.stacks_ring);
	ring_free(agent.events_ring);
	thread_names_free(agent.thread_names);
	miss_python_free(agent.miss_python);
	dictionary_free(agent.dictionary);
	sideband_free(agent.sideband);
	process_watch_release(&agent);
	process_table_free(agent.processes);
	image_table_free(agent.images);
	file_table_free(agent.files);
	row_store_free(agent.rows);
	kernel_side_free(agent.kernel);
	target_filter_release(&agent.filter);
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
			bool one_frame_runs)
{
	static packed_frame frame[STITCH_MAX_FRAMES];
	size_t count = stitch(stack, one_frame_runs, frame), seen = 0;

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
		code = dictionary_code(agent.dictionary, packed_code(frame[i]));
		assert_non_null(code);
		assert_true(seen < said->frame_count);
		assert_string_equal(code->name, said->frame[seen].name);
		assert_int_equal(python_code_line(code, packed_what(frame[i])),
				 said->frame[seen].line);
		seen++;
	}
	assert_int_equal(seen, said->frame_count);
}

static void check_thread(const struct sweep *sweep, const struct said *said, bool one_frame_runs)
{
	const struct swept *swept = sweep_find(sweep, said->tid);
	const struct dict_stack *stack;

	assert_non_null(swept);
	assert_int_equal(swept->tid, said->tid);
	assert_false(swept->is_torn);
	assert_string_equal(wait_label(swept->wait), said->reason);
	assert_int_equal(swept->flags >> PP_COUNT_WAIT_SHIFT & 0x1f, swept->wait);
	assert_int_equal(swept->flags >> PP_COUNT_STOP_SHIFT & 0xff, PP_STOP_ROOT);
	assert_true(swept->flags & PP_COUNT_PYTHON);
	assert_false(swept->flags & (PP_COUNT_GIL_HELD | PP_COUNT_GC));
	assert_non_null(dictionary_find_kernel(agent.dictionary, swept->kernel_stack));
	stack = dictionary_find_stack(agent.dictionary, swept->user_stack);
	assert_non_null(stack);
	check_stack(said, stack, one_frame_runs);
}

static void check_interpreter(const struct interpreter *interpreter)
{
	CLEANUP(live_python_stop) struct live_python live =
		live_python_start(interpreter, "tests/unit/finish/sleepers.py");
	static struct said said[TARGET_THREADS];
	OWNED(sweep) struct sweep *sweep = NULL;
	struct process_python *python;
	struct process *process;
	size_t count;

	assert_true(live.pid > 0);
	count = read_said(live.text, said);
	assert_int_equal(count, TARGET_THREADS);
	assert_int_equal(agent_open(), 0);
	assert_int_equal(sweep_run(&agent.finisher, &sweep), 0);
	process = process_table_find_tgid(agent.processes, (uint32_t)live.pid);
	assert_non_null(process);
	python = image_table_python(process);
	assert_non_null(python->file);
	for (size_t i = 0; i < count; i++)
		check_thread(sweep, &said[i],
			     python->file->python->bpf.chain == PP_CHAIN_FRAME_OBJECT);
	agent_close();
}

static void sweep__sleeping_threads_of_every_interpreter(void **state)
{
	static struct interpreter interpreters[MAX_INTERPRETERS];
	size_t count = interpreters_find(interpreters);

	(void)state;
	if (!count)
		print_message("skipped: no Python at hand\n");
	for (size_t i = 0; i < count; i++) {
		print_message("  %s\n", interpreters[i].label);
		check_interpreter(&interpreters[i]);
	}
}

/* The waiter wakes up every 5 ms to ask again: whether it is torn is a matter of chance. */
static void check_gil(const struct interpreter *interpreter)
{
	CLEANUP(live_python_stop) struct live_python live =
		live_python_start(interpreter, "tests/unit/finish/gil_waiters.py");
	static struct said said[TARGET_THREADS];
	OWNED(sweep) struct sweep *sweep = NULL;
	const struct swept *holder, *waiter;

	assert_true(live.pid > 0);
	assert_int_equal(read_said(live.text, said), 2);
	usleep(300000);
	assert_int_equal(agent_open(), 0);
	assert_int_equal(sweep_run(&agent.finisher, &sweep), 0);
	holder = sweep_find(sweep, said[0].tid);
	waiter = sweep_find(sweep, said[1].tid);
	assert_non_null(holder);
	assert_int_equal(holder->wait, PP_WAIT_SLEEP);
	assert_true(holder->flags & PP_COUNT_GIL_HELD);
	/* It may have been awake when the sweep came by. */
	if (waiter) {
		assert_int_equal(waiter->wait, PP_WAIT_GIL);
		assert_false(waiter->flags & PP_COUNT_GIL_HELD);
	}
	agent_close();
}

static bool can_hold_gil(const struct interpreter *interpreter)
{
	char command[1024];

	snprintf(command, sizeof(command),
		 "%s -c 'import ctypes, threading; threading.get_native_id' 2> /dev/null",
		 interpreter->command);
	return !system(command);
}

static void sweep__tells_of_the_gil(void **state)
{
	static struct interpreter interpreters[MAX_INTERPRETERS];
	size_t count = interpreters_find(interpreters), checked = 0;

	(void)state;
	for (size_t i = 0; i < count; i++) {
		if (!can_hold_gil(&interpreters[i]))
			continue;
		print_message("  %s\n", interpreters[i].label);
		check_gil(&interpreters[i]);
		checked++;
	}
	if (!checked)
		print_message("skipped: no Python 3.8 or later with ctypes at hand\n");
}

/* A child that sleeps, in a process of its own. */
static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	if (!pid) {
		for (;;)
			pause();
	}
	usleep(50000);
	return pid;
}

static void stop_sleeper(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void sweep_refresh__keeps_what_the_dictionary_would_forget(void **state)
{
	OWNED(sweep) struct sweep *sweep = NULL;
	pid_t pid = start_sleeper();
	const struct swept *swept;
	struct swept *each;
	uint64_t user, kernel;

	(void)state;
	assert_int_equal(agent_open(), 0);
	assert_int_equal(sweep_run(&agent.finisher, &sweep), 0);
	swept = sweep_find(sweep, (uint32_t)pid);
	assert_non_null(swept);
	assert_int_equal(swept->wait, PP_WAIT_SLEEP);
	assert_int_equal(swept->id.tgid, pid);
	user = swept->user_stack;
	kernel = swept->kernel_stack;
	for (uint32_t epoch = 1; epoch < 5; epoch++) {
		dictionary_set_epoch(agent.dictionary, epoch);
		assert_int_equal(sweep_refresh(sweep), 0);
	}
	assert_non_null(dictionary_find_stack(agent.dictionary, user));
	dictionary_set_epoch(agent.dictionary, 8);
	assert_int_equal(sweep_refresh(sweep), 0);
	assert_non_null(dictionary_find_stack(agent.dictionary, user));
	assert_non_null(dictionary_find_kernel(agent.dictionary, kernel));
	/* All that have its stacks are forgotten: the next epochs are without them. */
	for (each = sweep_next(sweep, NULL); each; each = sweep_next(sweep, each))
		sweep_forget(sweep, each);
	assert_null(sweep_find(sweep, (uint32_t)pid));
	dictionary_set_epoch(agent.dictionary, 10);
	assert_int_equal(sweep_refresh(sweep), 0);
	assert_null(dictionary_find_stack(agent.dictionary, user));
	agent_close();
	stop_sleeper(pid);
}

static void sweep__only_threads_that_pass_the_filter(void **state)
{
	OWNED(sweep) struct sweep *sweep = NULL;
	pid_t wanted = start_sleeper(), other = start_sleeper();
	size_t count = 0;

	(void)state;
	wanted_pid = wanted;
	assert_int_equal(agent_open(), 0);
	wanted_pid = 0;
	assert_int_equal(sweep_run(&agent.finisher, &sweep), 0);
	assert_non_null(sweep_find(sweep, (uint32_t)wanted));
	assert_null(sweep_find(sweep, (uint32_t)other));
	for (const struct swept *swept = sweep_next(sweep, NULL); swept;
	     swept = sweep_next(sweep, swept))
		count++;
	assert_int_equal(count, 1);
	agent_close();
	stop_sleeper(wanted);
	stop_sleeper(other);
}

/* Slices end soon after their budget, and all of them together find what one run finds. */
static void sweep_step__works_in_slices(void **state)
{
	OWNED(sweep) struct sweep *sweep = NULL;
	pid_t pid = start_sleeper();
	struct sweep_stats stats;
	unsigned int slices = 0;
	int more;

	(void)state;
	assert_int_equal(agent_open(), 0);
	assert_int_equal(sweep_new(&agent.finisher, &(struct sweep_scope){}, &sweep), 0);
	while ((more = sweep_step(sweep, 1)) > 0) {
		assert_null(sweep_find(sweep, (uint32_t)pid));
		slices++;
	}
	assert_int_equal(more, 0);
	assert_int_equal(sweep_step(sweep, 1), 0);
	assert_non_null(sweep_find(sweep, (uint32_t)pid));
	sweep_get_stats(sweep, &stats);
	assert_true(slices >= stats.threads);
	assert_true(stats.passes >= 2);
	print_message("  %zu threads, %zu torn, %zu walks, %zu passes, %.1f ms\n", stats.threads,
		      stats.torn, stats.walks, stats.passes, (double)stats.spent_ns / 1e6);
	agent_close();
	stop_sleeper(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sweep__sleeping_threads_of_every_interpreter),
		cmocka_unit_test(sweep__tells_of_the_gil),
		cmocka_unit_test(sweep_refresh__keeps_what_the_dictionary_would_forget),
		cmocka_unit_test(sweep__only_threads_that_pass_the_filter),
		cmocka_unit_test(sweep_step__works_in_slices),
	};

	if (geteuid()) {
		printf("skipped: the sweep needs root\n");
		return 0;
	}
	if (agent_open())
		return 0;
	agent_close();
	return cmocka_run_group_tests_name("agent/sweep", tests, NULL, NULL);
}
