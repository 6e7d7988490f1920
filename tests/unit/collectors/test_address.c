/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/settings.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static char why[CONFIG_WHY_BYTES];

static int parse(const char *url, struct fetch_address *address)
{
	why[0] = '\0';
	return fetch_address_parse(url, address, why);
}

static void base__is_what_paths_are_appended_to(void **state)
{
	static const char *const pairs[][2] = {{"http://h:4041", "http://h:4041"},
					       {"http://h:4041/", "http://h:4041"},
					       {"pyprofd+https://h/a/b//", "https://h/a/b"},
					       {"pyroscope+http://h/p/?app=x", "http://h/p"},
					       {"parca+http://h?app=x", "http://h"},
					       {"http://h/p/?a=b/", "http://h/p/?a=b/"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		CLEANUP(fetch_address_release) struct fetch_address address = {0};

		assert_int_equal(parse(pairs[i][0], &address), 0);
		assert_string_equal(address.base, pairs[i][1]);
	}
}

static void selector__has_the_parameters_decoded_and_quoted(void **state)
{
	static const char *const pairs[][2] = {
		{"pyroscope+http://h", "{}"},
		{"pyroscope+http://h/?", "{}"},
		{"pyroscope+http://h/?&&a=1&", "{a=\"1\"}"},
		{"pyroscope+http://h/?service_name=a+b&x.y:z=%22%5c%C3%A9",
		 "{service_name=\"a b\",x.y:z=\"\\\"\\\\\xc3\xa9\"}"},
		{"parca+http://h/?a=%zz&b=%4&c=", "{a=\"%zz\",b=\"%4\",c=\"\"}"},
		{"parca+http://h/?a=b=c", "{a=\"b=c\"}"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		CLEANUP(fetch_address_release) struct fetch_address address = {0};
		OWNED_MEM char *text = NULL;

		assert_int_equal(parse(pairs[i][0], &address), 0);
		assert_int_equal(fetch_address_selector(&address, &text), 0);
		assert_string_equal(text, pairs[i][1]);
		assert_null(address.type);
	}
}

static void profile_type__is_no_label_and_the_last_one_counts(void **state)
{
	CLEANUP(fetch_address_release) struct fetch_address address = {0};
	OWNED_MEM char *text = NULL;

	(void)state;
	assert_int_equal(parse("pyroscope+http://h/?a=1&profile_type=x&profile_type=memory%3Ay&b=2",
			       &address),
			 0);
	assert_string_equal(address.type, "memory:y");
	assert_int_equal(fetch_address_selector(&address, &text), 0);
	assert_string_equal(text, "{a=\"1\",b=\"2\"}");
}

static void parse__says_what_is_wrong_without_a_password(void **state)
{
	static const char *const pairs[][2] = {{"nonsense", "is no URL"},
					       {"http://", "names no host"},
					       {"http://u:secret@h", "--from-set user="},
					       {"http://h:0", "port"},
					       {"http://h/#x", "'#'"},
					       {"parca+http://h/?a=b#x", "'#'"},
					       {"pyprofd+http://h/p?a=secret", "takes no '?'"},
					       {"parca+http://h/?a", "not LABEL=VALUE"},
					       {"parca+http://h/?=secret", "not LABEL=VALUE"},
					       {"parca+http://h/?1=secret", "no label's name"},
					       {"parca+http://h/?a-b=secret", "no label's name"},
					       {"parca+http://h/?a=secret%0a", "control codes"},
					       {"parca+http://h/?a%00=secret", "control codes"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		CLEANUP(fetch_address_release) struct fetch_address address = {0};

		assert_int_equal(parse(pairs[i][0], &address), -EINVAL);
		assert_non_null(strstr(why, pairs[i][1]));
		if (!strstr(why, "not LABEL"))
			assert_null(strstr(why, "secret"));
		assert_null(address.base);
	}
}

static void parse__bounds_the_labels(void **state)
{
	CLEANUP(fetch_address_release) struct fetch_address address = {0};
	char url[1024] = "parca+http://h/?a=1";

	(void)state;
	for (unsigned int i = 1; i < FETCH_MATCHERS_MAX; i++)
		strcat(url, "&a=1");
	assert_int_equal(parse(url, &address), 0);
	assert_int_equal(address.matcher_count, FETCH_MATCHERS_MAX);
	fetch_address_release(&address);
	strcat(url, "&a=1");
	assert_int_equal(parse(url, &address), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(base__is_what_paths_are_appended_to),
		cmocka_unit_test(selector__has_the_parameters_decoded_and_quoted),
		cmocka_unit_test(profile_type__is_no_label_and_the_last_one_counts),
		cmocka_unit_test(parse__says_what_is_wrong_without_a_password),
		cmocka_unit_test(parse__bounds_the_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
