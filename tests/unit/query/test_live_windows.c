/* SPDX-License-Identifier: BSD-2-Clause */
/* The client's connection is a fake in this file: a socket that already contains the answer. */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "live/record.h"
#include "query/live_windows.h"

static int connection;
static struct live_request asked;
static bool asks_why;
static int explained;
static char heard[WHY_BYTES + 8]; /* notes and the error, a line each */

int live_client_open(const char *path, const struct live_request *request, FILE *words,
		     struct live_client **ret_client)
{
	(void)path, (void)words;
	asked = *request;
	*ret_client = (struct live_client *)&connection;
	return 0;
}

void live_client_close(struct live_client *client)
{
	if (client)
		close_owned_fd(&connection);
}

int live_client_fd(const struct live_client *client)
{
	return *(const int *)client;
}

/* Asked by live_why(), whose result is the error then. */
bool live_client_has_failed(const struct live_client *client)
{
	(void)client;
	asks_why = true;
	return true;
}

static void on_note(void *context, const char *line)
{
	(void)context;
	snprintf(heard, sizeof(heard), "note: %s", line);
}

static const struct watcher watcher = {.note = on_note, .stop_fd = -1};

/* "0abc": a window of kind 0 with abc in it. */
static void answer(FILE *out, const char *window)
{
	fprintf(out, "window\t%zu\t%d\n%s", strlen(window + 1), (window[0] - '0' + 1) << 8 | 1,
		window + 1);
}

/* Takes what is answered before the other end is closed. */
static int take(const struct live_windows_options *options, const char *const *window,
		const char *behind, struct live_windows **ret_windows)
{
	char text[WHY_BYTES];
	int pair[2], err;
	FILE *out;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	connection = pair[0];
	out = fdopen(pair[1], "w");
	assert_non_null(out);
	for (; *window; window++)
		answer(out, *window);
	fputs(behind, out);
	assert_int_equal(fclose(out), 0);
	heard[0] = '\0';
	asks_why = false;
	err = live_windows_take(options, text, ret_windows);
	explained = asks_why ? err : 0;
	if (err)
		snprintf(heard, sizeof(heard), "%s", text);
	return err;
}

static const struct live_windows_options cpu = {
	.kind = PP_PROFILE_CPU, .seconds = 3600, .watcher = &watcher};

static void windows__are_kept_but_the_first_of_each_kind(void **state)
{
	static const char *const window[] = {"0old", "1old", "0aa", "1b", "0ccc", "1", NULL};
	static const struct {
		enum pp_profile kind;
		const char *bytes;
	} kept[] = {{PP_PROFILE_CPU, "aa"},
		    {PP_PROFILE_OFFCPU, "b"},
		    {PP_PROFILE_CPU, "ccc"},
		    {PP_PROFILE_OFFCPU, ""}};
	static const int64_t pid[] = {30, 7};
	const struct live_windows_options options = {.kind = PP_PROFILE_CPU,
						     .watcher = &watcher,
						     .more = 1U << PP_PROFILE_OFFCPU,
						     .pid = pid,
						     .pid_count = 2,
						     .seconds = 3600};
	OWNED(live_windows) struct live_windows *windows = NULL;

	(void)state;
	assert_int_equal(take(&options, window, "", &windows), 0);
	assert_int_equal(asked.verb, LIVE_TOP);
	assert_int_equal(asked.kinds, 3);
	assert_int_equal(asked.pid_count, 2);
	assert_int_equal(live_windows_count(windows), ARRAY_SIZE(kept));
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		char bytes[8] = "";
		OWNED_FD int fd = -1;

		assert_int_equal(live_windows_kind(windows, i), kept[i].kind);
		assert_int_equal(live_windows_open(windows, i, &fd), 0);
		assert_int_equal(read(fd, bytes, sizeof(bytes)), strlen(kept[i].bytes));
		assert_string_equal(bytes, kept[i].bytes);
	}
}

static void windows__that_are_wrong_end_it(void **state)
{
	static const struct {
		const char *window[4], *behind;
		int explained;
	} cases[] = {
		{{NULL}, "", -EPIPE},
		{{"0old", NULL}, "", -EPIPE},
		{{NULL}, "error\t95\tit does not record that\n", -EREMOTEIO},
		{{NULL}, "window\t1\t0\nx", -EBADMSG},
		{{"3x", NULL}, "", -EBADMSG},
		{{"1x", NULL}, "", -EBADMSG},
		{{NULL}, "window\t1\t18446744073709551615\nx", -EBADMSG},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct live_windows *windows = NULL;

		if (take(&cpu, cases[i].window, cases[i].behind, &windows) >= 0 ||
		    explained != cases[i].explained || windows)
			fail_msg("case %zu: %d", i, explained);
	}
}

