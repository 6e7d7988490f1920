/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows come by a script: each step is one poll(), which lets time pass.  The clock, the socket
 * and the disk are stand-ins. */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "live/record.h"
#include "live/reply.h"
#include "query/live_windows.h"

#define CONNECTION 1000
#define STOP 1001
#define HEARD_BYTES 1024U
#define CPU(bytes)                                                                                 \
	.flags = (uint64_t)(PP_PROFILE_CPU + 1) << LIVE_WINDOW_KIND_SHIFT | 1, .size = (bytes)

struct step {
	uint64_t passes_ns; /* before it happens */
	uint64_t flags;	    /* of a window of that size; 0: none comes */
	size_t size;
	int poll_err, feed_err; /* that the step ends with */
	bool stops;		/* the watcher ends it */
};

static const struct step *steps;
static size_t step_count, step_at;
static uint64_t clock_now_ns, written_bytes;
static bool swallows_writes, asks_why;
static int open_errno, memfd_errno, open_flags, explained, client_err;
static int open_returns; /* -1: whatever is free */
static mode_t open_mode;
static char opened_path[64];
static char *heard_text;

int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (clock != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, clock, time);
	*time = (struct timespec){.tv_sec = (time_t)(clock_now_ns / NS_PER_SEC),
				  .tv_nsec = (long)(clock_now_ns % NS_PER_SEC)};
	return 0;
}

int open(const char *path, int flags, ...)
{
	int fd;
	va_list more;

	va_start(more, flags);
	open_mode = va_arg(more, mode_t);
	va_end(more);
	snprintf(opened_path, sizeof(opened_path), "%s", path);
	open_flags = flags;
	if (open_errno) {
		errno = open_errno;
		return -1;
	}
	fd = (int)syscall(SYS_memfd_create, "spool", MFD_CLOEXEC);
	if (open_returns < 0)
		return fd;
	dup2(fd, open_returns);
	close(fd);
	return open_returns;
}

int memfd_create(const char *name, unsigned int flags)
{
	assert_int_equal(flags, MFD_CLOEXEC);
	if (memfd_errno) {
		errno = memfd_errno;
		return -1;
	}
	return (int)syscall(SYS_memfd_create, name, flags);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
	if (!swallows_writes)
		return (ssize_t)syscall(SYS_write, fd, bytes, size);
	written_bytes += size;
	return (ssize_t)size;
}

int poll(struct pollfd *source, nfds_t count, int timeout_ms)
{
	const struct step *step = &steps[step_at];

	assert_int_equal(count, 2);
	assert_int_equal(source[0].fd, CONNECTION);
	assert_int_equal(source[1].fd, STOP);
	assert_int_equal(timeout_ms, 200);
	if (step_at == step_count)
		fail_msg("it should have ended before");
	clock_now_ns += step->passes_ns;
	source[0].revents = step->flags || step->feed_err ? POLLIN : 0;
	source[1].revents = step->stops ? POLLIN : 0;
	if (!source[0].revents)
		step_at++;
	errno = step->poll_err;
	return step->poll_err ? -1 : source[0].revents != 0;
}

int live_feed_read(struct live_feed *feed, int fd, const struct live_feed_handler *handler)
{
	const struct step *step = &steps[step_at++];

	(void)feed;
	assert_int_equal(fd, CONNECTION);
	return step->feed_err
		       ? step->feed_err
		       : handler->on_window(handler->context, "file", step->size, step->flags);
}

void live_feed_release(struct live_feed *feed)
{
	(void)feed;
}

int live_client_open(const char *path, const struct live_request *request, FILE *words,
		     struct live_client **ret_client)
{
	(void)path, (void)request, (void)words;
	*ret_client = client_err ? NULL : (struct live_client *)&explained;
	return client_err;
}

void live_client_close(struct live_client *client)
{
	(void)client;
}

int live_client_fd(const struct live_client *client)
{
	(void)client;
	return CONNECTION;
}

/* Asked by live_why(), whose result is the error then. */
bool live_client_has_failed(const struct live_client *client)
{
	(void)client;
	asks_why = true;
	return true;
}

/* ---- who watches ---- */

static void hear(const char *before, const char *line)
{
	size_t size = strlen(heard_text);

	snprintf(heard_text + size, HEARD_BYTES - size, "%s%s\n", before, line);
}

static void on_note(void *context, const char *line)
{
	assert_null(context);
	hear("note: ", line);
}

static void on_progress(void *context, const struct watcher_progress *progress)
{
	char line[64];

	assert_null(context);
	assert_true(progress->live);
	snprintf(line, sizeof(line), "%" PRIu64 " of %" PRIu64, progress->done, progress->wanted);
	hear("", line);
}

