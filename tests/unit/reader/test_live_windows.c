/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: base/kinds.c reader/live_windows.c live/feed.c live/record.c live/request.c base/io.c */
/* The client's connection is a fake in this file: a socket that already contains the answer. */
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "live/record.h"
#include "reader/live_options.h"
#include "reader/live_windows.h"
#include "reader/verb.h"

static int connection;
static struct live_request asked;
static int explained;

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

int live_explain(const struct live_client *client, int err, const char *why)
{
	(void)client, (void)why;
	explained = err;
	return READER_BAD_INPUT;
}

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
	int pair[2];
	FILE *out;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	connection = pair[0];
	out = fdopen(pair[1], "w");
	assert_non_null(out);
	for (; *window; window++)
		answer(out, *window);
	fputs(behind, out);
	assert_int_equal(fclose(out), 0);
	explained = 0;
	return live_windows_take(options, ret_windows);
}

static const struct live_windows_options cpu = {.kind = PP_PROFILE_CPU, .seconds = 3600};

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

		if (take(&cpu, cases[i].window, cases[i].behind, &windows) != READER_BAD_INPUT ||
		    explained != cases[i].explained || windows)
			fail_msg("case %zu: %d", i, explained);
	}
}

/* Waits alone are no answer to who asked for the CPU. */
static void windows__without_the_kind_that_is_wanted(void **state)
{
	static const char *const window[] = {"1x", "1y", NULL};
	const struct live_windows_options options = {
		.kind = PP_PROFILE_CPU, .more = 1U << PP_PROFILE_OFFCPU, .seconds = 3600};
	struct live_windows *windows = NULL;

	(void)state;
	assert_int_equal(take(&options, window, "", &windows), READER_BAD_INPUT);
	assert_int_equal(explained, 0);
	assert_null(windows);
}

static void windows__of_numbers_that_no_process_has(void **state)
{
	static const int64_t none[] = {5, 0};
	const struct live_windows_options options = {.pid = none, .pid_count = 2, .seconds = 1};
	struct live_windows *windows = NULL;

	(void)state;
	connection = -1;
	assert_int_equal(live_windows_take(&options, &windows), READER_BAD_INPUT);
	assert_null(windows);
}

/* SIGINT while nothing comes; afterwards it is as it was. */
static void windows__until_a_signal(void **state)
{
	OWNED_FD int other = -1;
	struct live_windows *windows = NULL;
	sigset_t before, during, after;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	connection = pair[0];
	other = pair[1];
	sigemptyset(&during);
	sigaddset(&during, SIGINT);
	assert_int_equal(sigprocmask(SIG_BLOCK, &during, &before), 0);
	assert_int_equal(raise(SIGINT), 0); /* waits until it is taken */
	explained = 0;
	assert_int_equal(live_windows_take(&cpu, &windows), READER_BAD_INPUT);
	assert_int_equal(explained, 0);
	assert_null(windows);
	assert_int_equal(sigpending(&after), 0);
	assert_false(sigismember(&after, SIGINT));
	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows__are_kept_but_the_first_of_each_kind),
		cmocka_unit_test(windows__that_are_wrong_end_it),
		cmocka_unit_test(windows__without_the_kind_that_is_wanted),
		cmocka_unit_test(windows__of_numbers_that_no_process_has),
		cmocka_unit_test(windows__until_a_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