static void windows__end_is_explained(void **state)
{
	static const char ended[] = "note: pyprofd has ended: this is what came before";
	static const struct {
		const char *window[6], *behind;
		unsigned long seconds;
		uint32_t more;
		size_t count;
		const char *heard;
	} cases[] = {
		{{"0old", "0a"}, "", 3600, 0, 1, ended},
		{{"0old", "0a", "0b"}, "", 3600, 0, 2, ended},
		/* The time is over with the first whole window: all kinds of it. */
		{{"0old", "0a"}, "", 0, 0, 1, ""},
		{{"0old", "1old", "0a"}, "", 0, 1U << PP_PROFILE_OFFCPU, 1, ended},
		{{"0old", "1old", "0a", "1b"}, "", 0, 1U << PP_PROFILE_OFFCPU, 2, ""},
		{{"0old", "1old", "0a", "1b", "0c"}, "", 0, 1U << PP_PROFILE_OFFCPU, 3, ended},
		{{"0old"}, "", 0, 0, 0, ""},
		{{"0old", "0a"},
		 "window\t1\t0\nx",
		 3600,
		 0,
		 1,
		 "note: --live: Bad message: this is what came before"},
		{{NULL},
		 "error\t22\tno\n",
		 3600,
		 0,
		 0,
		 "this pyprofd cannot send profiles, as it is older than this pyprof: "
		 "restart "
		 "it with the version of this pyprof"},
		{{NULL}, "error\t95\tno\n", 3600, 0, 0, ""},
		{{"1x"},
		 "",
		 3600,
		 1U << PP_PROFILE_OFFCPU,
		 0,
		 "the running pyprofd does not record kind cpu: choose another one with "
		 "--kind"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct live_windows_options options = {.kind = PP_PROFILE_CPU,
							     .more = cases[i].more,
							     .seconds = cases[i].seconds,
							     .watcher = &watcher};
		OWNED(live_windows) struct live_windows *windows = NULL;
		int err = take(&options, cases[i].window, cases[i].behind, &windows);

		if (strcmp(heard, cases[i].heard))
			fail_msg("case %zu: '%s'", i, heard);
		assert_int_equal(!err, cases[i].count > 0);
		assert_int_equal(windows ? live_windows_count(windows) : 0, cases[i].count);
	}
}

/* A kind that comes before the one that is wanted counts, too: the CPU's window is still to
 * come. */
static void windows__all_kinds_belong_to_a_whole_one(void **state)
{
	static const char *const part[] = {"1old", "0old", "1a", NULL}, *const whole[] = {
										"1old", "0old",
										"1a", "0b", NULL};
	const struct live_windows_options options = {
		.kind = PP_PROFILE_OFFCPU, .watcher = &watcher, .more = 1U << PP_PROFILE_CPU};
	struct live_windows *windows = NULL;

	(void)state;
	assert_int_equal(take(&options, part, "", &windows), 0);
	assert_non_null(strstr(heard, "has ended"));
	live_windows_free(windows);
	assert_int_equal(take(&options, whole, "", &windows), 0);
	assert_string_equal(heard, "");
	live_windows_free(windows);
}

static void windows__of_the_kind_that_is_wanted(void **state)
{
	static const char *const window[] = {"2old", "2x", NULL};
	const struct live_windows_options options = {
		.kind = PP_PROFILE_WALL, .seconds = 3600, .watcher = &watcher};
	OWNED(live_windows) struct live_windows *windows = NULL;

	(void)state;
	assert_int_equal(PP_PROFILE_WALL, 2);
	assert_int_equal(take(&options, window, "", &windows), 0);
	assert_int_equal(asked.kinds, 1U << PP_PROFILE_WALL);
	assert_int_equal(live_windows_count(windows), 1);
	assert_int_equal(live_windows_kind(windows, 0), PP_PROFILE_WALL);
}

/* Windows are copied in pieces of 65,536 bytes: one less, as many, one more, and behind another
 * one. */
static void windows__of_any_size_come_back_whole(void **state)
{
	static char window[70000], bytes[70000];

	(void)state;
	for (size_t size = 65534; size <= 65538; size++) {
		const char *const windows_of[] = {"0old", "0first", window, NULL};
		OWNED(live_windows) struct live_windows *windows = NULL;
		OWNED_FD int fd = -1;

		for (size_t i = 0; i < size; i++)
			window[1 + i] = (char)('a' + i % 23);
		window[0] = '0';
		window[1 + size] = '\0';
		assert_int_equal(take(&cpu, windows_of, "", &windows), 0);
		assert_int_equal(live_windows_count(windows), 2);
		assert_int_equal(live_windows_open(windows, 1, &fd), 0);
		assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), size);
		assert_memory_equal(bytes, window + 1, size);
		assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
	}
}

