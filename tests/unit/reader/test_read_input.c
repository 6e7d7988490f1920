/* SPDX-License-Identifier: BSD-2-Clause */
/* Instead of input_read() a script; what is printed goes to a file. */
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "reader/read_input.h"
#include "reader/verb.h"

static bool is_terminal;
static int (*script)(const struct input_options *options, char why[WHY_BYTES]);

int isatty(int fd)
{
	assert_int_equal(fd, STDERR_FILENO);
	return is_terminal;
}

int input_read(const struct input_options *options, char why[WHY_BYTES], struct input **ret_input)
{
	(void)ret_input;
	assert_ptr_equal(options->watcher->words, stderr);
	return script(options, why);
}

static void tell(const struct input_options *options, bool live, uint64_t done, uint64_t wanted)
{
	const struct watcher_progress progress = {.live = live, .done = done, .wanted = wanted};

	options->watcher->progress(options->watcher->context, &progress);
}

/* Reads by the script; what is printed goes to `heard`. */
static int hear(const struct select *select, char heard[512])
{
	OWNED_FD int saved = dup(STDERR_FILENO), file = memfd_create("stderr", MFD_CLOEXEC);
	struct input *input = NULL;
	ssize_t size;
	int status;

	assert_true(saved >= 0 && file >= 0);
	fflush(stderr);
	dup2(file, STDERR_FILENO);
	status = read_input((struct input_options){.select = select}, &input);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	size = pread(file, heard, 511, 0);
	assert_true(size >= 0);
	heard[size] = '\0';
	assert_null(input);
	return status;
}

static const struct select files = {.path_count = 1}, live = {.live = true};

static int refuses(const struct input_options *options, char why[WHY_BYTES])
{
	assert_int_equal(options->watcher->stop_fd, -1);
	snprintf(why, WHY_BYTES, "x.pb.gz: no");
	return -EINVAL;
}

static int refuses_in_words(const struct input_options *options, char why[WHY_BYTES])
{
	(void)why;
	fputs("as said\n", options->watcher->words);
	return -EINVAL;
}

static void errors__are_printed_once(void **state)
{
	char heard[512];

	(void)state;
	script = refuses;
	assert_int_equal(hear(&files, heard), READER_BAD_INPUT);
	assert_string_equal(heard, "pyprof: x.pb.gz: no\n");
	script = refuses_in_words;
	assert_int_equal(hear(&files, heard), READER_BAD_INPUT);
	assert_string_equal(heard, "as said\n");
}

static int watches(const struct input_options *options, char why[WHY_BYTES])
{
	(void)why;
	tell(options, true, 0, 5);
	tell(options, true, 1, 5);
	options->watcher->note(options->watcher->context, "it has ended");
	tell(options, false, 1, 1);
	return 0;
}

static void terminal__shows_seconds_and_is_cleared(void **state)
{
#define LINE(seconds) "\rwatching: " seconds " of 5 s; Ctrl-C ends it\033[K"
	char heard[512];

	(void)state;
	script = watches;
	is_terminal = true;
	assert_int_equal(hear(&live, heard), 0);
	assert_string_equal(heard, LINE("0") LINE("1") "\r\033[Kpyprof: it has ended\n");
	is_terminal = false;
	assert_int_equal(hear(&live, heard), 0);
	assert_string_equal(heard, "pyprof: it has ended\n");
}

/* While windows are waited for, SIGINT is for the watcher; when they have come, for the program. */
static int is_interrupted(const struct input_options *options, char why[WHY_BYTES])
{
	struct pollfd stop = {.fd = options->watcher->stop_fd, .events = POLLIN};
	sigset_t blocked;

	(void)why;
	assert_int_equal(poll(&stop, 1, 0), 0);
	assert_int_equal(raise(SIGINT), 0);
	assert_int_equal(poll(&stop, 1, 0), 1);
	assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &blocked), 0);
	for (int i = 1; i < 32; i++)
		assert_int_equal(sigismember(&blocked, i), i == SIGINT);
	tell(options, false, 1, 1);
	assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &blocked), 0);
	assert_int_equal(sigismember(&blocked, SIGINT), 0);
	return 0;
}

static void interrupt__ends_only_the_wait(void **state)
{
	char heard[512];
	sigset_t after;

	(void)state;
	script = is_interrupted;
	assert_int_equal(hear(&live, heard), 0);
	assert_string_equal(heard, "");
	assert_int_equal(sigpending(&after), 0);
	assert_int_equal(sigismember(&after, SIGINT), 0);
}

static bool was_asked;

static int has_none(const struct input_options *options, char why[WHY_BYTES])
{
	(void)why;
	assert_true(options->may_be_none);
	was_asked = true;
	return 0;
}

static void records__only_who_can_have_them_is_asked(void **state)
{
	char folder[] = "/var/lib/pyprofd", node[] = "http://node:9898", standard[] = "-",
	     others[] = "parca+http://node:7070";
	char *path[] = {folder, node};
	const struct select select = {.path = path, .path_count = 2};
	const struct input_options options = {.select = &select};
	struct input *input;

	(void)state;
	script = has_none;
	assert_int_equal(read_records(options, NULL, &input), 0);
	assert_true(was_asked);
	path[1] = standard;
	was_asked = false;
	assert_int_equal(read_records(options, NULL, &input), 0);
	assert_true(was_asked);
	path[1] = others;
	was_asked = false;
	assert_int_equal(read_records(options, NULL, &input), 0);
	assert_false(was_asked);
	assert_null(input);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors__are_printed_once),
		cmocka_unit_test(terminal__shows_seconds_and_is_cleared),
		cmocka_unit_test(interrupt__ends_only_the_wait),
		cmocka_unit_test(records__only_who_can_have_them_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
