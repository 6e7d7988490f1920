/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/queue.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[] = "/tmp/test_cursor.XXXXXX";
static int dir_fd;

static int make_directory(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return 1;
	dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir_fd < 0;
}

static int remove_directory(void **state)
{
	(void)state;
	unlinkat(dir_fd, "sink.cursor", 0);
	close(dir_fd);
	return rmdir(directory);
}

static struct push_cursor some_cursor(void)
{
	struct push_cursor cursor = {0};

	cursor.sent_ms[PP_PROFILE_CPU] = 1795200010000;
	cursor.sent_ms[PP_PROFILE_OFFCPU] = 1795200000000;
	cursor.open.is_open = true;
	cursor.open.kind = PP_PROFILE_OFFCPU;
	cursor.open.start_ms = 1795200010000;
	cursor.open.requests = 3;
	cursor.open.hash = 0xf3a1b2c4d5e6f7;
	cursor.open.is_in_flight = true;
	return cursor;
}

static void push_cursor__what_is_saved_is_loaded(void **state)
{
	struct push_cursor saved = some_cursor(), loaded;

	(void)state;
	assert_int_equal(push_cursor_load(dir_fd, "sink", &loaded), -ENOENT);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(push_cursor_save(dir_fd, "sink", &saved), 0);
		memset(&loaded, 0, sizeof(loaded));
		assert_int_equal(push_cursor_load(dir_fd, "sink", &loaded), 0);
		assert_memory_equal(&loaded.sent_ms, &saved.sent_ms, sizeof(saved.sent_ms));
		assert_int_equal(loaded.open.is_open, saved.open.is_open);
		assert_int_equal(loaded.open.kind, saved.open.kind);
		assert_int_equal(loaded.open.start_ms, saved.open.start_ms);
		assert_int_equal(loaded.open.requests, saved.open.requests);
		assert_int_equal(loaded.open.hash, saved.open.hash);
		assert_int_equal(loaded.open.is_in_flight, saved.open.is_in_flight);
		saved.open.is_in_flight = false;
	}
	assert_int_equal(faccessat(dir_fd, ".sink.cursor.tmp", F_OK, 0), -1);
}

static void push_cursor_save__mode_is_not_the_umask_s(void **state)
{
	const struct push_cursor cursor = some_cursor();
	const mode_t umasks[] = {0, 077};

	(void)state;
	for (size_t i = 0; i < sizeof(umasks) / sizeof(umasks[0]); i++) {
		mode_t before = umask(umasks[i]);
		struct stat stat;
		int err = push_cursor_save(dir_fd, "sink", &cursor);

		umask(before);
		assert_int_equal(err, 0);
		assert_int_equal(fstatat(dir_fd, "sink.cursor", &stat, 0), 0);
		assert_int_equal(stat.st_mode & 07777, 0640);
	}
}

/* A file that was cut off by a crash would repeat, or leave out, what nobody knows. */
static void push_cursor_parse__no_part_of_a_file_is_taken(void **state)
{
	struct push_cursor cursor = some_cursor(), parsed;
	char text[PUSH_CURSOR_BYTES];
	size_t size;

	(void)state;
	push_cursor_format(&cursor, text);
	size = strlen(text);
	assert_int_equal(push_cursor_parse(text, size, &parsed), 0);
	for (size_t i = 0; i < size; i++)
		if (push_cursor_parse(text, i, &parsed) != -EBADMSG)
			fail_msg("the first %zu bytes of %zu are taken", i, size);
}

static void push_cursor_parse__what_the_format_does_not_have_is_refused(void **state)
{
	static const char *const bad[] = {
		"pyprofd push cursor 2\nend\n",
		"pyprofd push cursor 1\nend\nend\n",
		"pyprofd push cursor 1\n\nend\n",
		"pyprofd push cursor 1\nsent cpu\nend\n",
		"pyprofd push cursor 1\nsent cpu -1\nend\n",
		"pyprofd push cursor 1\nsent cpu 1x\nend\n",
		"pyprofd push cursor 1\nsent cpu 1 2\nend\n",
		"pyprofd push cursor 1\nsent cpu 18446744073709551615\nend\n",
		"pyprofd push cursor 1\nsent cpu 99999999999999999999\nend\n",
		"pyprofd push cursor 1\nopen cpu 1 2 3\nend\n",
		"pyprofd push cursor 1\nopen cpu 1 2 3 sleeping\nend\n",
		"pyprofd push cursor 1\nopen cpu 1 4294967296 3 resting\nend\n",
		"pyprofd push cursor 1\nopen cpu 1 2 xyz resting\nend\n",
		"pyprofd push cursor 1\nopen cpu 1 2 3 resting now\nend\n",
		"pyprofd push cursor 1\nother cpu 1\nend\n",
	};
	static const char nul[] = "pyprofd push cursor 1\nsent cpu 1\0\nend\n";
	struct push_cursor parsed;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (push_cursor_parse(bad[i], strlen(bad[i]), &parsed) != -EBADMSG)
			fail_msg("taken: %s", bad[i]);
	assert_int_equal(push_cursor_parse(nul, sizeof(nul) - 1, &parsed), -EBADMSG);
}

static void push_cursor_parse__kinds_of_a_later_version_are_passed_over(void **state)
{
	static const char text[] = "pyprofd push cursor 1\nsent later 5\nsent cpu 7\n"
				   "open later 6 1 0 resting\nend\n";
	struct push_cursor parsed;

	(void)state;
	assert_int_equal(push_cursor_parse(text, sizeof(text) - 1, &parsed), 0);
	assert_int_equal(parsed.sent_ms[PP_PROFILE_CPU], 7);
	assert_false(parsed.open.is_open);
}

static void push_cursor_pass__never_goes_back_and_closes_the_window(void **state)
{
	struct push_cursor cursor = some_cursor();

	(void)state;
	push_cursor_pass(&cursor, PP_PROFILE_CPU, 5);
	assert_int_equal(cursor.sent_ms[PP_PROFILE_CPU], 1795200010000);
	assert_false(cursor.open.is_open);
	push_cursor_pass(&cursor, PP_PROFILE_CPU, 1795200020000);
	assert_int_equal(cursor.sent_ms[PP_PROFILE_CPU], 1795200020000);
}

static void push_sink_name_is_valid__names_of_one_file_in_the_directory(void **state)
{
	static const char *const valid[] = {"a", "pyroscope", "Team-1_x.y",
					    "12345678901234567890123456789012"};
	static const char *const invalid[] = {
		"", ".", "..", ".a", "a/b", "a b", "a\n", "123456789012345678901234567890123"};

	(void)state;
	for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++)
		assert_true(push_sink_name_is_valid(valid[i]));
	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
		assert_false(push_sink_name_is_valid(invalid[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(push_cursor__what_is_saved_is_loaded),
		cmocka_unit_test(push_cursor_save__mode_is_not_the_umask_s),
		cmocka_unit_test(push_cursor_parse__no_part_of_a_file_is_taken),
		cmocka_unit_test(push_cursor_parse__what_the_format_does_not_have_is_refused),
		cmocka_unit_test(push_cursor_parse__kinds_of_a_later_version_are_passed_over),
		cmocka_unit_test(push_cursor_pass__never_goes_back_and_closes_the_window),
		cmocka_unit_test(push_sink_name_is_valid__names_of_one_file_in_the_directory),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
