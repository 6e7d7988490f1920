/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "interpreters.h"
#include "live_target.h"
#include "python/python_objects.h"

#define MIN_THREADS 20U
#define RACING_LOOKS 300U
#define CALLS_FOR_FIRST 2U	/* interpreter; 1 where _PyRuntime is known */
#define CALLS_AN_INTERPRETER 4U /* its words; the dictionary's object, table and slots */
#define STEPS 14U		/* of steps_oracle.py */

static unsigned int calls;

/* Instead of libc's. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long here_count,
			 const struct iovec *there, unsigned long there_count, unsigned long flags)
{
	calls++;
	return syscall(SYS_process_vm_readv, pid, here, here_count, there, there_count, flags);
}

static const struct python_thread_name *find(const struct python_thread_name *names, size_t count,
					     uint64_t ident)
{
	for (size_t i = 0; i < count; i++) {
		if (names[i].thread_id == ident)
			return &names[i];
	}
	return NULL;
}

/* "-" is the empty name; cut as the contract says. */
static void name_of_hex(const char *hex, char name[1024])
{
	size_t size = 0;

	memset(name, 0, 1024);
	while (size < 1023 && sscanf(hex + 2 * size, "%2hhx", (unsigned char *)&name[size]) == 1)
		size++;
	if (size > 63) {
		size = 63;
		while (((unsigned char)name[size] & 0xc0) == 0x80)
			size--;
	}
	name[size] = '\0';
}

/* Compares what was read with all lines that the interpreter printed. */
static size_t check_names(FILE *said, const struct python_thread_name *names, size_t count)
{
	char *line = NULL, hex[2048], expected[1024];
	size_t capacity = 0, checked = 0;
	unsigned long ident;
	unsigned int native_id;

	while (getline(&line, &capacity, said) > 0 && strcmp(line, "END\n")) {
		const struct python_thread_name *name;

		if (sscanf(line, "N %lu %u %2047s", &ident, &native_id, hex) != 3)
			continue;
		name = find(names, count, ident);
		name_of_hex(hex, expected);
		if (!name)
			print_error("%s is missing\n", expected);
		assert_non_null(name);
		assert_string_equal(name->name, expected);
		assert_int_equal(name->native_id, native_id);
		checked++;
	}
	free(line);
	return checked;
}

/* Names are read when all lines are there, so that the threads are what was printed. */
static FILE *read_until_end(FILE *text)
{
	char *line = NULL;
	size_t capacity = 0;
	FILE *copy = tmpfile();

	assert_non_null(copy);
	while (getline(&line, &capacity, text) > 0) {
		fputs(line, copy);
		if (!strcmp(line, "END\n"))
			break;
	}
	rewind(copy);
	free(line);
	return copy;
}

static void check_interpreter(const struct interpreter *interpreter)
{
	struct live_python live =
		live_python_start(interpreter, "tests/unit/python/threads_oracle.py");
	OWNED_FILE FILE *said = read_until_end(live.text);
	OWNED(elf_image) struct elf_image *image = NULL;
	OWNED(python_info) struct python_info *info = NULL;
	OWNED_MEM struct python_thread_name *names = NULL;
	struct target target = {.pid = live.pid};
	const char *reason = "";
	size_t count = 0, checked;
	uint64_t begin;

	assert_true(live.pid > 0);
	assert_int_equal(target_find_interpreter(&target), 0);
	image = target.image;
	assert_int_equal(python_info_read(image, &info, &reason), 0);
	begin = mono_ns();
	assert_int_equal(
		python_process_thread_names(info, live.pid, target.bias, NULL, &names, &count), 0);
	print_message("# %s: %zu names in %llu us\n", interpreter->label, count,
		      (mono_ns() - begin) / NS_PER_US);
	checked = check_names(said, names, count);
	assert_int_equal(checked, count);
	assert_true(checked >= MIN_THREADS);
	live_python_stop(&live);
	/* The process is gone. */
	assert_true(python_process_thread_names(info, live.pid, target.bias, NULL, &names, &count) <
		    0);
	assert_int_equal(checked, count);
}