static const struct watcher quiet = {.note = on_note, .stop_fd = STOP};
static const struct watcher curious = {.note = on_note, .progress = on_progress, .stop_fd = STOP};

static int setup(void **state)
{
	(void)state;
	steps = NULL;
	step_count = step_at = 0;
	clock_now_ns = 1000 * NS_PER_SEC;
	written_bytes = 0;
	swallows_writes = false;
	open_errno = memfd_errno = client_err = 0;
	open_returns = -1;
	unsetenv("TMPDIR");
	return 0;
}

static const struct live_windows_options five_seconds = {
	.kind = PP_PROFILE_CPU, .seconds = 5, .watcher = &quiet};

/* Plays the script; notes and the error go to `heard`. */
static int play(const struct live_windows_options *options, const struct step *script, size_t count,
		char heard[HEARD_BYTES], struct live_windows **ret_windows)
{
	char text[WHY_BYTES];
	int err;

	steps = script;
	step_count = count;
	step_at = 0;
	heard_text = heard;
	heard[0] = '\0';
	asks_why = false;
	err = live_windows_take(options, text, ret_windows);
	explained = asks_why ? err : 0;
	if (err && text[0])
		hear("", text);
	return err;
}

#define PLAY(options, script, heard, ret_windows)                                                  \
	play(options, script, ARRAY_SIZE(script), heard, ret_windows)

/* The first window began before; what is kept begins with its end. */
static void time__is_over_a_quarter_of_a_second_early(void **state)
{
	static const struct step early[] = {
		{.passes_ns = 700000000, CPU(4)},  {.passes_ns = 1000000000, CPU(4)},
		{.passes_ns = 1000000000, CPU(4)}, {.passes_ns = 1000000000, CPU(4)},
		{.passes_ns = 1000000000, CPU(4)}, {.passes_ns = 749999999, CPU(4)},
		{.passes_ns = 1, CPU(4)}};
	struct live_windows *windows = NULL;
	char heard[HEARD_BYTES];

	(void)state;
	assert_int_equal(PLAY(&five_seconds, early, heard, &windows), 0);
	assert_string_equal(heard, "");
	assert_int_equal(step_at, 7);
	assert_int_equal(live_windows_count(windows), 6);
	live_windows_free(windows);
}

/* 90 s without a window, from the begin or from the last one. */
static void time__without_a_window_is_bounded(void **state)
{
	static const struct step never[] = {{.passes_ns = 90 * NS_PER_SEC}, {.passes_ns = 1}};
	static const struct step once[] = {{.passes_ns = 80 * NS_PER_SEC, CPU(4)},
					   {.passes_ns = 90 * NS_PER_SEC},
					   {.passes_ns = 0, CPU(4)},
					   {.passes_ns = 90 * NS_PER_SEC},
					   {.passes_ns = 1}};
	const struct live_windows_options hour = {
		.kind = PP_PROFILE_CPU, .seconds = 3600, .watcher = &quiet};
	struct live_windows *windows = NULL;
	char heard[HEARD_BYTES];

	(void)state;
	assert_true(PLAY(&five_seconds, never, heard, &windows) < 0);
	assert_int_equal(explained, -EBADMSG);
	assert_int_equal(step_at, 2);
	assert_null(windows);
	assert_int_equal(PLAY(&hour, once, heard, &windows), 0);
	assert_string_equal(heard, "note: --live: Bad message: this is what came before\n");
	assert_int_equal(step_at, 5);
	live_windows_free(windows);
}

static void progress__is_in_seconds_since_the_first_window(void **state)
{
	static const struct step script[] = {{.passes_ns = 2 * NS_PER_SEC, CPU(4)},
					     {.passes_ns = NS_PER_SEC},
					     {.passes_ns = 2 * NS_PER_SEC - 1},
					     {.passes_ns = 3 * NS_PER_SEC, CPU(4)}};
	struct live_windows_options options = five_seconds;
	struct live_windows *windows = NULL;
	char heard[HEARD_BYTES];

	(void)state;
	options.watcher = &curious;
	assert_int_equal(PLAY(&options, script, heard, &windows), 0);
	assert_string_equal(heard, "0 of 5\n0 of 5\n1 of 5\n2 of 5\n");
	live_windows_free(windows);
}

