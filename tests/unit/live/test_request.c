/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "live/request.h"

/* From a buffer that ends with the line: what reads on is found by the address sanitizer. */
static int parse(const char *line, struct live_request *ret_request)
{
	char *bytes = malloc(strlen(line) + 1);
	int err;

	assert_non_null(bytes);
	memcpy(bytes + 1, line, strlen(line));
	err = live_request_parse(bytes + 1, strlen(line), ret_request);
	free(bytes);
	return err;
}

static void request__all(void **state)
{
	struct live_request request = {.pid_count = 7, .no_native = true};

	(void)state;
	assert_int_equal(parse("pyprofd 1 dump all", &request), 0);
	assert_int_equal(request.verb, LIVE_DUMP);
	assert_int_equal(request.pid_count, 0);
	assert_false(request.no_native);
	assert_true(live_request_wants(&request, 4711));
	assert_int_equal(parse("pyprofd 1 top all", &request), 0);
	assert_int_equal(request.verb, LIVE_TOP);
}

static void request__pids_are_sorted_and_each_once(void **state)
{
	struct live_request request;

	(void)state;
	assert_int_equal(parse("pyprofd 1 dump 30,7,30,12 no-native no-kernel", &request), 0);
	assert_int_equal(request.pid_count, 3);
	assert_int_equal(request.pid[0], 7);
	assert_int_equal(request.pid[2], 30);
	assert_true(request.no_native && request.no_kernel);
	assert_true(live_request_wants(&request, 12));
	assert_false(live_request_wants(&request, 13));
	/* The kernel's greatest. */
	assert_int_equal(parse("pyprofd 1 dump 4194304", &request), 0);
	assert_int_equal(request.pid[0], 4194304);
}

static void request__what_is_wrong_is_refused_and_changes_nothing(void **state)
{
	static const struct {
		const char *line;
		int err;
	} cases[] = {
		{"", -EPROTO},
		{"GET / HTTP/1.1", -EPROTO},
		{"pyprofd 2 dump all", -EPROTO},
		{"pyprofd  1 dump all", -EPROTO},
		{"pyprofd 1", -EINVAL},
		{"pyprofd 1 dump", -EINVAL},
		{"pyprofd 1 dump ", -EINVAL},
		{"pyprofd 1 dump 0", -EINVAL},
		{"pyprofd 1 dump 1,", -EINVAL},
		{"pyprofd 1 dump ,1", -EINVAL},
		{"pyprofd 1 dump -1", -EINVAL},
		{"pyprofd 1 dump 007", -EINVAL},
		{"pyprofd 1 dump 1;2", -EINVAL},
		{"pyprofd 1 dump 4294967297", -EINVAL},
		{"pyprofd 1 dump 4194305", -EINVAL},
		{"pyprofd 1 dump 4194299,4194310", -EINVAL},
		{"pyprofd 1 dump 1,0", -EINVAL},
		{"pyprofd 1 dump 01", -EINVAL},
		{"pyprofd 1 dump 41943040", -EINVAL},
		{"pyprofd 1 dump 42949672970000000000000000000001", -EINVAL},
		{"pyprofd 1 dump all raw", -EINVAL},
		{"pyprofd 1 dump all\r", -EINVAL},
		{"pyprofd 1 erase all", -EINVAL},
		{"pyprofd 1 top all kinds=", -EINVAL},
		{"pyprofd 1 top all kinds", -EINVAL},
		{"pyprofd 1 top all kinds=cpu,", -EINVAL},
		{"pyprofd 1 top all kinds=,cpu", -EINVAL},
		{"pyprofd 1 top all kinds=cpu,waker", -EINVAL},
		{"pyprofd 1 top all kinds=cp", -EINVAL},
		{"pyprofd 1 top all kinds=cpus", -EINVAL},
		{"pyprofd 1 top all Kinds=cpu", -EINVAL},
		{"pyprofd 1 dump all kinds=cpu", -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct live_request request = {.pid_count = 99};

		if (parse(cases[i].line, &request) != cases[i].err)
			fail_msg("'%s'", cases[i].line);
		assert_int_equal(request.pid_count, 99);
	}
	/* A line ends where its size says. */
	{
		static const char line[] = "pyprofd 1 all\0dump";
		struct live_request request = {.pid_count = 99};

		assert_int_equal(live_request_parse(line, sizeof(line) - 1, &request), -EINVAL);
		assert_int_equal(request.pid_count, 99);
	}
}

static void request__kinds(void **state)
{
	struct live_request request = {.kinds = 99}, again;
	char text[LIVE_REQUEST_BYTES], expected[LIVE_REQUEST_BYTES], names[KIND_NAMES_CHARS];
	size_t size;

	(void)state;
	assert_int_equal(parse("pyprofd 1 top all", &request), 0);
	assert_int_equal(request.kinds, 0);
	assert_int_equal(parse("pyprofd 1 top 7 kinds=gil,cpu,gil", &request), 0);
	assert_int_equal(request.kinds, 1U << PP_PROFILE_CPU | 1U << PP_PROFILE_GIL);
	assert_int_equal(request.pid[0], 7);
	assert_int_equal(live_request_format(&request, text, &size), 0);
	assert_string_equal(text, "pyprofd 1 top 7 kinds=cpu,gil\n");
	request.kinds = KINDS_SERVED;
	assert_int_equal(live_request_format(&request, text, &size), 0);
	kind_names(KINDS_SERVED, ",", ",", names);
	snprintf(expected, sizeof(expected), "pyprofd 1 top 7 kinds=%s\n", names);
	assert_string_equal(text, expected);
	assert_int_equal(live_request_parse(text, size - 1, &again), 0);
	assert_int_equal(again.kinds, request.kinds);
}

/* Each kind alone, through both directions: what is not served is no word of a request. */
static void request__each_kind_that_is_served(void **state)
{
	(void)state;
	for (unsigned int kind = 0; kind < PP_PROFILE_COUNT; kind++) {
		const char *name = kind_get((enum pp_profile)kind)->name;
		bool is_served = KINDS_SERVED & 1U << kind;
		struct live_request request = {.verb = LIVE_TOP}, again;
		char text[LIVE_REQUEST_BYTES], line[64];
		enum pp_profile found = PP_PROFILE_COUNT;
		size_t size;

		snprintf(line, sizeof(line), "pyprofd 1 top all kinds=%s", name);
		assert_int_equal(parse(line, &request), is_served ? 0 : -EINVAL);
		assert_int_equal(live_kind_find(name, strlen(name), &found), is_served);
		assert_int_equal(found, is_served ? kind : PP_PROFILE_COUNT);
		if (!is_served)
			continue;
		assert_int_equal(request.kinds, 1U << kind);
		assert_int_equal(live_request_format(&request, text, &size), 0);
		assert_int_equal(live_request_parse(text, size - 1, &again), 0);
		assert_int_equal(again.kinds, 1U << kind);
	}
}

static void live_kind_find__only_whole_names(void **state)
{
	enum pp_profile kind = PP_PROFILE_COUNT;

	(void)state;
	assert_true(live_kind_find("offcpu,", 6, &kind));
	assert_int_equal(kind, PP_PROFILE_OFFCPU);
	assert_false(live_kind_find("off", 3, &kind));
	assert_false(live_kind_find("", 0, &kind));
	assert_int_equal(kind, PP_PROFILE_OFFCPU);
}

static void request__bounds(void **state)
{
	char line[LIVE_REQUEST_BYTES + 1] = "pyprofd 1 dump 1";
	struct live_request request;

	(void)state;
	for (unsigned int i = 2; i <= LIVE_PIDS_MAX; i++)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), ",%u", i);
	assert_int_equal(parse(line, &request), 0);
	assert_int_equal(request.pid_count, LIVE_PIDS_MAX);
	strcat(line, ",1");
	assert_int_equal(parse(line, &request), -E2BIG);
	memset(line, ' ', LIVE_REQUEST_BYTES);
	assert_int_equal(live_request_parse(line, LIVE_REQUEST_BYTES, &request), -E2BIG);
}