/* Looks while threads come and go: an error or an odd name now and then, never worse. */
static void check_race(const struct interpreter *interpreter, bool has_hint)
{
	struct python_names_hint hint = {0};
	struct live_python live =
		live_python_start(interpreter, "tests/unit/python/churn_oracle.py");
	OWNED(python_info) struct python_info *info = NULL;
	struct target target = {.pid = live.pid};
	size_t failed = 0, seen = 0, odd = 0, same = 0;
	const char *reason = "";

	assert_true(live.pid > 0);
	assert_int_equal(target_find_interpreter(&target), 0);
	OWNED(elf_image) struct elf_image *image = target.image;

	assert_int_equal(python_info_read(image, &info, &reason), 0);
	for (size_t look = 0; look < RACING_LOOKS; look++) {
		OWNED_MEM struct python_thread_name *names = NULL;
		size_t count = 0;
		int err;

		hint.keeps_names = look % 2;
		err = python_process_thread_names(info, live.pid, target.bias,
						  has_hint ? &hint : NULL, &names, &count);
		if (err == -EALREADY) {
			same++;
			continue;
		}
		/* Empty: the dictionary moved between its two reads. */
		if (err || !count) {
			failed++;
			continue;
		}
		for (size_t i = 0; i < count; i++) {
			seen++;
			odd += strcmp(names[i].name, "MainThread") &&
			       strncmp(names[i].name, "churn-", 6);
		}
	}
	live_python_stop(&live);
	python_names_hint_release(&hint);
	print_message("# %s: %zu names in %u looks, %zu odd; %zu looks failed, %zu the same\n",
		      interpreter->label, seen, RACING_LOOKS, odd, failed, same);
	assert_true(failed < RACING_LOOKS / 10);
	assert_true(odd <= seen / 100);
	assert_true(seen >= RACING_LOOKS - failed - same); /* the main thread at least */
}

static void check_race_without_hint(const struct interpreter *interpreter)
{
	check_race(interpreter, false);
}

static void check_race_with_hint(const struct interpreter *interpreter)
{
	check_race(interpreter, true);
}

/* ---- looks that know what the last one learnt ---- */

struct watched {
	struct live_python live;
	struct target target;
	struct python_info *info;
	struct python_names_hint hint;
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct python_thread_name *)a)->name,
		      ((const struct python_thread_name *)b)->name);
}

/* Names in their order, separated by commas; "-": threading is not imported; "=": as before. */
static void look(struct watched *watched, bool keeps_names, char ret_said[4096])
{
	OWNED_MEM struct python_thread_name *names = NULL;
	size_t count = 0, size = 0;
	int err;

	calls = 0;
	watched->hint.keeps_names = keeps_names;
	err = python_process_thread_names(watched->info, watched->live.pid, watched->target.bias,
					  &watched->hint, &names, &count);
	strcpy(ret_said, err == -EAGAIN ? "-" : err == -EALREADY ? "=" : "");
	if (err == -EAGAIN || err == -EALREADY)
		return;
	assert_int_equal(err, 0);
	qsort(names, count, sizeof(*names), compare_names);
	for (size_t i = 0; i < count; i++)
		size += (size_t)sprintf(ret_said + size, "%s%s", i ? "," : "", names[i].name);
}

static void check_step(struct watched *watched, const char *kind, const char *expected)
{
	char said[4096];
	bool is_imported = strcmp(expected, "-");

	look(watched, true, said);
	if (!strcmp(kind, "same"))
		assert_string_equal(said, is_imported ? "=" : "-");
	else if (strcmp(kind, "like"))
		assert_string_equal(said, expected);
	look(watched, false, said);
	assert_string_equal(said, expected);
	look(watched, true, said);
	assert_string_equal(said, is_imported ? "=" : "-");
	assert_true(calls <=
		    CALLS_FOR_FIRST + CALLS_AN_INTERPRETER * (strstr(expected, ",sub") ? 2 : 1));
}

