/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: store/keep.c store/keep_plan.c store/keep_room.c store/merge_file.c store/kept.c store/store_query.c store/store_names.c profile/row_order.c profile/window_mark.c base/kinds.c base/io.c pprof/profile_read.c pprof/read_memory.c pprof/read_frames.c pprof/read_samples.c pprof/read_levels.c pprof/read_windows.c pprof/pprof_tables.c pprof/unpack.c profile/profile.c pprof/pprof.c pprof/pprof_mappings.c pprof/gzip_sink.c profile/stack_table.c base/index_table.c base/utf8.c base/intern.c profile/cuda_line.c profile/cuda_lines.c base/proto.c */
/* A store of windows, and what is kept of it.  System calls that change the store can be told to be
 * the last ones: the process is killed there. */
#include "store/keep.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "pprof/pprof.h"
#include "pprof/profile_read.h"
#include "profile/profile.h"
#include "store_fixture.h"

#define START_MS 1795273200000ULL /* 2026-11-21T15:00:00Z */
#define WINDOW_MS 10000U
#define WINDOWS 90U
#define END_MS (START_MS + WINDOWS * WINDOW_MS)
#define KEPT_MS 600000U
#define VICTIM 4711
#define OTHER 4712

int mkdirat(int fd, const char *name, mode_t mode)
{
	int (*next)(int, const char *, mode_t) =
		(int (*)(int, const char *, mode_t))dlsym(RTLD_NEXT, "mkdirat");

	return ends_here() ? -1 : next(fd, name, mode);
}

/* ---- a store, which is the working directory ---- */

static int enter_store(void **state)
{
	return make_store(state) || chdir(*state);
}

static int leave_store(void **state)
{
	return chdir("/") || remove_directory(state);
}

/* A window with a sample of each of two processes, and lines about both. */
struct window {
	uint64_t start_ms, duration_ms;
	const char *kind, *function; /* of the victim */
	bool lacks_victim;
};

static void add_sample(struct profile *profile, struct intern *strings, const char *function,
		       int64_t pid)
{
	struct frame frame = {.kind = FRAME_PYTHON, .line = 5};
	struct profile_sample sample = {.frame = &frame,
					.frame_count = 1,
					.value = {1},
					.label = {{.key = "pid", .number = pid, .is_number = 1}},
					.label_count = 1};

	assert_int_equal(intern_string(strings, function, &frame.name), 0);
	assert_int_equal(profile_add(profile, &sample), 0);
}

static void put_window(const struct window *window)
{
	const struct profile_value_type type =
		strcmp(window->kind, "mem") ? (struct profile_value_type){"samples", "count"}
					    : (struct profile_value_type){"first_touch", "bytes"};
	const struct profile_options options = {.kind = window->kind,
						.value_type = {type},
						.value_count = 1,
						.default_value_type = type.type,
						.period_type = {"cpu", "nanoseconds"},
						.period = 7,
						.start_wall_ns = window->start_ms * 1000000,
						.duration_ns = window->duration_ms * 1000000};
	struct store_file file = {.start_ms = window->start_ms, .duration_ms = window->duration_ms};
	OWNED(profile) struct profile *profile = NULL;
	OWNED_MEM void *bytes = NULL;
	struct intern *strings;
	size_t size;

	snprintf(file.kind, sizeof(file.kind), "%s", window->kind);
	assert_int_equal(intern_new(&strings), 0);
	assert_int_equal(profile_new(&options, strings, &profile), 0);
	if (!window->lacks_victim)
		add_sample(profile, strings, window->function, VICTIM);
	add_sample(profile, strings, "somebody_else", OTHER);
	assert_int_equal(profile_add_comment(profile, "facts samples=2"), 0);
	assert_int_equal(profile_add_comment(profile, "pid=4711 comm=python3 threads=1"), 0);
	assert_int_equal(profile_add_comment(profile, "pid=4712 comm=secret threads=1"), 0);
	assert_int_equal(
		profile_add_comment(profile, "memory pid=4711 anon=10 file=20 shmem=0 peak=40"), 0);
	assert_int_equal(
		profile_add_comment(profile, "memory pid=4712 anon=99 file=99 shmem=0 peak=99"), 0);
	assert_int_equal(
		profile_add_comment(profile, "cuda pid=4711 api=cuMemAlloc calls=1 kernel="), 0);
	assert_int_equal(profile_add_comment(
				 profile, "cuda pid=4712 api=cuMemFree calls=2 kernel=pid=4711 "),
			 0);
	assert_int_equal(profile_add_comment(profile, "cuda others=4712 calls=3"), 0);
	assert_int_equal(profile_encode_pprof(profile, &bytes, &size), 0);
	write_bytes(".", &file, bytes, size);
	profile_free(TAKE(profile));
	intern_free(strings);
}

