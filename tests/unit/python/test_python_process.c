/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>

#include "../at_rest.h"
#include "interpreters.h"
#include "live_target.h"

/* One of each interpreter, with threads that spin, sleep and wait; stopped while no test looks. */
static struct target targets[MAX_INTERPRETERS];
static struct python_info *infos[MAX_INTERPRETERS];
static struct interpreter interpreters[MAX_INTERPRETERS];
static size_t interpreter_count;

static int start_target(size_t index, const char *threads, struct target *target,
			struct python_info **ret_info)
{
	const char *reason = "";
	int err;

	err = target_start(interpreters[index].command, threads, target);
	if (!err)
		err = python_info_read(target->image, ret_info, &reason);
	if (err)
		print_error("%s: %s %s\n", interpreters[index].label, strerror(-err), reason);
	return err;
}

static int start_targets(void **state)
{
	(void)state;
	interpreter_count = interpreters_find(interpreters);
	if (!interpreter_count)
		print_message("skipped: no Python at hand\n");
	for (size_t i = 0; i < interpreter_count; i++) {
		print_message("  %s\n", interpreters[i].label);
		if (start_target(i, "spin sleep_long wait_for_lock", &targets[i], &infos[i]))
			return -1;
		kill(targets[i].pid, SIGSTOP);
	}
	return 0;
}

static int end_targets(void **state)
{
	(void)state;
	for (size_t i = 0; i < interpreter_count; i++) {
		python_info_free(infos[i]);
		if (targets[i].pid > 0)
			target_release(&targets[i]);
	}
	return 0;
}

static void for_each_target(void (*check)(struct target *, const struct python_info *))
{
	for (size_t i = 0; i < interpreter_count; i++) {
		kill(targets[i].pid, SIGCONT);
		check(&targets[i], infos[i]);
		kill(targets[i].pid, SIGSTOP);
	}
}

static void check_version(struct target *target, const struct python_info *info)
{
	assert_int_equal(info->version_hex, target->version_hex);
	assert_int_equal(info->bpf.major, target->version_hex >> 24);
	assert_int_equal(info->bpf.minor, target->version_hex >> 16 & 0xff);
	assert_int_equal(info->is_static_exe, !strstr(target->path, ".so"));
}

static void python_info_read__version_is_what_the_interpreter_says(void **state)
{
	(void)state;
	for_each_target(check_version);
}

static void check_threads(struct target *target, const struct python_info *info)
{
	OWNED_MEM struct python_thread *threads = NULL;
	size_t count = 0;

	assert_int_equal(python_process_threads(info, target->pid, target->bias, &threads, &count),
			 0);
	assert_int_equal(count, target->thread_count);
	for (size_t i = 0; i < target->thread_count; i++) {
		const struct target_thread *said = &target->thread[i];
		bool is_listed = false;

		for (size_t t = 0; t < count; t++) {
			if (threads[t].thread_id != said->ident)
				continue;
			is_listed = true;
			if (info->bpf.ts_native_id != PP_NO_OFFSET)
				assert_int_equal(threads[t].native_id, said->native_id);
		}
		assert_true(is_listed);
	}
}

static void python_process_threads__are_those_that_the_target_names(void **state)
{
	(void)state;
	for_each_target(check_threads);
}

static void check_self_test(struct target *target, const struct python_info *info)
{
	struct python_info broken = *info;
	const char *reason = NULL;

	for (int i = 0; i < 20; i++)
		assert_int_equal(python_process_self_test(info, target->pid, target->bias, &reason),
				 0);
	assert_null(reason);

	broken.bpf.code_type += 8;
	assert_int_equal(python_process_self_test(&broken, target->pid, target->bias, &reason),
			 -EBADMSG);
	assert_string_equal(reason, "a frame's code object has another type than PyCode_Type");
	broken = *info;
	broken.bpf.frame_code += 8;
	assert_int_equal(python_process_self_test(&broken, target->pid, target->bias, &reason),
			 -EBADMSG);
	broken = *info;
	broken.bpf.ts_interp += 8;
	assert_int_equal(python_process_self_test(&broken, target->pid, target->bias, &reason),
			 -EBADMSG);
	assert_string_equal(reason, "a thread state does not belong to its interpreter");
}

