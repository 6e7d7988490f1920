/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: store/file_output.c store/lock_file.c base/io.c */
#include "fixture.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "store/store.h"

#define NOBODY ((uid_t)-1), ((gid_t)-1)

static size_t entries(void **state)
{
	DIR *dir = opendir(*state);
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2; /* . and .. */
}

static void file_output_write__replaces_the_file_whole(void **state)
{
	char path[PATH_CHARS], kept[16] = "";
	int reader;

	write_text(in_folder(state, "out", path), "the old one");
	reader = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(file_output_write(path, "new", 3, NOBODY), 0);
	assert_content(path, "new");
	/* Whoever has the old file open still reads the old file, not a mixture. */
	assert_int_equal(read(reader, kept, sizeof(kept) - 1), 11);
	assert_string_equal(kept, "the old one");
	close(reader);
	assert_int_equal(entries(state), 1);
}

static void file_output_write__mode_does_not_depend_on_the_umask(void **state)
{
	char path[PATH_CHARS];
	mode_t old = umask(0777);
	int err = file_output_write(in_folder(state, "out", path), "new", 3, NOBODY);

	umask(old);
	assert_int_equal(err, 0);
	assert_mode(path, 0640);
}

static void file_output_write__owner_is_the_one_asked_for(void **state)
{
	char path[PATH_CHARS];
	struct stat stat_now;

	if (geteuid()) {
		print_message("skipped: only root can give files away\n");
		skip();
	}
	assert_int_equal(file_output_write(in_folder(state, "out", path), "x", 1, 12345, 54321), 0);
	assert_int_equal(stat(path, &stat_now), 0);
	assert_int_equal(stat_now.st_uid, 12345);
	assert_int_equal(stat_now.st_gid, 54321);
	assert_mode(path, 0640);
	/* One of the two alone. */
	assert_int_equal(file_output_write(path, "x", 1, 12345, (gid_t)-1), 0);
	assert_int_equal(stat(path, &stat_now), 0);
	assert_int_equal(stat_now.st_uid, 12345);
	assert_int_equal(stat_now.st_gid, getegid());
	assert_int_equal(file_output_write(path, "x", 1, (uid_t)-1, 54321), 0);
	assert_int_equal(stat(path, &stat_now), 0);
	assert_int_equal(stat_now.st_uid, geteuid());
	assert_int_equal(stat_now.st_gid, 54321);
}

static void file_output_write__link_is_replaced_and_its_target_left_alone(void **state)
{
	char path[PATH_CHARS], target[PATH_CHARS];
	struct stat stat_now;

	write_text(in_folder(state, "target", target), "precious");
	assert_int_equal(symlink(target, in_folder(state, "out", path)), 0);
	assert_int_equal(file_output_write(path, "new", 3, NOBODY), 0);
	assert_content(target, "precious");
	assert_int_equal(lstat(path, &stat_now), 0);
	assert_true(S_ISREG(stat_now.st_mode));
}

static void file_output_write__folder_or_missing_folder_is_an_error(void **state)
{
	char path[PATH_CHARS];

	assert_int_equal(mkdir(in_folder(state, "folder", path), 0700), 0);
	assert_int_equal(file_output_write(path, "x", 1, NOBODY), -EISDIR);
	assert_int_equal(file_output_write(in_folder(state, "folder/", path), "x", 1, NOBODY),
			 -EISDIR);
	assert_int_equal(file_output_write(in_folder(state, "no/out", path), "x", 1, NOBODY),
			 -ENOENT);
	assert_int_equal(file_output_write("", "x", 1, NOBODY), -ENOENT);
	assert_int_equal(entries(state), 1);
	assert_int_equal(rmdir(in_folder(state, "folder", path)), 0);
}

/* A bound on file sizes stands in for a full disk. */
static void file_output_write__failed_write_leaves_the_old_file_and_nothing_else(void **state)
{
	char path[PATH_CHARS], large[8192] = "";
	struct rlimit before, small;
	int err;

	write_text(in_folder(state, "out", path), "the old one");
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 4096;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	err = file_output_write(path, large, sizeof(large), NOBODY);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(err, -EFBIG);
	assert_content(path, "the old one");
	assert_int_equal(entries(state), 1);
}

static void *read_fifo(void *path)
{
	char *got = calloc(1, 16);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (got && fd >= 0 && read(fd, got, 15) < 0)
		got[0] = '!';
	close(fd);
	return got;
}

