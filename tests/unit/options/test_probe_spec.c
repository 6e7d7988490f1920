/* SPDX-License-Identifier: BSD-2-Clause */
#include "options/values.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* "KIND binary|group|name|ret" */
static const char *parsed(const char *text)
{
	static char result[1024];
	char why[PROBE_SPEC_WHY_BYTES];
	struct probe_spec spec;

	if (probe_spec_parse(text, &spec, why))
		return "refused";
	assert_string_equal(spec.text, text);
	snprintf(result, sizeof(result), "%d %s|%s|%s|%d", (int)spec.kind,
		 spec.binary ? spec.binary : "", spec.group, spec.name, spec.is_return);
	probe_spec_release(&spec);
	assert_null(spec.text);
	return result;
}

static void probe_spec_parse__three_kinds(void **state)
{
	(void)state;
	assert_string_equal(parsed("usdt:/usr/bin/python3.11:python:gc__start"),
			    "0 /usr/bin/python3.11|python|gc__start|0");
	assert_string_equal(parsed("uprobe:/lib/x.so:f"), "1 /lib/x.so||f|0");
	assert_string_equal(parsed("uprobe:/lib/x.so:f+ret"), "1 /lib/x.so||f|1");
	assert_string_equal(parsed("tracepoint:sched:sched_switch"), "2 |sched|sched_switch|0");
}

static void probe_spec_parse__file_by_its_name_alone(void **state)
{
	(void)state;
	assert_string_equal(parsed("uprobe:libc.so.6:malloc"), "1 libc.so.6||malloc|0");
}

/* The last parts are split off: a path may have colons. */
static void probe_spec_parse__colons_in_a_path(void **state)
{
	(void)state;
	assert_string_equal(parsed("uprobe:/a:b/c:d:f"), "1 /a:b/c:d||f|0");
	assert_string_equal(parsed("usdt:/a:b:python:line"), "0 /a:b|python|line|0");
}

/* Only functions return. */
static void probe_spec_parse__ret_of_others_is_a_part_of_the_name(void **state)
{
	(void)state;
	assert_string_equal(parsed("usdt:/x:p:n+ret"), "0 /x|p|n+ret|0");
	assert_string_equal(parsed("tracepoint:g:n+ret"), "2 |g|n+ret|0");
}

static void probe_spec_parse__what_is_not_whole_is_refused_with_the_form(void **state)
{
	static const struct {
		const char *text, *form;
	} refused[] = {
		{"", "is not known"},
		{"uprobe", "is not known"},
		{"kprobe:x:y", "is not known"},
		{"Uprobe:/x:y", "is not known"},
		{"uprobe:", "uprobe:BINARY:SYMBOL"},
		{"uprobe:/x", "uprobe:BINARY:SYMBOL"},
		{"uprobe:/x:", "uprobe:BINARY:SYMBOL"},
		{"uprobe::f", "uprobe:BINARY:SYMBOL"},
		{"uprobe:/x:+ret", "uprobe:BINARY:SYMBOL"},
		{"usdt:/x:name", "usdt:BINARY:PROVIDER:NAME"},
		{"usdt::p:n", "usdt:BINARY:PROVIDER:NAME"},
		{"usdt:/x::n", "usdt:BINARY:PROVIDER:NAME"},
		{"tracepoint:sched", "tracepoint:GROUP:NAME"},
		{"tracepoint::x", "tracepoint:GROUP:NAME"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		char why[PROBE_SPEC_WHY_BYTES] = "";
		struct probe_spec spec;

		assert_int_equal(probe_spec_parse(refused[i].text, &spec, why), -EINVAL);
		if (!strstr(why, refused[i].form))
			fail_msg("'%s': %s", refused[i].text, why);
	}
}

static void probe_spec_parse__names_have_a_bound(void **state)
{
	char text[PROBE_SPEC_NAME_BYTES + 16];

	(void)state;
	snprintf(text, sizeof(text), "uprobe:/x:%0*d", (int)PROBE_SPEC_NAME_BYTES - 1, 0);
	assert_string_not_equal(parsed(text), "refused");
	snprintf(text, sizeof(text), "uprobe:/x:%0*d", (int)PROBE_SPEC_NAME_BYTES, 0);
	assert_string_equal(parsed(text), "refused");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probe_spec_parse__three_kinds),
		cmocka_unit_test(probe_spec_parse__file_by_its_name_alone),
		cmocka_unit_test(probe_spec_parse__colons_in_a_path),
		cmocka_unit_test(probe_spec_parse__ret_of_others_is_a_part_of_the_name),
		cmocka_unit_test(probe_spec_parse__what_is_not_whole_is_refused_with_the_form),
		cmocka_unit_test(probe_spec_parse__names_have_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
