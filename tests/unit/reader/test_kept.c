/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: reader/kept.c base/io.c base/utf8.c */
#include "reader/kept.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

static void name__has_the_shape_of_a_moment(void **state)
{
	(void)state;
	assert_true(kept_name_is_valid("2026-11-27T224637Z-oom-41-python3"));
	assert_true(kept_name_is_valid("2026-11-27T224637Z-signal"));
	assert_false(kept_name_is_valid("2026-11-27T224637Z"));
	assert_false(kept_name_is_valid(""));
	assert_false(kept_name_is_valid(".."));
	assert_false(kept_name_is_valid("2026-11-27T22463xZ-signal"));
	assert_false(kept_name_is_valid("2026-11-27T224637Z-oom-41-a/../b"));
	assert_false(kept_name_is_valid("2026-11-27T224637Z-oom-41-\x1b[2J"));
}

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

static void list__newest_comes_first(void **state)
{
	char store[] = "/tmp/pyprof-kept-XXXXXX", command[64];
	OWNED_MEM struct kept *none = NULL;
	OWNED_MEM struct kept *kept = NULL;
	OWNED_MEM char *path = NULL;
	struct kept_about about;
	size_t count = 9;

	(void)state;
	assert_int_equal(kept_list("/nonexistent", &kept, &count), -ENOENT);
	assert_non_null(mkdtemp(store));
	assert_int_equal(kept_list(store, &none, &count), 0);
	assert_int_equal(count, 0);
	snprintf(command, sizeof(command), "%s/kept", store);
	assert_int_equal(mkdir(command, 0700), 0);
	make(store, "2026-11-27T224637Z-oom-41-a", "reason=oom\npid=41\n");
	make(store, "2026-11-28T000000Z-signal", NULL);
	make(store, "2026-11-26T235959Z-oom-7-b", NULL);
	make(store, ".2026-11-29T235959Z-oom-7-b", NULL);
	assert_int_equal(kept_list(store, &kept, &count), 0);
	assert_int_equal(count, 3);
	assert_string_equal(kept[0].name, "2026-11-28T000000Z-signal");
	assert_string_equal(kept[1].name, "2026-11-27T224637Z-oom-41-a");
	assert_string_equal(kept[2].name, "2026-11-26T235959Z-oom-7-b");
	kept_about_read(store, kept[1].name, &about);
	assert_string_equal(about.reason, "oom");
	kept_about_read(store, kept[0].name, &about);
	assert_string_equal(about.reason, "");
	path = kept_profile(store, kept[1].name, "mem");
	assert_non_null(path);
	assert_null(kept_profile(store, kept[1].name, "alloc"));
	assert_null(kept_profile(store, kept[0].name, "mem"));
	snprintf(command, sizeof(command), "rm -r %s", store);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name__has_the_shape_of_a_moment),
		cmocka_unit_test(about__is_what_known_keys_say),
		cmocka_unit_test(about__long_values_are_cut),
		cmocka_unit_test(list__newest_comes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