static void file_output_write__fifo_and_device_are_written_into(void **state)
{
	char path[PATH_CHARS];
	pthread_t reader;
	void *got;

	assert_int_equal(mkfifo(in_folder(state, "fifo", path), 0600), 0);
	assert_int_equal(pthread_create(&reader, NULL, read_fifo, path), 0);
	assert_int_equal(file_output_write(path, "through", 7, NOBODY), 0);
	assert_int_equal(pthread_join(reader, &got), 0);
	assert_string_equal(got, "through");
	free(got);
	assert_int_equal(file_output_write("/dev/null", "x", 1, NOBODY), 0);
	assert_int_equal(file_output_write("/dev/full", "x", 1, NOBODY), -ENOSPC);
	assert_int_equal(entries(state), 1);
}

/* As with `>> file`: what was there stays, and the name /dev/fd/N is not replaced. */
static void file_output_write__descriptor_names_mean_the_open_descriptor(void **state)
{
	char path[PATH_CHARS], name[32];
	int fd;

	write_text(in_folder(state, "out", path), "head ");
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	snprintf(name, sizeof(name), "/dev/fd/%d", fd);
	assert_int_equal(file_output_write(name, "tail", 4, NOBODY), 0);
	close(fd);
	assert_content(path, "head tail");
	assert_int_equal(file_output_write(name, "tail", 4, NOBODY), -EBADF);
}

static void file_output_write__dash_is_standard_output(void **state)
{
	char path[PATH_CHARS];
	int saved = dup(STDOUT_FILENO);
	int fd = open(in_folder(state, "out", path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	int err[2];

	assert_true(saved >= 0 && fd >= 0);
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	err[0] = file_output_write("-", "one ", 4, NOBODY);
	err[1] = file_output_write("/dev/stdout", "two", 3, NOBODY);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(fd);
	assert_int_equal(err[0], 0);
	assert_int_equal(err[1], 0);
	assert_content(path, "one two");
}

static void file_output_lock__second_is_ebusy_and_the_file_goes_at_the_end(void **state)
{
	char path[PATH_CHARS], lock[PATH_CHARS];
	int first = -1, second = -1;
	pid_t owner = 0;

	in_folder(state, "out", path);
	in_folder(state, "out.lock", lock);
	assert_int_equal(file_output_lock(path, &first), 0);
	assert_true(first >= 0);
	assert_int_equal(file_output_lock(path, &second), -EBUSY);
	assert_int_equal(second, -1);
	assert_int_equal(file_output_lock_owner(path, &owner), 0);
	assert_int_equal(owner, getpid());
	assert_int_equal(access(path, F_OK), -1);
	file_output_unlock(path, first);
	assert_int_equal(access(lock, F_OK), -1);
	assert_int_equal(file_output_lock(path, &second), 0);
	file_output_unlock(path, second);
}

static void file_output_lock__says_early_what_cannot_be_written(void **state)
{
	char path[PATH_CHARS];
	int fd = -1;

	assert_int_equal(file_output_lock(*state, &fd), -EISDIR);
	assert_int_equal(file_output_lock(in_folder(state, "no/out", path), &fd), -ENOENT);
	assert_int_equal(file_output_lock("/dev/fd/999", &fd), -EBADF);
	assert_int_equal(file_output_lock("-", &fd), 0);
	assert_int_equal(file_output_lock("/dev/null", &fd), 0);
	assert_int_equal(fd, -1);
}

static void file_output_lock__link_in_place_of_the_lock_is_not_followed(void **state)
{
	char path[PATH_CHARS], target[PATH_CHARS];
	int fd = -1;

	write_text(in_folder(state, "target", target), "precious");
	assert_int_equal(symlink(target, in_folder(state, "out.lock", path)), 0);
	assert_int_equal(file_output_lock(in_folder(state, "out", path), &fd), -ELOOP);
	assert_content(target, "precious");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(file_output_write__replaces_the_file_whole),
		TEST(file_output_write__mode_does_not_depend_on_the_umask),
		TEST(file_output_write__owner_is_the_one_asked_for),
		TEST(file_output_write__link_is_replaced_and_its_target_left_alone),
		TEST(file_output_write__folder_or_missing_folder_is_an_error),
		TEST(file_output_write__failed_write_leaves_the_old_file_and_nothing_else),
		TEST(file_output_write__fifo_and_device_are_written_into),
		TEST(file_output_write__descriptor_names_mean_the_open_descriptor),
		TEST(file_output_write__dash_is_standard_output),
		TEST(file_output_lock__second_is_ebusy_and_the_file_goes_at_the_end),
		TEST(file_output_lock__says_early_what_cannot_be_written),
		TEST(file_output_lock__link_in_place_of_the_lock_is_not_followed),
	};

	return cmocka_run_group_tests_name("store/file_output", tests, NULL, NULL);
}