static void poll__that_is_interrupted_goes_on(void **state)
{
	static const struct step script[] = {
		{.passes_ns = NS_PER_SEC, CPU(4)},
		{.poll_err = EINTR},
		{.passes_ns = 0},
		{.passes_ns = 5 * NS_PER_SEC, CPU(4)},
	};
	static const struct step broken[] = {{.poll_err = EFAULT}};
	struct live_windows *windows = NULL;
	char heard[HEARD_BYTES];

	(void)state;
	assert_int_equal(PLAY(&five_seconds, script, heard, &windows), 0);
	assert_string_equal(heard, "");
	assert_int_equal(live_windows_count(windows), 1);
	live_windows_free(windows);
	windows = NULL;
	assert_true(PLAY(&five_seconds, broken, heard, &windows) < 0);
	assert_int_equal(explained, -EFAULT);
	assert_null(windows);
}

static void watcher__ends_it_with_what_came(void **state)
{
	static const struct step script[] = {{.passes_ns = NS_PER_SEC, CPU(4)},
					     {.passes_ns = NS_PER_SEC, CPU(4)},
					     {.stops = true}};
	struct live_windows *windows = NULL;
	char heard[HEARD_BYTES];

	(void)state;
	assert_int_equal(PLAY(&five_seconds, script, heard, &windows), 0);
	assert_string_equal(heard, "");
	assert_int_equal(live_windows_count(windows), 1);
	live_windows_free(windows);
	windows = NULL;
	assert_true(play(&five_seconds, script + 2, 1, heard, &windows) < 0);
	assert_string_equal(heard, "ended before the first window, which takes a second, "
				   "was complete\n");
	assert_null(windows);
}

static void end__of_the_connection_is_told(void **state)
{
	static const int errs[] = {-EPIPE, -ECONNRESET};
	struct step script[] = {
		{.passes_ns = NS_PER_SEC, CPU(4)}, {.passes_ns = NS_PER_SEC, CPU(4)}, {}};
	char heard[HEARD_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		struct live_windows *windows = NULL;

		script[2].feed_err = errs[i];
		assert_int_equal(PLAY(&five_seconds, script, heard, &windows), 0);
		assert_string_equal(heard, "note: pyprofd has ended: this is what came before\n");
		live_windows_free(windows);
	}
}

/* 1 GiB is kept, and not a byte more. */
static void spool__is_bounded(void **state)
{
	static const struct step full[] = {{.passes_ns = NS_PER_SEC, CPU(1 << 30)},
					   {.passes_ns = NS_PER_SEC, CPU(1 << 29)},
					   {.passes_ns = NS_PER_SEC, CPU(1 << 29)},
					   {.passes_ns = NS_PER_SEC, CPU(0)},
					   {.passes_ns = 0, CPU(1)}};
	static const struct step fits[] = {{.passes_ns = NS_PER_SEC, CPU(4)},
					   {.passes_ns = 5 * NS_PER_SEC, CPU(1 << 30)}};
	struct live_windows *windows = NULL;
	char heard[HEARD_BYTES];

	(void)state;
	swallows_writes = true;
	assert_int_equal(PLAY(&five_seconds, fits, heard, &windows), 0);
	assert_int_equal(live_windows_count(windows), 1);
	assert_int_equal(written_bytes, 1 << 30);
	live_windows_free(windows);
	written_bytes = 0;
	assert_int_equal(PLAY(&five_seconds, full, heard, &windows), 0);
	swallows_writes = false;
	assert_int_equal(step_at, 5);
	assert_int_equal(live_windows_count(windows), 3);
	assert_int_equal(written_bytes, 1 << 30);
	live_windows_free(windows);
}

static void spool__that_is_full_is_told(void **state)
{
	static const struct step script[] = {{.passes_ns = NS_PER_SEC, CPU(4)},
					     {.passes_ns = NS_PER_SEC, CPU(4)},
					     {.passes_ns = 0, CPU((1 << 30) - 3)}};
	struct live_windows *windows = NULL;
	char heard[HEARD_BYTES];

	(void)state;
	assert_int_equal(PLAY(&five_seconds, script, heard, &windows), 0);
	assert_string_equal(heard, "note: --live: more than 1024 MiB of profiles: this is what "
				   "came before\n");
	assert_int_equal(live_windows_count(windows), 1);
	live_windows_free(windows);
}