static void windows__of_the_most_and_the_greatest_pids(void **state)
{
	static const char *const window[] = {"0old", "0a", NULL};
	int64_t pid[LIVE_PIDS_MAX + 1];
	struct live_windows_options options = {
		.kind = PP_PROFILE_CPU, .pid = pid, .watcher = &watcher};
	struct live_windows *windows = NULL;
	char text[WHY_BYTES];

	(void)state;
	for (unsigned int i = 0; i <= LIVE_PIDS_MAX; i++)
		pid[i] = i + 1;
	pid[0] = INT32_MAX;
	pid[1] = 1;
	options.pid_count = LIVE_PIDS_MAX;
	assert_int_equal(take(&options, window, "", &windows), 0);
	assert_int_equal(asked.pid_count, LIVE_PIDS_MAX);
	assert_int_equal(asked.pid[0], INT32_MAX);
	assert_int_equal(asked.pid[LIVE_PIDS_MAX - 1], LIVE_PIDS_MAX);
	live_windows_free(windows);
	windows = NULL;
	connection = -1;
	options.pid_count = LIVE_PIDS_MAX + 1;
	assert_true(live_windows_take(&options, text, &windows) < 0);
	options.pid_count = 1;
	pid[0] = (int64_t)INT32_MAX + 1;
	assert_true(live_windows_take(&options, text, &windows) < 0);
	pid[0] = -1;
	assert_true(live_windows_take(&options, text, &windows) < 0);
	assert_null(windows);
}

/* Who serves many keeps less of each; what came before is given, and that is told. */
static void windows__are_bounded(void **state)
{
	static const char *const window[] = {"0", "0aaaa", "0bbbb", "0cc", NULL};
	struct live_windows_options options = cpu;
	OWNED(live_windows) struct live_windows *windows = NULL;

	(void)state;
	options.max_bytes = 7;
	assert_int_equal(take(&options, window, "", &windows), 0);
	assert_in_range(live_windows_count(windows), 1, 2);
	assert_non_null(strstr(heard, "of profiles: this is what came before"));
}

/* Waits alone are no answer to who asked for the CPU. */
static void windows__without_the_kind_that_is_wanted(void **state)
{
	static const char *const window[] = {"1x", "1y", NULL};
	const struct live_windows_options options = {.kind = PP_PROFILE_CPU,
						     .more = 1U << PP_PROFILE_OFFCPU,
						     .seconds = 3600,
						     .watcher = &watcher};
	struct live_windows *windows = NULL;

	(void)state;
	assert_true(take(&options, window, "", &windows) < 0);
	assert_int_equal(explained, 0);
	assert_null(windows);
}

static void windows__of_numbers_that_no_process_has(void **state)
{
	static const int64_t none[] = {5, 0};
	const struct live_windows_options options = {
		.pid = none, .pid_count = 2, .seconds = 1, .watcher = &watcher};
	struct live_windows *windows = NULL;
	char text[WHY_BYTES];

	(void)state;
	connection = -1;
	assert_true(live_windows_take(&options, text, &windows) < 0);
	assert_null(windows);
}

/* While nothing comes. */
static void windows__until_the_watcher_ends_it(void **state)
{
	OWNED_FD int other = -1, stop = eventfd(1, EFD_CLOEXEC);
	const struct watcher impatient = {.stop_fd = stop};
	struct live_windows_options options = cpu;
	struct live_windows *windows = NULL;
	char text[WHY_BYTES];
	int pair[2];

	(void)state;
	options.watcher = &impatient;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	connection = pair[0];
	other = pair[1];
	asks_why = false;
	assert_true(live_windows_take(&options, text, &windows) < 0);
	assert_non_null(strstr(text, "before the first window"));
	assert_false(asks_why);
	assert_null(windows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows__are_kept_but_the_first_of_each_kind),
		cmocka_unit_test(windows__that_are_wrong_end_it),
		cmocka_unit_test(windows__end_is_explained),
		cmocka_unit_test(windows__all_kinds_belong_to_a_whole_one),
		cmocka_unit_test(windows__of_the_kind_that_is_wanted),
		cmocka_unit_test(windows__of_any_size_come_back_whole),
		cmocka_unit_test(windows__of_the_most_and_the_greatest_pids),
		cmocka_unit_test(windows__are_bounded),
		cmocka_unit_test(windows__without_the_kind_that_is_wanted),
		cmocka_unit_test(windows__of_numbers_that_no_process_has),
		cmocka_unit_test(windows__until_the_watcher_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
