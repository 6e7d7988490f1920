/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "query/select.h"

#define NOW_MS 1795273360165ULL /* 2026-11-21T15:02:40.165Z */

static uint64_t time_of(const char *text)
{
	uint64_t ms = 0;

	assert_int_equal(select_time(text, NOW_MS, &ms), 0);
	return ms;
}

static void select_time__spans_are_before_now(void **state)
{
	(void)state;
	assert_int_equal(time_of("1h"), NOW_MS - 3600000);
	assert_int_equal(time_of("30m"), NOW_MS - 1800000);
	assert_int_equal(time_of("500ms"), NOW_MS - 500);
	assert_int_equal(time_of("2d"), NOW_MS - 172800000);
	/* Longer than there was time. */
	assert_int_equal(time_of("999999999d"), 0);
}

static void select_time__dates_are_local_unless_utc(void **state)
{
	(void)state;
	setenv("TZ", "UTC-2", 1);
	tzset();
	assert_int_equal(time_of("2026-11-21T15:00Z"), 1795273200000);
	assert_int_equal(time_of("2026-11-21T17:00"), 1795273200000);
	assert_int_equal(time_of("2026-11-21 17:00:01"), 1795273201000);
	assert_int_equal(time_of("17:00"), 1795273200000);
	assert_int_equal(time_of("@1795273200"), 1795273200000);
}

static void select_range__has_two_times_of_which_one_may_be_open(void **state)
{
	static const char *const bad[] = {"",	     "..",	 "1h",	      "1h.",
					  "x..1h",   "1h..x",	 "1h..2h",    "@7..@7",
					  "1h...2m", "1h..2m..", "@7..@8..@9"};
	struct select_range range;

	(void)state;
	assert_int_equal(select_range("2h..1h", NOW_MS, &range), 0);
	assert_int_equal(range.since_ms, NOW_MS - 7200000);
	assert_int_equal(range.until_ms, NOW_MS - 3600000);
	assert_string_equal(range.text, "2h..1h");
	assert_int_equal(select_range("@7..", NOW_MS, &range), 0);
	assert_int_equal(range.since_ms, 7000);
	assert_int_equal(range.until_ms, 0);
	assert_int_equal(select_range("..@8", NOW_MS, &range), 0);
	assert_int_equal(range.since_ms, 0);
	assert_int_equal(range.until_ms, 8000);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(select_range(bad[i], NOW_MS, &range), -EINVAL);
}

static void select_time__nonsense_is_einval(void **state)
{
	static const char *const bad[] = {"", "h", "1x", "yesterday", "-1h", "@", "12:99x", "1h30"};
	uint64_t ms;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(select_time(bad[i], NOW_MS, &ms), -EINVAL);
}

static void pids__are_added(void **state)
{
	CLEANUP(select_release) struct select select = {0};

	(void)state;
	assert_int_equal(select_add_pids(&select, "1,2147483647"), 0);
	assert_int_equal(select_add_pids(&select, "7"), 0);
	assert_int_equal(select.pid_count, 3);
	assert_int_equal(select.pid[1], INT32_MAX);
	assert_int_equal(select.pid[2], 7);
}

static void pids__that_are_none_or_too_many_are_refused(void **state)
{
	static const char *const bad[] = {"x", "1x", "1,,2", "-1", "2147483648", "1 2"};
	CLEANUP(select_release) struct select select = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(select_add_pids(&select, bad[i]), -EINVAL);
	select.pid_count = SELECT_MAX_PIDS;
	assert_int_equal(select_add_pids(&select, "1"), -E2BIG);
}

static void labels__are_added(void **state)
{
	CLEANUP(select_release) struct select select = {0};
	char why[SELECT_WHY_BYTES] = "";

	(void)state;
	assert_int_equal(select_add_label(&select, "app=^a=b$", why), 0);
	assert_int_equal(select_add_label(&select, "rank=", why), 0);
	assert_int_equal(select.label_count, 2);
	assert_string_equal(select.label[0].key, "app");
	assert_int_equal(regexec(select.label[0].regex, "a=b", 0, NULL, 0), 0);
	assert_int_equal(select_add_label(&select, "app", why), -EINVAL);
	assert_string_equal(why, "not KEY=REGEX");
	assert_int_equal(select_add_label(&select, "=x", why), -EINVAL);
	assert_int_equal(select_add_label(&select, "app=(", why), -EINVAL);
	assert_string_not_equal(why, "not KEY=REGEX");
	while (select.label_count < SELECT_MAX_LABELS)
		assert_int_equal(select_add_label(&select, "a=b", why), 0);
	assert_int_equal(select_add_label(&select, "a=b", why), -E2BIG);
	assert_string_equal(why, "more than 16 labels");
}

static void groups__of_keys_and_labels(void **state)
{
	struct grouping grouping = {0};
	char why[SELECT_WHY_BYTES] = "";

	(void)state;
	assert_int_equal(select_add_groups(&grouping, "process,wait", why), 0);
	assert_int_equal(grouping.keys, GROUP_BY_PROCESS | GROUP_BY_WAIT);
	assert_int_equal(select_add_groups(&grouping, "app,container,label:team", why), 0);
	assert_int_equal(grouping.keys,
			 GROUP_BY_PROCESS | GROUP_BY_WAIT | GROUP_BY_CONTAINER | GROUP_BY_LABELS);
	assert_int_equal(grouping.label_count, 2);
	assert_string_equal(grouping.label[0], "app");
	assert_string_equal(grouping.label[1], "team");
	assert_int_equal(select_add_groups(&grouping, "functoin", why), -EINVAL);
	assert_string_equal(why, "'functoin' is no label that pyprofd writes; for another one give "
				 "label:KEY");
	assert_int_equal(select_add_groups(&grouping, ",app", why), -EINVAL);
	assert_int_equal(select_add_groups(&grouping, "label:", why), -EINVAL);
	assert_int_equal(select_add_groups(&grouping, "rank,unit", why), 0);
	assert_int_equal(select_add_groups(&grouping, "pod", why), -E2BIG);
	assert_string_equal(why, "more than 4 labels, or one that is too long");
	grouping = (struct grouping){0};
	assert_int_equal(select_add_groups(&grouping,
					   "label:0123456789012345678901234567890123456789012345678"
					   "901234567890123",
					   why),
			 -E2BIG);
}

static void regex__that_is_none_is_explained(void **state)
{
	CLEANUP(select_release) struct select select = {0};
	char why[SELECT_WHY_BYTES] = "";

	(void)state;
	assert_int_equal(select_regex("^a|b$", why, &select.comm), 0);
	assert_int_equal(regexec(select.comm, "b", 0, NULL, 0), 0);
	assert_int_equal(select_regex("(", why, &select.thread), -EINVAL);
	assert_non_null(strstr(why, "("));
	assert_null(select.thread);
	/* regcomp() would take gigabytes. */
	assert_int_equal(select_regex("a++++++++++++++++++++++++++++++", why, &select.thread),
			 -EINVAL);
	assert_string_equal(why, "it repeats too much");
	assert_null(select.thread);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(select_time__spans_are_before_now),
		cmocka_unit_test(select_time__dates_are_local_unless_utc),
		cmocka_unit_test(select_time__nonsense_is_einval),
		cmocka_unit_test(pids__are_added),
		cmocka_unit_test(pids__that_are_none_or_too_many_are_refused),
		cmocka_unit_test(labels__are_added),
		cmocka_unit_test(groups__of_keys_and_labels),
		cmocka_unit_test(select_range__has_two_times_of_which_one_may_be_open),
		cmocka_unit_test(regex__that_is_none_is_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