/* An unnamed file in TMPDIR, in /tmp, or in memory. */
static void spool__is_where_temporary_files_are(void **state)
{
	static const struct {
		const char *tmpdir, *opened;
	} cases[] = {
		{NULL, "/tmp"}, {"", "/tmp"}, {"/", "/"}, {"x", "x"}, {"/var/tmp", "/var/tmp"}};
	static const struct step script[] = {{.passes_ns = NS_PER_SEC, CPU(4)},
					     {.passes_ns = 5 * NS_PER_SEC, CPU(4)}};
	char heard[HEARD_BYTES], bytes[8] = "";

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		struct live_windows *windows = NULL;
		OWNED_FD int fd = -1;

		if (cases[i / 2].tmpdir)
			setenv("TMPDIR", cases[i / 2].tmpdir, 1);
		open_errno = i % 2 ? EOPNOTSUPP : 0;
		assert_int_equal(PLAY(&five_seconds, script, heard, &windows), 0);
		assert_string_equal(opened_path, cases[i / 2].opened);
		assert_int_equal(open_flags, O_TMPFILE | O_RDWR | O_CLOEXEC);
		assert_int_equal(open_mode, 0600);
		assert_int_equal(live_windows_open(windows, 0, &fd), 0);
		assert_int_equal(read(fd, bytes, sizeof(bytes)), 4);
		assert_string_equal(bytes, "file");
		live_windows_free(windows);
	}
}

static void spool__that_cannot_be_is_told(void **state)
{
	struct live_windows *windows = NULL;
	char heard[HEARD_BYTES];

	(void)state;
	open_errno = EOPNOTSUPP;
	memfd_errno = EMFILE;
	assert_true(play(&five_seconds, NULL, 0, heard, &windows) < 0);
	assert_string_equal(heard, "cannot create a temporary file: Too many open files\n");
	assert_null(windows);
}

/* Without standard input the spool may be descriptor 0.  All are closed at the end. */
static void spool__may_be_descriptor_0(void **state)
{
	static const struct step script[] = {{.passes_ns = NS_PER_SEC, CPU(4)},
					     {.passes_ns = 5 * NS_PER_SEC, CPU(4)}};
	struct live_windows *windows = NULL;
	const int saved = dup(STDIN_FILENO), next = dup(STDIN_FILENO);
	int status, after, left;
	char heard[HEARD_BYTES];

	(void)state;
	close(next);
	open_returns = STDIN_FILENO;
	status = PLAY(&five_seconds, script, heard, &windows);
	after = dup(saved);
	live_windows_free(windows);
	left = fcntl(STDIN_FILENO, F_GETFD);
	dup2(saved, STDIN_FILENO);
	close(saved);
	close(after);
	assert_int_equal(status, 0);
	assert_string_equal(heard, "");
	assert_int_equal(after, next);
	assert_int_equal(left, -1);
}

static void request__that_cannot_be_made_is_told(void **state)
{
	static const int64_t none = 0;
	struct live_windows_options options = {.kind = PP_PROFILE_CPU,
					       .pid = &none,
					       .pid_count = 1,
					       .seconds = 5,
					       .watcher = &quiet};
	struct live_windows *windows = NULL;
	char heard[HEARD_BYTES];

	(void)state;
	assert_true(play(&options, NULL, 0, heard, &windows) < 0);
	assert_string_equal(heard, "--live: --pid has a number that no process has\n");
	client_err = -1;
	assert_true(play(&five_seconds, NULL, 0, heard, &windows) < 0);
	assert_string_equal(heard, "");
	assert_int_equal(explained, 0);
	assert_null(windows);
}

/* Also when all bits are asked for. */
static void window__of_a_kind_that_there_is_not(void **state)
{
	struct step script[] = {
		{.passes_ns = NS_PER_SEC, CPU(4)},
		{.passes_ns = NS_PER_SEC,
		 .flags = (uint64_t)(PP_PROFILE_COUNT + 1) << LIVE_WINDOW_KIND_SHIFT | 1,
		 .size = 4}};
	const struct live_windows_options options = {
		.kind = PP_PROFILE_CPU, .more = UINT32_MAX, .seconds = 5, .watcher = &quiet};
	struct live_windows *windows = NULL;
	char heard[HEARD_BYTES];

	(void)state;
	assert_true(PLAY(&options, script, heard, &windows) < 0);
	assert_int_equal(explained, -EBADMSG);
	assert_null(windows);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(time__is_over_a_quarter_of_a_second_early),
		TEST(time__without_a_window_is_bounded),
		TEST(progress__is_in_seconds_since_the_first_window),
		TEST(poll__that_is_interrupted_goes_on),
		TEST(watcher__ends_it_with_what_came),
		TEST(end__of_the_connection_is_told),
		TEST(spool__is_bounded),
		TEST(spool__that_is_full_is_told),
		TEST(spool__is_where_temporary_files_are),
		TEST(spool__that_cannot_be_is_told),
		TEST(spool__may_be_descriptor_0),
		TEST(request__that_cannot_be_made_is_told),
		TEST(window__of_a_kind_that_there_is_not),
	};

	return cmocka_run_group_tests_name("reader/live_windows_time", tests, NULL, NULL);
}