static void python_process_self_test__takes_right_and_refuses_wrong_layouts(void **state)
{
	(void)state;
	for_each_target(check_self_test);
}

static uint64_t state_of(const struct python_thread *threads, size_t count, uint64_t ident)
{
	for (size_t i = 0; i < count; i++)
		if (threads[i].thread_id == ident)
			return threads[i].thread_state;
	return 0;
}

/* As find_thread_state() of the kernel side: the first source whose state has this thread's id. */
static uint64_t find_state(const struct target *target, const struct python_info *info,
			   const struct pp_tls tls[2], uint64_t tp)
{
	for (int i = 0; i < 2; i++) {
		uint64_t found = tls_value(target->pid, tp, &tls[i]);

		if (found && peek(target->pid, found + info->bpf.ts_thread_id) == tp)
			return found;
	}
	return 0;
}

static void check_tls(struct target *target, const struct python_info *info)
{
	OWNED_MEM struct python_thread *threads = NULL;
	const bool is_27 = info->bpf.major == 2;
	struct pp_tls tls[2], read[2];
	unsigned int attached = 0;
	size_t count;

	assert_int_equal(python_process_threads(info, target->pid, target->bias, &threads, &count),
			 0);
	python_process_tls(info, target->bias, false, tls);
	assert_int_equal(python_process_tls_read(info, target->pid, target->bias, false, read), 0);
	assert_memory_equal(tls, read, sizeof(tls));
	assert_int_not_equal(tls[0].mode, PP_TLS_NONE);
	if (is_27)
		assert_int_equal(tls[1].mode, PP_TLS_NONE);
	for (size_t i = 0; i < target->thread_count; i++) {
		const uint64_t tp = target->thread[i].ident;
		const uint64_t expected = state_of(threads, count, tp);

		assert_int_not_equal(expected, 0);
		if (!is_27) {
			assert_int_equal(tls_value(target->pid, tp, &tls[1]), expected);
			assert_int_equal(find_state(target, info, tls, tp), expected);
		}
	}
	/* The spinning thread is attached, but for the moments in which another one gets the
	 * GIL. */
	for (int i = 0; i < 100; i++) {
		const uint64_t tp = target_thread(target, "spin")->ident;
		const uint64_t found = tls_value(target->pid, tp, &tls[0]);

		attached += found == state_of(threads, count, tp);
		usleep(500);
	}
	assert_true(attached > 50);
}

static void python_process_tls__finds_each_thread_s_state(void **state)
{
	(void)state;
	for_each_target(check_tls);
}

/* As holds_gil() of the kernel side. */
static bool holds_gil(const struct target *target, const struct python_info *info,
		      const struct pp_tls tls[2], uint64_t thread_state)
{
	const struct pp_python *bpf = &info->bpf;
	const pid_t pid = target->pid;
	uint64_t base;

	switch (bpf->gil_mode) {
	case PP_GIL_RUNTIME:
		base = bpf->runtime + target->bias + bpf->gil_offset;
		return peek(pid, base) == thread_state && (uint32_t)peek(pid, base + 8) == 1;
	case PP_GIL_INTERPRETER:
		base = peek(pid, peek(pid, thread_state + bpf->ts_interp) + bpf->gil_offset);
		return peek(pid, base + bpf->gil_holder) == thread_state &&
		       (uint32_t)peek(pid, base + bpf->gil_locked) == 1;
	case PP_GIL_TSTATE_BIT:
		return peek(pid, thread_state + bpf->gil_offset) >> 5 & 1;
	case PP_GIL_TSTATE_INT:
		return (uint32_t)peek(pid, thread_state + bpf->gil_offset) != 0;
	case PP_GIL_CURRENT:
		return peek(pid, tls[0].address) == thread_state;
	default:
		return false;
	}
}