/* Fifteen minutes of cpu, a third of which has mem; the function of the last window is another. */
static void fill(void)
{
	for (uint64_t i = 0; i < WINDOWS; i++) {
		struct window window = {.start_ms = START_MS + i * WINDOW_MS,
					.duration_ms = WINDOW_MS,
					.kind = "cpu",
					.function = i + 1 == WINDOWS ? "the_end" : "before"};

		put_window(&window);
		window.kind = "mem";
		if (i % 3 == 0)
			put_window(&window);
	}
}

static struct keep_request request_of(enum kept_reason reason)
{
	struct keep_request request = {.from_ms = END_MS - KEPT_MS,
				       .until_ms = END_MS,
				       .max_bytes = KEPT_MAX_BYTES,
				       .name = {.time_ms = END_MS, .reason = reason},
				       .uid = 1000};

	if (reason == KEPT_OOM) {
		request.name.pid = VICTIM;
		snprintf(request.name.comm, sizeof(request.name.comm), "python3");
	}
	return request;
}

static int do_keep(const struct keep_request *request, struct keep_result *ret_result)
{
	OWNED_FD int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return keep(fd, request, ret_result);
}

/* ---- what a reader finds ---- */

struct found {
	size_t windows, comments_of_others;
	int64_t total;
	char functions[256]; /* names, each once, with a space behind */
};

static int found_window(void *context, struct profile *profile, const struct profile_window *window)
{
	struct found *found = context;

	(void)profile;
	found->windows++;
	found->total += window->total;
	return 0;
}

static void found_comment(void *context, const char *text)
{
	((struct found *)context)->comments_of_others += strstr(text, "4712") != NULL;
}

static bool found_stack(void *context, const struct profile *profile, uint32_t stack)
{
	(void)context;
	(void)profile;
	(void)stack;
	return true;
}

static void read_kept(const char *name, const char *kind, struct found *ret_found)
{
	const struct profile_read_options options = {.comment = found_comment,
						     .window_done = found_window,
						     .wants_stack = found_stack,
						     .context = ret_found};
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	OWNED_FD int fd = -1;
	char path[PATH_CHARS];

	memset(ret_found, 0, sizeof(*ret_found));
	snprintf(path, sizeof(path), KEPT_DIRECTORY "/%s/%s.pb.gz", name, kind);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(profile_reader_new(&options, &reader), 0);
	assert_int_equal(profile_reader_add(reader, fd, NULL), 0);
}

/* Returns whether the unpacked bytes of a kept file have a text. */
static bool mentions(const char *name, const char *kind, const char *text)
{
	char command[2 * PATH_CHARS];

	snprintf(command, sizeof(command), "zcat " KEPT_DIRECTORY "/%s/%s.pb.gz | grep -qa -e '%s'",
		 name, kind, text);
	return !system(command);
}

static bool is_there(const char *path)
{
	struct stat stat;

	return !lstat(path, &stat);
}