static struct live_python steps_start(const struct interpreter *interpreter, int *ret_go)
{
	struct live_python live;
	char number[16];
	int go[2];

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(fcntl(go[0], F_SETFD, 0), 0);
	snprintf(number, sizeof(number), "%d", go[0]);
	setenv("STEPS", number, 1);
	live = live_python_start(interpreter, "tests/unit/python/steps_oracle.py");
	close(go[0]);
	*ret_go = go[1];
	return live;
}

static void check_steps(const struct interpreter *interpreter)
{
	OWNED_FD int go = -1;
	struct watched watched = {.live = steps_start(interpreter, &go)};
	char *line = NULL, kind[8], expected[4096];
	const char *reason = "";
	size_t capacity = 0, steps = 0;
	unsigned int number;

	watched.target.pid = watched.live.pid;
	assert_true(watched.live.pid > 0);
	assert_int_equal(target_find_interpreter(&watched.target), 0);
	OWNED(elf_image) struct elf_image *image = watched.target.image;

	assert_int_equal(python_info_read(image, &watched.info, &reason), 0);
	while (getline(&line, &capacity, watched.live.text) > 0 && strcmp(line, "END\n")) {
		if (sscanf(line, "STEP %u %7s %4095[^\n]", &number, kind, expected) != 3)
			continue;
		assert_int_equal(number, steps);
		/* Another program: it lies elsewhere. */
		if (strstr(expected, "executed")) {
			watched.target.image = NULL;
			assert_int_equal(target_find_interpreter(&watched.target), 0);
			elf_image_free(watched.target.image);
		}
		check_step(&watched, kind, expected);
		steps++;
		assert_int_equal(write(go, "x", 1), 1);
	}
	free(line);
	live_python_stop(&watched.live);
	python_info_free(watched.info);
	python_names_hint_release(&watched.hint);
	assert_int_equal(steps, STEPS);
}

static void check_bare(const struct interpreter *interpreter)
{
	struct live_python live =
		live_python_start(interpreter, "tests/unit/python/bare_oracle.py");
	OWNED(python_info) struct python_info *info = NULL;
	struct target target = {.pid = live.pid};
	struct python_thread_name *names = NULL;
	const char *reason = "";
	size_t count = 0;
	int imported = -1;

	assert_true(live.pid > 0);
	assert_int_equal(fscanf(live.text, "IMPORTED %d", &imported), 1);
	assert_int_equal(target_find_interpreter(&target), 0);
	OWNED(elf_image) struct elf_image *image = target.image;

	assert_int_equal(python_info_read(image, &info, &reason), 0);
	assert_int_equal(python_process_thread_names(info, live.pid, target.bias, NULL, &names,
						     &count),
			 imported ? 0 : -EAGAIN);
	free(names);
	live_python_stop(&live);
}

static void for_each_interpreter(void (*check)(const struct interpreter *))
{
	struct interpreter interpreters[MAX_INTERPRETERS];
	size_t count = interpreters_find(interpreters);

	if (!count) {
		print_message("# skipped: no CPython at hand\n");
		skip();
	}
	for (size_t i = 0; i < count; i++)
		check(&interpreters[i]);
}

static void threading_not_imported__is_said(void **state)
{
	(void)state;
	for_each_interpreter(check_bare);
}

static void threads_that_come_and_go__never_mislead(void **state)
{
	(void)state;
	for_each_interpreter(check_race_without_hint);
	for_each_interpreter(check_race_with_hint);
}

static void hint__follows_what_changes_between_looks(void **state)
{
	(void)state;
	for_each_interpreter(check_steps);
}

static void live_threads__have_the_names_that_threading_says(void **state)
{
	(void)state;
	for_each_interpreter(check_interpreter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(live_threads__have_the_names_that_threading_says),
		cmocka_unit_test(threading_not_imported__is_said),
		cmocka_unit_test(threads_that_come_and_go__never_mislead),
		cmocka_unit_test(hint__follows_what_changes_between_looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