static void check_gil(struct target *target, const struct python_info *info)
{
	OWNED_MEM struct python_thread *threads = NULL;
	unsigned int by_spinner = 0, by_sleeper = 0;
	uint64_t spinner, sleeper;
	struct pp_tls tls[2];
	size_t count;

	assert_int_equal(python_process_threads(info, target->pid, target->bias, &threads, &count),
			 0);
	python_process_tls(info, target->bias, false, tls);
	spinner = state_of(threads, count, target_thread(target, "spin")->ident);
	sleeper = state_of(threads, count, target_thread(target, "sleep")->ident);
	for (int i = 0; i < 100; i++) {
		by_spinner += holds_gil(target, info, tls, spinner);
		by_sleeper += holds_gil(target, info, tls, sleeper);
		usleep(500);
	}
	if (info->bpf.flags & PP_PYTHON_FREE_THREADED)
		assert_int_equal(by_spinner, 0);
	else
		assert_true(by_spinner > 50);
	assert_int_equal(by_sleeper, 0);
}

static void gil_fields__say_who_holds_it(void **state)
{
	(void)state;
	for_each_target(check_gil);
}

static void check_gc(struct target *target, const struct python_info *info)
{
	OWNED_MEM struct python_thread *threads = NULL;
	unsigned int collecting = 0;
	uint64_t address = 0;
	size_t count;

	assert_int_equal(python_process_threads(info, target->pid, target->bias, &threads, &count),
			 0);
	if (info->bpf.gc_mode == PP_GC_RUNTIME)
		address = info->bpf.runtime + target->bias + info->bpf.gc_offset;
	else if (info->bpf.gc_mode == PP_GC_INTERPRETER)
		address = peek(target->pid, threads[0].thread_state + info->bpf.ts_interp) +
			  info->bpf.gc_offset;
	else if (info->bpf.gc_mode == PP_GC_GLOBAL)
		address = target->bias + info->bpf.gc_offset;
	assert_int_not_equal(address, 0);
	for (int i = 0; i < 100; i++) {
		const uint32_t flag = (uint32_t)peek(target->pid, address);

		assert_in_range(flag, 0, 1);
		collecting += flag;
		usleep(500);
	}
	/* The thread does nothing else. */
	assert_true(collecting > 50);
}

static void gc_fields__say_when_it_runs(void **state)
{
	(void)state;
	for (size_t i = 0; i < interpreter_count; i++) {
		OWNED(python_info) struct python_info *info = NULL;
		CLEANUP(target_release) struct target target;

		assert_int_equal(start_target(i, "collect", &target, &info), 0);
		check_gc(&target, info);
	}
}

/* The name of the function that runs in a frame: ASCII, at most 63 characters. */
static void read_frame_name(const struct target *target, const struct pp_python *bpf,
			    uint64_t frame, char ret_name[64])
{
	const uint64_t code = peek(target->pid, frame + bpf->frame_code) & ~7ULL;
	const uint64_t name = peek(target->pid, code + bpf->code_name);
	uint64_t length = peek(target->pid, name + bpf->str_length);

	length = length > 63 ? 63 : length;
	memset(ret_name, 0, 64);
	assert_int_equal(process_read(target->pid, name + bpf->str_ascii_data, ret_name, length),
			 0);
}

