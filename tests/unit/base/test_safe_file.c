/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/safe_file.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define MODE 0640
#define ANOTHER_USER 12345

static char directory[32], path[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/test_safe.XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/out", directory);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(directory);
}

static void put(const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void expect(enum safe_file_kinds kinds, int expected)
{
	int fd = 77;

	assert_int_equal(safe_file_open(path, kinds, MODE, &fd), expected);
	if (expected) {
		assert_int_equal(fd, 77);
		return;
	}
	assert_int_equal(fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_WRONLY);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
}

static void safe_file__new_or_regular_file_is_opened_as_it_is(void **state)
{
	struct stat stat_now;
	mode_t before = umask(0);

	(void)state;
	expect(SAFE_FILE_REGULAR, 0);
	umask(before);
	assert_int_equal(stat(path, &stat_now), 0);
	assert_int_equal(stat_now.st_mode & 07777, MODE);
	put("there");
	expect(SAFE_FILE_OUTPUT, 0);
	assert_int_equal(stat(path, &stat_now), 0);
	assert_int_equal(stat_now.st_size, 5);
}

static void safe_file__fifo_is_refused_with_and_without_a_reader(void **state)
{
	int reader;

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	expect(SAFE_FILE_REGULAR, -EINVAL);
	expect(SAFE_FILE_OUTPUT, -EINVAL);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	expect(SAFE_FILE_REGULAR, -EINVAL);
	expect(SAFE_FILE_OUTPUT, -EINVAL);
	close(reader);
}

static void safe_file__device_is_for_output_only(void **state)
{
	(void)state;
	assert_int_equal(symlink("/dev/null", path), 0);
	expect(SAFE_FILE_REGULAR, -ELOOP);
	expect(SAFE_FILE_OUTPUT, 0);
	unlink(path);
	snprintf(path, sizeof(path), "/dev/null");
	expect(SAFE_FILE_REGULAR, -EINVAL);
	expect(SAFE_FILE_OUTPUT, 0);
	snprintf(path, sizeof(path), "%s/out", directory);
}

static void safe_file__link_to_a_fifo_is_refused(void **state)
{
	char fifo[80];

	(void)state;
	snprintf(fifo, sizeof(fifo), "%s.fifo", path);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(symlink(fifo, path), 0);
	expect(SAFE_FILE_OUTPUT, -EINVAL);
	unlink(fifo);
}

static void safe_file__of_another_user_in_a_sticky_directory_is_left_alone(void **state)
{
	(void)state;
	if (geteuid()) {
		print_message("skipped: only root can give files away\n");
		skip();
	}
	put("his");
	assert_int_equal(chown(path, ANOTHER_USER, ANOTHER_USER), 0);
	expect(SAFE_FILE_OUTPUT, 0);
	assert_int_equal(chmod(directory, 01777), 0);
	expect(SAFE_FILE_OUTPUT, -EEXIST);
	expect(SAFE_FILE_REGULAR, -EEXIST);
	/* But of the user who called us through sudo. */
	setenv("SUDO_UID", "12345", 1);
	setenv("SUDO_GID", "12345", 1);
	expect(SAFE_FILE_REGULAR, 0);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	unlink(path);
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_int_equal(lchown(path, ANOTHER_USER, ANOTHER_USER), 0);
	expect(SAFE_FILE_OUTPUT, -EEXIST);
	assert_int_equal(lchown(path, 0, 0), 0);
	expect(SAFE_FILE_OUTPUT, 0);
}

static void safe_file__missing_directory_or_a_directory_is_an_error(void **state)
{
	int fd = 77;

	(void)state;
	assert_int_equal(safe_file_open("/tmp/none/out", SAFE_FILE_OUTPUT, MODE, &fd), -ENOENT);
	assert_int_equal(safe_file_open(directory, SAFE_FILE_OUTPUT, MODE, &fd), -EISDIR);
	assert_int_equal(safe_file_open("", SAFE_FILE_OUTPUT, MODE, &fd), -ENOENT);
	assert_int_equal(fd, 77);
}

static void safe_file__names_of_descriptors_mean_the_open_pipe(void **state)
{
	char name[32], got[4] = "";
	int ends[2], fd = -1;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	snprintf(name, sizeof(name), "/dev/fd/%d", ends[1]);
	assert_int_equal(safe_file_open(name, SAFE_FILE_OUTPUT, MODE, &fd), 0);
	assert_int_equal(write(fd, "abc", 3), 3);
	assert_int_equal(read(ends[0], got, 3), 3);
	assert_string_equal(got, "abc");
	close(fd);
	/* What is open is not asked for, by a name that others may have made. */
	assert_int_equal(safe_file_open(name, SAFE_FILE_REGULAR, MODE, &fd), -ELOOP);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(safe_file_open(name, SAFE_FILE_OUTPUT, MODE, &fd), -EBADF);
}

static void named_descriptor__is_a_name_of_one(void **state)
{
	(void)state;
	assert_int_equal(named_descriptor("-"), STDOUT_FILENO);
	assert_int_equal(named_descriptor("/dev/stdout"), STDOUT_FILENO);
	assert_int_equal(named_descriptor("/dev/stderr"), STDERR_FILENO);
	assert_int_equal(named_descriptor("/proc/self/fd/12"), 12);
	assert_int_equal(named_descriptor("/dev/fd/1x"), -ENOENT);
	assert_int_equal(named_descriptor("/dev/fd/"), -ENOENT);
	assert_int_equal(named_descriptor("out"), -ENOENT);
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(safe_file__new_or_regular_file_is_opened_as_it_is),
		FILE_TEST(safe_file__fifo_is_refused_with_and_without_a_reader),
		FILE_TEST(safe_file__device_is_for_output_only),
		FILE_TEST(safe_file__link_to_a_fifo_is_refused),
		FILE_TEST(safe_file__of_another_user_in_a_sticky_directory_is_left_alone),
		FILE_TEST(safe_file__missing_directory_or_a_directory_is_an_error),
		FILE_TEST(safe_file__names_of_descriptors_mean_the_open_pipe),
		cmocka_unit_test(named_descriptor__is_a_name_of_one),
	};

	return cmocka_run_group_tests_name("base/safe_file", tests, NULL, NULL);
}
