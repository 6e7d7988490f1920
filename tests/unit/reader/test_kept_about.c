/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: reader/kept_about.c base/io.c base/utf8.c */
#include "reader/kept_about.h"

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

static void about__is_what_known_keys_say(void **state)
{
	static const char text[] = "reason=oom\npid=41\nother=9\ncomm=a\x1b[2Jb\nnothing\n"
				   "time=t\nfrom=1=2\nto=";
	struct kept_about about;

	(void)state;
	kept_about_parse(text, sizeof(text) - 1, &about);
	assert_string_equal(about.reason, "oom");
	assert_string_equal(about.pid, "41");
	assert_string_equal(about.comm, "a\\x1b[2Jb");
	assert_string_equal(about.time, "t");
	assert_string_equal(about.from, "1=2");
	assert_string_equal(about.to, "");
}

static void about__long_values_are_cut(void **state)
{
	char text[4096];
	struct kept_about about;

	(void)state;
	memset(text, '\x01', sizeof(text));
	memcpy(text, "comm=", 5);
	kept_about_parse(text, sizeof(text), &about);
	assert_in_range(strlen(about.comm), KEPT_TEXT_BYTES / 2, KEPT_TEXT_BYTES - 1);
}

static void make(const char *store, const char *name, const char *about)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/kept/%s", store, name);
	assert_int_equal(mkdir(path, 0700), 0);
	if (!about)
		return;
	snprintf(path, sizeof(path), "%s/kept/%s/about", store, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(about, file);
	fclose(file);
	snprintf(path, sizeof(path), "%s/kept/%s/mem.pb.gz", store, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
}

static void read__is_of_one_that_was_kept(void **state)
{
	static const char oom[] = "2026-11-27T224637Z-oom-41-a",
			  signal[] = "2026-11-28T000000Z-signal";
	char store[] = "/tmp/pyprof-kept-XXXXXX", command[64];
	OWNED_MEM char *path = NULL;
	struct kept_about about;

	(void)state;
	assert_non_null(mkdtemp(store));
	snprintf(command, sizeof(command), "%s/kept", store);
	assert_int_equal(mkdir(command, 0700), 0);
	make(store, oom, "reason=oom\npid=41\n");
	make(store, signal, NULL);
	kept_about_read(store, oom, &about);
	assert_string_equal(about.reason, "oom");
	assert_string_equal(about.pid, "41");
	kept_about_read(store, signal, &about);
	assert_string_equal(about.reason, "");
	path = kept_profile(store, oom, "mem");
	assert_non_null(path);
	assert_null(kept_profile(store, oom, "alloc"));
	assert_null(kept_profile(store, signal, "mem"));
	snprintf(command, sizeof(command), "rm -r %s", store);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(about__is_what_known_keys_say),
		cmocka_unit_test(about__long_values_are_cut),
		cmocka_unit_test(read__is_of_one_that_was_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