static size_t count_names(const char *directory)
{
	OWNED_DIR DIR *dir = opendir(directory);
	size_t count = 0;

	for (struct dirent *item; dir && (item = readdir(dir));)
		count += strcmp(item->d_name, ".") && strcmp(item->d_name, "..");
	return count;
}

/* ---- the tests ---- */

static void oom__keeps_the_process_alone_and_its_last_window(void **state)
{
	const struct keep_request request = request_of(KEPT_OOM);
	struct keep_result result;
	struct found found;

	(void)state;
	fill();
	assert_int_equal(do_keep(&request, &result), 0);
	assert_string_equal(result.name, "2026-11-21T151500Z-oom-4711-python3");
	assert_int_equal(result.windows, 60);
	assert_int_equal(result.kinds, 2);
	assert_int_equal(result.span_ms, KEPT_MS);
	read_kept(result.name, "cpu", &found);
	assert_int_equal(found.windows, 60);
	assert_int_equal(found.total, 60);
	assert_int_equal(found.comments_of_others, 0);
	read_kept(result.name, "mem", &found);
	assert_int_equal(found.windows, 60);
	assert_int_equal(found.total, 20);
	assert_true(mentions(result.name, "cpu", "the_end"));
	assert_false(mentions(result.name, "cpu", "somebody_else"));
	assert_false(mentions(result.name, "cpu", "secret"));
}

static void oom__about_says_what_and_when(void **state)
{
	struct keep_request request = request_of(KEPT_OOM);
	OWNED_MEM char *text = NULL;
	struct keep_result result;
	char path[PATH_CHARS];

	(void)state;
	fill();
	request.from_ms = END_MS - 2 * WINDOW_MS;
	assert_int_equal(do_keep(&request, &result), 0);
	snprintf(path, sizeof(path), KEPT_DIRECTORY "/%s/about", result.name);
	assert_int_equal(read_file(path, 4096, &text, NULL), 0);
	assert_string_equal(text, "reason=oom\npid=4711\ncomm=python3\nuid=1000\n"
				  "time=2026-11-21T15:15:00Z\nfrom=2026-11-21T15:14:40Z\n"
				  "to=2026-11-21T15:15:00Z\nwindows=2\nkinds=1\n"
				  "rss=2026-11-21T15:14:40Z anon=10 file=20 shmem=0 peak=40\n"
				  "rss=2026-11-21T15:14:50Z anon=10 file=20 shmem=0 peak=40\n");
}

static void signal__keeps_everything(void **state)
{
	const struct keep_request request = request_of(KEPT_SIGNAL);
	struct keep_result result;
	struct found found;

	(void)state;
	fill();
	assert_int_equal(do_keep(&request, &result), 0);
	assert_string_equal(result.name, "2026-11-21T151500Z-signal");
	read_kept(result.name, "cpu", &found);
	assert_int_equal(found.total, 120);
	assert_true(mentions(result.name, "cpu", "somebody_else"));
	/* The store's own windows are as they were. */
	assert_true(is_there("2026-11-21/15/1795273200000-10000-cpu.pb.gz"));
}

/* --interval 30m: the window with the end is all that there is. */
static void window__longer_than_ten_minutes_is_kept_whole(void **state)
{
	const struct window window = {.start_ms = END_MS - 1800000,
				      .duration_ms = 1800000,
				      .kind = "cpu",
				      .function = "the_end"};
	struct keep_request request = request_of(KEPT_OOM);
	struct keep_result result;

	(void)state;
	put_window(&window);
	request.until_ms -= 900000;
	request.from_ms -= 900000;
	assert_int_equal(do_keep(&request, &result), 0);
	assert_int_equal(result.windows, 1);
	assert_int_equal(result.span_ms, 1800000);
}

