/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/settings.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

static char why[CONFIG_WHY_BYTES];

static int read_text(const char *text, struct fetch_settings *settings)
{
	OWNED_FILE FILE *file = fmemopen((char *)text, strlen(text), "r");

	assert_non_null(file);
	return fetch_settings_read(file, settings, why);
}

static void read__takes_every_setting(void **state)
{
	CLEANUP(fetch_settings_release) struct fetch_settings settings = {0};

	(void)state;
	assert_int_equal(read_text("url=http://h\nkind=offcpu\nsample-type=events\n"
				   "since-ms=1795273360165\nuntil-ms=1795273370165\n"
				   "set=token-file=/t\nset=user=u\nset=ca=/ca\nset=tenant=a=b\n"
				   "set=proxy=http://p:1\nset=header=A: 1\nset=header=B: 2\n"
				   "set=tenant=t\n",
				   &settings),
			 0);
	assert_string_equal(settings.url, "http://h");
	assert_string_equal(settings.kind, "offcpu");
	assert_string_equal(settings.sample_type, "events");
	assert_int_equal(settings.since_ms, 1795273360165);
	assert_int_equal(settings.until_ms, 1795273370165);
	assert_string_equal(settings.as.token_file, "/t");
	assert_string_equal(settings.as.user, "u");
	assert_string_equal(settings.as.ca, "/ca");
	assert_string_equal(settings.as.proxy, "http://p:1");
	assert_string_equal(settings.as.tenant, "t"); /* the last one counts */
	assert_int_equal(settings.as.header_count, 2);
	assert_string_equal(settings.as.header[1], "B: 2");
	assert_null(settings.as.cert);
	assert_null(settings.as.key);
}

static void read__says_what_is_wrong_and_no_secret(void **state)
{
	static const char *const pairs[][2] = {
		{"kind=cpu\n", "the URL is missing"},
		{"url=h\nkind=C P U\n", "kind: a setting"},
		{"url=h\nsince-ms=\n", "not a number"},
		{"url=h\nuntil-ms=12x\n", "not a number"},
		{"url=h\nuntil-ms=99999999999999999999\n", "not a number"},
		{"url=h\nsecretive=1\n", "is not known"},
		{"url=h\nset=user\n", "is not KEY=VALUE"},
		{"url=h\nset=user=\n", "is not KEY=VALUE"},
		{"url=h\nset==secret\n", "is not KEY=VALUE"},
		{"url=h\nset=toke=secret\n", "there is no such key"},
		{"url=h\nset=token-files=secret\n", "there is no such key"},
		{"url=h\nset=header=secret\n", "\"Name: value\""},
		{"url=h\nset=header=: secret\n", "\"Name: value\""},
		{"url=h\nset=proxy=secret\n", "is no proxy"},
		{"url=h\nset=cert=/c\n", "needs --from-set key"},
		{"url=h\nset=key=/c\n", "needs --from-set cert"},
		{"url=h\nset=user=u\n", "needs its password"},
		{"url=h\x01\n", "control codes"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		CLEANUP(fetch_settings_release) struct fetch_settings settings = {0};

		assert_int_equal(read_text(pairs[i][0], &settings), -EINVAL);
		assert_non_null(strstr(why, pairs[i][1]));
		if (!strstr(why, "KEY=VALUE") && !strstr(why, "secretive"))
			assert_null(strstr(why, "secret"));
	}
}

static void read__bounds_the_headers(void **state)
{
	CLEANUP(fetch_settings_release) struct fetch_settings settings = {0};
	char text[2048] = "url=h\n";

	(void)state;
	for (unsigned int i = 0; i <= HTTP_CLIENT_HEADERS_MAX; i++)
		strcat(text, "set=header=A: 1\n");
	assert_int_equal(read_text(text, &settings), -EINVAL);
	assert_non_null(strstr(why, "more than 32"));
}

static void read__a_key_that_others_can_read_is_refused(void **state)
{
	CLEANUP(fetch_settings_release) struct fetch_settings settings = {0};
	char path[] = "/tmp/test_settings-XXXXXX", text[128];
	OWNED_FD int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	snprintf(text, sizeof(text), "url=h\nset=cert=/c\nset=key=%s\n", path);
	assert_int_equal(read_text(text, &settings), 0);
	assert_int_equal(fchmod(fd, 0644), 0);
	assert_int_not_equal(read_text(text, &settings), 0);
	assert_non_null(strstr(why, path));
	assert_int_equal(unlink(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read__takes_every_setting),
		cmocka_unit_test(read__says_what_is_wrong_and_no_secret),
		cmocka_unit_test(read__bounds_the_headers),
		cmocka_unit_test(read__a_key_that_others_can_read_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
