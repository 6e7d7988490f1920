/* SPDX-License-Identifier: BSD-2-Clause */
/* Live threads that compete for the GIL: the words on which they wait, and the holder, by the same
 * steps as bpf/lib/look.bpf.h. */
#include <cmocka.h>

#include <dirent.h>
#include <sys/syscall.h>

#include "../at_rest.h"
#include "interpreters.h"
#include "live_target.h"

#define LOOKS 300U
#define MAX_GILS 8U
/* As in bpf/lib/look.bpf.h. */
#define GIL_WAIT_LOW 24U
#define GIL_WAIT_HIGH 200U

static struct interpreter interpreters[MAX_INTERPRETERS];
static size_t interpreter_count;

static int find_interpreters(void **state)
{
	(void)state;
	interpreter_count = interpreters_find(interpreters);
	if (!interpreter_count)
		print_message("skipped: no Python at hand\n");
	return 0;
}

struct looks {
	unsigned int waits;	/* threads found in futex() */
	unsigned int of_gil;	/* on one of the GIL's words */
	unsigned int held;	/* times the GIL had a holder */
	unsigned int strangers; /* holders that are no thread state of the process */
};

/* Address of last_holder, or of what stands for it; as gil_find(). */
static uint64_t gil_find(const struct target *target, const struct python_info *info,
			 uint64_t thread_state)
{
	const struct pp_python *bpf = &info->bpf;
	uint64_t gil;

	if (bpf->flags & PP_PYTHON_FREE_THREADED)
		return 0;
	if (bpf->gil_mode == PP_GIL_CURRENT)
		return info->symbols.thread_state_current + target->bias;
	if (bpf->gil_mode == PP_GIL_RUNTIME)
		return bpf->runtime + target->bias + bpf->gil_offset;
	gil = peek(target->pid, peek(target->pid, thread_state + bpf->ts_interp) + bpf->interp_gil);
	return gil ? gil + bpf->gil_holder : 0;
}

/* As gil_owns(). */
static bool gil_owns(const struct target *target, const struct pp_python *bpf, uint64_t gil,
		     uint64_t word)
{
	uint64_t low = gil + GIL_WAIT_LOW, high = gil + GIL_WAIT_HIGH;

	if (bpf->gil_mode == PP_GIL_CURRENT) {
		low = target->bias + bpf->gil_wait_low;
		high = low + bpf->gil_wait_bytes;
	}
	return gil && word >= low && word < high;
}

/* As gil_holder(). */
static uint64_t gil_holder(const struct target *target, const struct pp_python *bpf, uint64_t gil)
{
	uint64_t holder[2] = {0};

	if (!gil || process_read(target->pid, gil, holder, sizeof(holder)))
		return 0;
	if (bpf->gil_mode == PP_GIL_CURRENT)
		return holder[0];
	return (uint32_t)holder[1] == 1 ? holder[0] : 0;
}

/* The word that a thread waits on in futex(); 0: it does something else. */
static uint64_t futex_word(pid_t pid, const char *tid)
{
	char path[64], text[128];
	OWNED_FILE FILE *file = NULL;
	unsigned long word;
	long number;

	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/syscall", pid, tid);
	file = fopen(path, "r");
	if (!file || !fgets(text, sizeof(text), file) ||
	    sscanf(text, "%ld %lx", &number, &word) != 2 || number != SYS_futex)
		return 0;
	return word;
}

static void look_at_threads(const struct target *target, const struct pp_python *bpf, uint64_t gil,
			    struct looks *looks)
{
	OWNED_DIR DIR *tasks = NULL;
	struct dirent *task;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", target->pid);
	tasks = opendir(path);
	while (tasks && (task = readdir(tasks))) {
		const uint64_t word = futex_word(target->pid, task->d_name);

		looks->waits += word != 0;
		looks->of_gil += word && gil_owns(target, bpf, gil, word);
	}
}

static bool is_known(const struct python_thread *threads, size_t count, uint64_t thread_state)
{
	for (size_t i = 0; i < count; i++)
		if (threads[i].thread_state == thread_state)
			return true;
	return false;
}

/* Three threads that count, and the main one, which reads from a pipe. */
static struct looks watch(const struct target *target, const struct python_info *info)
{
	OWNED_MEM struct python_thread *threads = NULL;
	struct looks looks = {0};
	uint64_t gil, holder;
	size_t count = 0;

	assert_int_equal(python_process_threads(info, target->pid, target->bias, &threads, &count),
			 0);
	assert_int_equal(count, 4);
	gil = gil_find(target, info, threads[0].thread_state);
	for (size_t i = 1; i < count; i++)
		assert_int_equal(gil_find(target, info, threads[i].thread_state), gil);
	for (unsigned int i = 0; i < LOOKS; i++) {
		look_at_threads(target, &info->bpf, gil, &looks);
		holder = gil_holder(target, &info->bpf, gil);
		looks.held += holder != 0;
		looks.strangers += holder && !is_known(threads, count, holder);
		usleep(700);
	}
	return looks;
}

static void gil_fields__tell_waits_and_holder(void **state)
{
	(void)state;
	for (size_t i = 0; i < interpreter_count; i++) {
		OWNED(python_info) struct python_info *info = NULL;
		CLEANUP(target_release) struct target target;
		struct looks looks;
		const char *reason;

		assert_int_equal(target_start(interpreters[i].command, "spin spin spin", &target),
				 0);
		assert_int_equal(python_info_read(target.image, &info, &reason), 0);
		looks = watch(&target, info);
		print_message(
			"# %s: %u of %u waits are for the GIL, %u of %u looks see its holder\n",
			interpreters[i].label, looks.of_gil, looks.waits, looks.held, LOOKS);
		assert_int_equal(looks.strangers, 0);
		if (info->bpf.flags & PP_PYTHON_FREE_THREADED) {
			assert_int_equal(looks.of_gil + looks.held, 0);
			continue;
		}
		assert_true(looks.held > LOOKS / 2);
		/* No right to see system calls, or a kernel without them. */
		if (!looks.waits) {
			print_message("skipped: /proc/PID/task/TID/syscall tells nothing\n");
			continue;
		}
		if (info->bpf.major == 2) /* the words are on the heap: not known */
			assert_int_equal(looks.of_gil, 0);
		else
			assert_true(looks.of_gil * 100 >= looks.waits * 95);
	}
}

/* Waits for another lock are none for the GIL, however near it lies. */
static void gil_fields__leave_other_locks_alone(void **state)
{
	(void)state;
	for (size_t i = 0; i < interpreter_count; i++) {
		OWNED_MEM struct python_thread *threads = NULL;
		OWNED(python_info) struct python_info *info = NULL;
		CLEANUP(target_release) struct target target;
		struct looks looks = {0};
		const char *reason;
		size_t count;

		assert_int_equal(target_start(interpreters[i].command,
					      "wait_for_lock wait_for_lock", &target),
				 0);
		assert_int_equal(python_info_read(target.image, &info, &reason), 0);
		assert_int_equal(
			python_process_threads(info, target.pid, target.bias, &threads, &count), 0);
		wait_for_rest(target.pid, 0);
		for (unsigned int n = 0; n < 20; n++)
			look_at_threads(&target, &info->bpf,
					gil_find(&target, info, threads[0].thread_state), &looks);
		if (looks.waits)
			assert_in_range(looks.waits, 30, 40);
		assert_int_equal(looks.of_gil, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gil_fields__tell_waits_and_holder),
		cmocka_unit_test(gil_fields__leave_other_locks_alone),
	};

	return cmocka_run_group_tests_name("python/python_gil", tests, find_interpreters, NULL);
}
