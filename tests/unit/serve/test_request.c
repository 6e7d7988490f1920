/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/request.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define NOW_MS 1795273360165ULL /* 2026-11-21T15:02:40.165Z */

static struct request routed(const char *path)
{
	struct request request;

	assert_int_equal(request_route(path, &request), 0);
	return request;
}

static int take(struct request *request, const char *name, const char *value)
{
	char why[REQUEST_WHY_BYTES] = "";
	int err = request_take(request, name, value, NOW_MS, why);

	assert_int_equal(!err, !why[0]);
	return err;
}

static void path__is_found_as_a_whole(void **state)
{
	static const struct {
		const char *path;
		enum request_endpoint endpoint;
	} good[] = {{"/", REQUEST_PAGE},
		    {"/debug/pprof/", REQUEST_INDEX},
		    {"/debug/pprof", REQUEST_INDEX},
		    {"/debug/pprof/profile", REQUEST_LIVE},
		    {"/debug/pprof/gil", REQUEST_LIVE},
		    {"/api/v1/profile", REQUEST_STORED},
		    {"/api/v1/labels", REQUEST_LABELS},
		    {"/api/v1/waits", REQUEST_WAITS},
		    {"/api/v1/self", REQUEST_SELF},
		    {"/metrics", REQUEST_METRICS},
		    {"/healthz", REQUEST_HEALTH},
		    {"/readyz", REQUEST_READY}};
	static const char *const bad[] = {"", "//", "/x", "/metrics/", "/debug/pprof/heap",
					  /* Its stacks are of two processes. */
					  "/debug/pprof/waker", "/debug/pprof/cpu/", "/api/v1/",
					  "/debug/pprof//", "/../healthz"};
	struct request request = {.seconds = 7};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(routed(good[i].path).endpoint, good[i].endpoint);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(request_route(bad[i], &request), -ENOENT);
	assert_int_equal(request.seconds, 7);
}

static void live__has_kind_seconds_and_pid(void **state)
{
	struct request request = routed("/debug/pprof/profile");

	(void)state;
	assert_int_equal(request.kind, PP_PROFILE_CPU);
	assert_int_equal(request.seconds, 30);
	assert_int_equal(request.pid, 0);
	assert_int_equal(request.format, REQUEST_PPROF);
	assert_int_equal(take(&request, "seconds", "3600"), 0);
	assert_int_equal(take(&request, "pid", "4194304"), 0);
	assert_int_equal(take(&request, "format", "json"), 0);
	assert_int_equal(request.format, REQUEST_JSON);
	assert_int_equal(request.seconds, 3600);
	assert_int_equal(request.pid, 4194304);
	assert_int_equal(routed("/debug/pprof/offcpu").kind, PP_PROFILE_OFFCPU);
	assert_true(request_needs_work(&request));
}

static void live__numbers_out_of_bounds_are_refused(void **state)
{
	static const char *const bad[][2] = {{"seconds", "0"},
					     {"seconds", "3601"},
					     {"seconds", "-1"},
					     {"seconds", ""},
					     {"seconds", "1.5"},
					     {"seconds", " 1"},
					     {"seconds", "99999999999999999999"},
					     {"seconds", NULL},
					     {"pid", "0"},
					     {"pid", "4194305"},
					     {"pid", "1,2"},
					     {"pid", "x"},
					     {"pid", "+1"}};
	struct request request = routed("/debug/pprof/profile");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(take(&request, bad[i][0], bad[i][1]), -EINVAL);
	assert_int_equal(request.seconds, 30);
	assert_int_equal(request.pid, 0);
}

static void stored__has_times_kind_and_format(void **state)
{
	struct request request = routed("/api/v1/profile");

	(void)state;
	assert_string_equal(request.stored, "cpu");
	assert_int_equal(take(&request, "from", "1h"), 0);
	assert_int_equal(request.from_ms, NOW_MS - 3600000);
	assert_int_equal(take(&request, "until", "1795273360"), 0);
	assert_int_equal(request.until_ms, 1795273360000);
	assert_int_equal(take(&request, "from", "@1795273000"), 0);
	assert_int_equal(request.from_ms, 1795273000000);
	assert_int_equal(take(&request, "kind", "waker"), 0);
	assert_string_equal(request.stored, "waker");
	assert_int_equal(take(&request, "format", "folded"), 0);
	assert_int_equal(request.format, REQUEST_FOLDED);
	assert_int_equal(take(&request, "pid", "17"), 0);
	assert_int_equal(take(&request, "format", "html"), 0);
	assert_int_equal(request.format, REQUEST_HTML);
}