static void request__is_written_as_it_is_read(void **state)
{
	struct live_request request = {.pid = {5, 4194304}, .pid_count = 2, .no_kernel = true},
			    again;
	char text[LIVE_REQUEST_BYTES];
	size_t size;

	(void)state;
	assert_int_equal(live_request_format(&request, text, &size), 0);
	assert_string_equal(text, "pyprofd 1 dump 5,4194304 no-kernel\n");
	assert_int_equal(size, strlen(text));
	assert_int_equal(live_request_parse(text, size - 1, &again), 0);
	assert_int_equal(again.pid[1], 4194304);
	assert_true(again.no_kernel);
	request.pid_count = LIVE_PIDS_MAX;
	for (unsigned int i = 0; i < LIVE_PIDS_MAX; i++)
		request.pid[i] = 4194304 - LIVE_PIDS_MAX + i;
	assert_int_equal(live_request_format(&request, text, &size), 0);
}

static void request__of_another_user(void **state)
{
	static const char *const bad[] = {"uid=",	    "uid=01", "uid=-1",
					  "uid=4294967295", "uid=1x", "uid=99999999999",
					  "uid=1 uid=2"};
	struct live_request request;
	char text[LIVE_REQUEST_BYTES], line[128];
	size_t size;

	(void)state;
	assert_int_equal(parse("pyprofd 1 top all uid=1000 kinds=cpu", &request), 0);
	assert_true(request.has_uid);
	assert_int_equal(request.uid, 1000);
	assert_int_equal(live_request_format(&request, text, &size), 0);
	assert_string_equal(text, "pyprofd 1 top all uid=1000 kinds=cpu\n");
	assert_int_equal(parse("pyprofd 1 top all uid=4294967294", &request), 0);
	assert_int_equal(request.uid, UINT32_MAX - 1);
	assert_int_equal(parse("pyprofd 1 dump 7 uid=0", &request), 0);
	assert_true(request.has_uid && !request.uid);
	assert_int_equal(parse("pyprofd 1 stats all", &request), 0);
	assert_int_equal(request.verb, LIVE_STATS);
	assert_false(request.has_uid);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(line, sizeof(line), "pyprofd 1 top all %s", bad[i]);
		assert_int_equal(parse(line, &request), -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request__all),
		cmocka_unit_test(request__pids_are_sorted_and_each_once),
		cmocka_unit_test(request__what_is_wrong_is_refused_and_changes_nothing),
		cmocka_unit_test(request__kinds),
		cmocka_unit_test(request__each_kind_that_is_served),
		cmocka_unit_test(live_kind_find__only_whole_names),
		cmocka_unit_test(request__bounds),
		cmocka_unit_test(request__is_written_as_it_is_read),
		cmocka_unit_test(request__of_another_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