static void windows__beyond_the_bound_are_the_oldest(void **state)
{
	struct window window = {.duration_ms = 1, .kind = "cpu", .function = "before"};
	struct keep_request request = request_of(KEPT_OOM);
	struct keep_result result;

	(void)state;
	for (uint64_t i = 0; i < KEEP_WINDOWS_MAX + 5; i++) {
		window.start_ms = START_MS + i;
		window.function = i < 5 ? "too_old" : "before";
		put_window(&window);
	}
	request.from_ms = START_MS;
	assert_int_equal(do_keep(&request, &result), 0);
	assert_int_equal(result.windows, KEEP_WINDOWS_MAX);
	assert_false(mentions(result.name, "cpu", "too_old"));
}

static void store__that_has_nothing_of_it_leaves_nothing(void **state)
{
	const struct window window = {.start_ms = END_MS - WINDOW_MS,
				      .duration_ms = WINDOW_MS,
				      .kind = "cpu",
				      .lacks_victim = true};
	const struct keep_request request = request_of(KEPT_OOM);
	struct keep_result result;

	(void)state;
	assert_int_equal(do_keep(&request, &result), -ENODATA);
	assert_false(is_there(KEPT_DIRECTORY));
	put_window(&window);
	assert_int_equal(do_keep(&request, &result), -ENODATA);
	assert_int_equal(count_names(KEPT_DIRECTORY), 0);
}

static void file__that_cannot_be_read_is_left_out(void **state)
{
	const struct store_file broken = {
		.start_ms = END_MS - WINDOW_MS, .duration_ms = WINDOW_MS, .kind = "cpu"};
	const struct keep_request request = request_of(KEPT_OOM);
	struct keep_result result;
	struct found found;

	(void)state;
	fill();
	write_bytes(".", &broken, "no profile", 10);
	assert_int_equal(do_keep(&request, &result), 0);
	assert_int_equal(result.unreadable, 1);
	read_kept(result.name, "cpu", &found);
	assert_int_equal(found.total, 59);
}

static void bound__leaves_kinds_out_and_then_all(void **state)
{
	struct keep_request request = request_of(KEPT_OOM);
	struct keep_result whole, result;
	char path[PATH_CHARS];
	struct stat stat;

	(void)state;
	fill();
	assert_int_equal(do_keep(&request, &whole), 0);
	snprintf(path, sizeof(path), KEPT_DIRECTORY "/%s/mem.pb.gz", whole.name);
	assert_int_equal(lstat(path, &stat), 0);
	/* What tells of memory goes first. */
	request.max_bytes = (uint64_t)stat.st_size + KEPT_ABOUT_MAX_BYTES / 64;
	assert_int_equal(do_keep(&request, &result), 0);
	assert_int_equal(result.kinds, 1);
	assert_int_equal(result.too_big, 1);
	assert_int_equal(result.removed, 1);
	snprintf(path, sizeof(path), KEPT_DIRECTORY "/%s/mem.pb.gz", result.name);
	assert_true(is_there(path));
	request.max_bytes = 100;
	assert_int_equal(do_keep(&request, &result), -EFBIG);
	assert_int_equal(count_names(KEPT_DIRECTORY), 1);
}

static void name__that_is_taken_moves_on(void **state)
{
	const struct keep_request request = request_of(KEPT_SIGNAL);
	struct keep_result result;

	(void)state;
	fill();
	assert_int_equal(do_keep(&request, &result), 0);
	assert_int_equal(do_keep(&request, &result), 0);
	assert_string_equal(result.name, "2026-11-21T151501Z-signal");
	assert_int_equal(count_names(KEPT_DIRECTORY), 2);
}

/* Returns whether each directory in kept/ that has a name of its own is whole. */
static bool all_are_whole(void)
{
	CLEANUP(kept_list_release) struct kept_list list = {0};
	OWNED_FD int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), kept_fd = -1;

	if (kept_open(fd, &kept_fd) || kept_list(kept_fd, &list))
		return true;
	for (size_t i = 0; i < list.count; i++) {
		char path[PATH_CHARS];

		snprintf(path, sizeof(path), KEPT_DIRECTORY "/%s", list.entry[i].name);
		if (count_names(path) != 3)
			return false;
	}
	return true;
}