/* A name that is mistyped would give another profile than the one that was meant. */
static void names__that_an_endpoint_does_not_have_are_refused(void **state)
{
	static const struct {
		const char *path, *name;
	} cases[] = {{"/api/v1/profile", "seconds"},  {"/api/v1/profile", "Pid"},
		     {"/api/v1/profile", ""},	      {"/debug/pprof/profile", "from"},
		     {"/debug/pprof/offcpu", "kind"}, {"/api/v1/strip", "pid"},
		     {"/api/v1/strip", "format"},     {"/api/v1/strip", "label"},
		     {"/api/v1/labels", "format"},    {"/api/v1/labels", "points"},
		     {"/api/v1/waits", "kind"},	      {"/api/v1/waits", "label"},
		     {"/api/v1/self", "from"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct request request = routed(cases[i].path);

		assert_int_equal(take(&request, cases[i].name, "1"), -EINVAL);
		assert_int_equal(take(&request, "token", "1"), 0);
	}
}

static void stored__what_is_wrong_is_refused(void **state)
{
	static const char *const bad[][2] = {{"from", "yesterday"}, {"from", ""},
					     {"until", "1x"},	    {"kind", "../../etc"},
					     {"kind", ""},	    {"format", "pdf"},
					     {"format", NULL},	    {"kind", "CPU"}};
	struct request request = routed("/api/v1/profile");
	char longest[REQUEST_VALUE_BYTES + 1];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(take(&request, bad[i][0], bad[i][1]), -EINVAL);
	memset(longest, '1', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(take(&request, "from", longest), -EINVAL);
	assert_string_equal(request.stored, "cpu");
}

static void labels__match_their_value_alone(void **state)
{
	struct request request = routed("/api/v1/profile");
	struct request live = routed("/debug/pprof/profile");
	char longest[REQUEST_VALUE_BYTES];

	(void)state;
	assert_int_equal(take(&request, "label", "app:web"), 0);
	assert_int_equal(take(&request, "label", "unit:a.b[1]:x=^$\\"), 0);
	assert_int_equal(request.label_count, 2);
	assert_string_equal(request.label[0], "app=^web$");
	assert_string_equal(request.label[1], "unit=^a\\.b\\[1\\]:x=\\^\\$\\\\$");
	assert_int_equal(take(&request, "label", "app:"), 0);
	assert_string_equal(request.label[2], "app=^$");
	assert_int_equal(take(&request, "label", "app"), -EINVAL);
	assert_int_equal(take(&request, "label", ":web"), -EINVAL);
	assert_int_equal(take(&request, "label", "a=b:web"), -EINVAL);
	assert_int_equal(take(&request, "label", NULL), -EINVAL);
	memset(longest, '.', sizeof(longest));
	memcpy(longest, "a:", 2);
	longest[sizeof(longest) - 1] = '\0';
	for (unsigned int i = 0; i < REQUEST_LABELS_MAX; i++)
		assert_int_equal(take(&live, "label", longest), 0);
	for (unsigned int i = 0; i < REQUEST_LABELS_MAX; i++)
		assert_int_equal(strlen(live.label[i]), 3 + 2 * (sizeof(longest) - 3) + 1);
	assert_int_equal(take(&live, "label", "app:web"), -EINVAL);
}

static void strip__has_times_kind_and_points(void **state)
{
	struct request request = routed("/api/v1/strip");

	(void)state;
	assert_int_equal(request.points, 600);
	assert_int_equal(take(&request, "points", "1"), 0);
	assert_int_equal(take(&request, "points", "2000"), 0);
	assert_int_equal(request.points, 2000);
	assert_int_equal(take(&request, "points", "2001"), -EINVAL);
	assert_int_equal(take(&request, "points", "0"), -EINVAL);
	assert_int_equal(take(&request, "points", "-1"), -EINVAL);
	assert_int_equal(take(&request, "kind", "offcpu"), 0);
	assert_string_equal(request.stored, "offcpu");
	assert_int_equal(take(&request, "from", "1h"), 0);
	assert_int_equal(request.from_ms, NOW_MS - 3600000);
	assert_true(request_needs_work(&request));
}

static void labels_and_waits__have_a_range_and_processes(void **state)
{
	struct request labels = routed("/api/v1/labels"), waits = routed("/api/v1/waits");

	(void)state;
	assert_int_equal(take(&labels, "from", "1h"), 0);
	assert_int_equal(take(&labels, "until", "1m"), 0);
	assert_int_equal(take(&labels, "kind", "gil"), 0);
	assert_int_equal(take(&labels, "pid", "7"), 0);
	assert_int_equal(take(&labels, "label", "app:web"), 0);
	assert_int_equal(take(&waits, "from", "1h"), 0);
	assert_int_equal(take(&waits, "until", "1m"), 0);
	assert_int_equal(take(&waits, "pid", "7"), 0);
	assert_int_equal(waits.from_ms, NOW_MS - 3600000);
	assert_int_equal(waits.pid, 7);
	assert_true(request_needs_work(&labels) && request_needs_work(&waits));
}

static void range__is_an_hour_where_none_is_given(void **state)
{
	struct request request = routed("/api/v1/strip");
	uint64_t from_ms, until_ms;

	(void)state;
	request_range(&request, NOW_MS, &from_ms, &until_ms);
	assert_int_equal(from_ms, NOW_MS - 3600000);
	assert_int_equal(until_ms, NOW_MS);
	request.until_ms = NOW_MS / 2;
	request_range(&request, NOW_MS, &from_ms, &until_ms);
	assert_int_equal(from_ms, NOW_MS / 2 - 3600000);
	request.from_ms = 5;
	request_range(&request, NOW_MS, &from_ms, &until_ms);
	assert_int_equal(from_ms, 5);
	assert_int_equal(until_ms, NOW_MS / 2);
	request = (struct request){.until_ms = 7};
	request_range(&request, NOW_MS, &from_ms, &until_ms);
	assert_int_equal(from_ms, 0);
}

/* Pages have no parameters: what is there is not looked at. */
static void pages__take_anything(void **state)
{
	struct request request = routed("/healthz");

	(void)state;
	assert_int_equal(take(&request, "seconds", "x"), 0);
	assert_false(request_needs_work(&request));
}

/* With the nearest name, or all of them. */
static void parameter__that_is_unknown_gets_a_hint(void **state)
{
	static const struct {
		const char *path, *name, *why;
	} cases[] = {
		{"/debug/pprof/profile", "second",
		 "second: there is no such parameter; did you mean 'seconds'?"},
		{"/debug/pprof/cpu", "xyzzyx",
		 "xyzzyx: there is no such parameter: there are seconds, pid, label, format"},
		/* What is near is another path's. */
		{"/debug/pprof/cpu", "kinds",
		 "kinds: there is no such parameter: there are seconds, pid, label, format"},
		{"/api/v1/profile", "form",
		 "form: there is no such parameter; did you mean 'from'?"},
		{"/api/v1/profile", "seconds",
		 "seconds: there is no such parameter: there are from, until, kind, pid, label, "
		 "format"},
		{"/api/v1/strip", "pid",
		 "pid: there is no such parameter: there are from, until, kind, points"},
		{"/api/v1/strip", "label",
		 "label: there is no such parameter: there are from, until, kind, points"},
		{"/api/v1/self", "kind", "kind: there is no such parameter"},
		{"/api/v1/strip", "point",
		 "point: there is no such parameter; did you mean 'points'?"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct request request = routed(cases[i].path);
		char why[REQUEST_WHY_BYTES];

		assert_int_equal(request_take(&request, cases[i].name, "1", NOW_MS, why), -EINVAL);
		assert_string_equal(why, cases[i].why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(path__is_found_as_a_whole),
		cmocka_unit_test(live__has_kind_seconds_and_pid),
		cmocka_unit_test(live__numbers_out_of_bounds_are_refused),
		cmocka_unit_test(stored__has_times_kind_and_format),
		cmocka_unit_test(names__that_an_endpoint_does_not_have_are_refused),
		cmocka_unit_test(stored__what_is_wrong_is_refused),
		cmocka_unit_test(labels__match_their_value_alone),
		cmocka_unit_test(strip__has_times_kind_and_points),
		cmocka_unit_test(labels_and_waits__have_a_range_and_processes),
		cmocka_unit_test(range__is_an_hour_where_none_is_given),
		cmocka_unit_test(pages__take_anything),
		cmocka_unit_test(parameter__that_is_unknown_gets_a_hint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