/* The sleeper stands still: its frames are known exactly. */
static void check_frames(struct target *target, const struct python_info *info)
{
	static const char *const expected[] = {"sleep_long", "run", "_bootstrap_inner",
					       "_bootstrap"};
	OWNED_MEM struct python_thread *threads = NULL;
	const struct pp_python *bpf = &info->bpf;
	unsigned int seen = 0;
	uint64_t frame;
	char name[64];
	size_t count;

	wait_for_rest(target->pid, 1); /* one counts all the time */
	assert_int_equal(python_process_threads(info, target->pid, target->bias, &threads, &count),
			 0);
	frame = peek(target->pid, state_of(threads, count, target_thread(target, "sleep")->ident) +
					  bpf->ts_frame);
	if (bpf->chain == PP_CHAIN_CFRAME_ENTRY || bpf->chain == PP_CHAIN_CFRAME_SHIM)
		frame = peek(target->pid, frame + bpf->cframe_current);
	for (; frame && seen < 10; frame = peek(target->pid, frame + bpf->frame_previous)) {
		if (bpf->chain >= PP_CHAIN_CFRAME_SHIM &&
		    (uint8_t)peek(target->pid, frame + bpf->frame_owner) >= bpf->shim_owner)
			continue;
		read_frame_name(target, bpf, frame, name);
		/* 2.7 calls them __bootstrap_inner and __bootstrap. */
		if (seen < ARRAY_SIZE(expected))
			assert_non_null(strstr(name, expected[seen]));
		seen++;
	}
	/* 3.14 wraps the thread's entry once more. */
	assert_in_range(seen, ARRAY_SIZE(expected), ARRAY_SIZE(expected) + 2);
}

static void frame_fields__walk_a_sleeping_thread_to_its_root(void **state)
{
	(void)state;
	for_each_target(check_frames);
}

static void python_process_threads__process_that_is_gone_is_an_error(void **state)
{
	OWNED_MEM struct python_thread *threads = NULL;
	struct python_info info = {.symbols = {.runtime = 0x1000}};
	const char *reason = NULL;
	size_t count = 7;
	pid_t child = fork();

	(void)state;
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	assert_true(python_process_threads(&info, child, 0, &threads, &count) < 0);
	assert_true(python_process_self_test(&info, child, 0, &reason) < 0);
	assert_null(threads);
	assert_int_equal(count, 7);
}

static void python_process_threads__no_list_head_is_enotsup(void **state)
{
	OWNED_MEM struct python_thread *threads = NULL;
	struct python_info info = {.symbols = {.thread_state_current = 0x1000}};
	size_t count;

	(void)state;
	assert_int_equal(python_process_threads(&info, getpid(), 0, &threads, &count), -ENOTSUP);
}

/* Memory of our own plays the target: a list that never ends. */
static void python_process_threads__endless_list_is_bounded(void **state)
{
	static uint64_t runtime[8], interp[4], thread_state[64];
	struct python_info info = {
		.symbols = {.runtime = (uint64_t)(uintptr_t)runtime},
		.interp_next = 0,
		.interp_threads_head = 8,
		.ts_next = 0,
		.bpf = {.ts_interp = 8, .ts_thread_id = 16, .ts_native_id = PP_NO_OFFSET},
	};
	OWNED_MEM struct python_thread *threads = NULL;
	size_t count;

	(void)state;
	runtime[0] = (uint64_t)(uintptr_t)interp;
	interp[0] = (uint64_t)(uintptr_t)interp;
	interp[1] = (uint64_t)(uintptr_t)thread_state;
	thread_state[0] = (uint64_t)(uintptr_t)thread_state;
	thread_state[1] = (uint64_t)(uintptr_t)interp;
	thread_state[2] = 1234;
	assert_int_equal(python_process_threads(&info, getpid(), 0, &threads, &count), 0);
	assert_int_equal(count, 64 + 4 * process_count_threads(getpid()));
	assert_int_equal(threads[count - 1].thread_id, 1234);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(python_info_read__version_is_what_the_interpreter_says),
		cmocka_unit_test(python_process_threads__are_those_that_the_target_names),
		cmocka_unit_test(python_process_self_test__takes_right_and_refuses_wrong_layouts),
		cmocka_unit_test(python_process_tls__finds_each_thread_s_state),
		cmocka_unit_test(gil_fields__say_who_holds_it),
		cmocka_unit_test(gc_fields__say_when_it_runs),
		cmocka_unit_test(frame_fields__walk_a_sleeping_thread_to_its_root),
		cmocka_unit_test(python_process_threads__process_that_is_gone_is_an_error),
		cmocka_unit_test(python_process_threads__no_list_head_is_enotsup),
		cmocka_unit_test(python_process_threads__endless_list_is_bounded),
	};

	return cmocka_run_group_tests_name("python/python_process", tests, start_targets,
					   end_targets);
}