/* Returns whether the process has ended before its last call. */
static bool is_killed_at(unsigned int call)
{
	const struct keep_request request = request_of(KEPT_SIGNAL);
	struct keep_result result;
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		calls_left = call;
		_exit(do_keep(&request, &result) ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && (!WEXITSTATUS(status) || WEXITSTATUS(status) == 9));
	return WEXITSTATUS(status);
}

static void kill__at_any_call_leaves_nothing_half(void **state)
{
	const struct keep_request tidying = {.max_bytes = KEPT_MAX_BYTES, .is_tidying = 1};
	struct keep_result result;
	unsigned int call = 1;

	(void)state;
	fill();
	for (; is_killed_at(call); call++) {
		assert_true(all_are_whole());
		assert_int_equal(do_keep(&tidying, &result), 0);
		assert_true(all_are_whole());
		if (is_there(KEPT_DIRECTORY)) /* nothing has another name */
			assert_int_equal(
				system("test -z \"$(ls -A " KEPT_DIRECTORY " | grep tmp)\""), 0);
	}
	/* kept/ and the directory are made; three files, the directory and kept/ are synced; one
	 * rename: a call less leaves something half after a power cut. */
	assert_int_equal(call, 9);
}

static void call__that_fails_is_told_and_leaves_nothing(void **state)
{
	const struct keep_request request = request_of(KEPT_SIGNAL);
	struct keep_result result;
	unsigned int call = 1;

	(void)state;
	fill();
	failing_err = ENOSPC;
	for (;; call++) {
		int err;

		calls_left = call;
		err = do_keep(&request, &result);
		if (calls_left)
			break;
		/* mkdirat() of kept/ itself is passed over where it is there. */
		assert_int_equal(err, -ENOSPC);
		/* Once it has its name, it stays. */
		assert_true(all_are_whole());
		assert_int_equal(system("test -z \"$(ls -A " KEPT_DIRECTORY
					" 2>/dev/null | grep tmp)\""),
				 0);
	}
	assert_true(call > 6);
}

static void tidying__removes_what_is_half_or_too_much(void **state)
{
	struct keep_request request = request_of(KEPT_SIGNAL);
	struct keep_result result;

	(void)state;
	request.is_tidying = 1;
	assert_int_equal(do_keep(&request, &result), 0);
	assert_false(is_there(KEPT_DIRECTORY));
	request.is_tidying = 0;
	fill();
	assert_int_equal(do_keep(&request, &result), 0);
	assert_int_equal(mkdir(KEPT_DIRECTORY "/.2026-01-01T000000Z-signal.tmp", 0700), 0);
	request.is_tidying = 1;
	assert_int_equal(do_keep(&request, &result), 0);
	assert_int_equal(count_names(KEPT_DIRECTORY), 1);
	request.max_bytes = 1;
	assert_int_equal(do_keep(&request, &result), 0);
	assert_int_equal(count_names(KEPT_DIRECTORY), 0);
}

#define in_a_store(test) cmocka_unit_test_setup_teardown(test, enter_store, leave_store)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_a_store(oom__keeps_the_process_alone_and_its_last_window),
		in_a_store(oom__about_says_what_and_when),
		in_a_store(signal__keeps_everything),
		in_a_store(window__longer_than_ten_minutes_is_kept_whole),
		in_a_store(windows__beyond_the_bound_are_the_oldest),
		in_a_store(store__that_has_nothing_of_it_leaves_nothing),
		in_a_store(file__that_cannot_be_read_is_left_out),
		in_a_store(bound__leaves_kinds_out_and_then_all),
		in_a_store(name__that_is_taken_moves_on),
		in_a_store(kill__at_any_call_leaves_nothing_half),
		in_a_store(call__that_fails_is_told_and_leaves_nothing),
		in_a_store(tidying__removes_what_is_half_or_too_much),
	};

	return cmocka_run_group_tests_name("merge/keep", tests, NULL, NULL);
}
