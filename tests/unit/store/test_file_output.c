/* SPDX-License-Identifier: BSD-2-Clause */
#include "fixture.h"

#include "libc.h"

#include <dirent.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "store/file_output.h"

#define NOBODY ((uid_t) - 1), ((gid_t) - 1)

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

	write_text(in_directory(state, "out", path), "the old one");
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
	int err = file_output_write(in_directory(state, "out", path), "new", 3, NOBODY);

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
	assert_int_equal(file_output_write(in_directory(state, "out", path), "x", 1, 12345, 54321),
			 0);
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

	write_text(in_directory(state, "target", target), "precious");
	assert_int_equal(symlink(target, in_directory(state, "out", path)), 0);
	assert_int_equal(file_output_write(path, "new", 3, NOBODY), 0);
	assert_content(target, "precious");
	assert_int_equal(lstat(path, &stat_now), 0);
	assert_true(S_ISREG(stat_now.st_mode));
}

static void file_output_write__directory_or_missing_directory_is_an_error(void **state)
{
	char path[PATH_CHARS];

	assert_int_equal(mkdir(in_directory(state, "directory", path), 0700), 0);
	assert_int_equal(file_output_write(path, "x", 1, NOBODY), -EISDIR);
	assert_int_equal(file_output_write(in_directory(state, "directory/", path), "x", 1, NOBODY),
			 -EISDIR);
	assert_int_equal(file_output_write(in_directory(state, "no/out", path), "x", 1, NOBODY),
			 -ENOENT);
	assert_int_equal(file_output_write("", "x", 1, NOBODY), -ENOENT);
	assert_int_equal(entries(state), 1);
	assert_int_equal(rmdir(in_directory(state, "directory", path)), 0);
}

/* A bound on file sizes stands in for a full disk. */
static void file_output_write__failed_write_leaves_the_old_file_and_nothing_else(void **state)
{
	char path[PATH_CHARS], large[8192] = "";
	struct rlimit before, small;
	int err;

	write_text(in_directory(state, "out", path), "the old one");
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

/* Anybody may put a FIFO there while pyprofd runs: its reader would get the profile, and without
 * one open() would block. */
static void file_output_write__fifo_is_replaced_and_gets_nothing(void **state)
{
	char path[PATH_CHARS], got;
	int reader;

	assert_int_equal(mkfifo(in_directory(state, "out", path), 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(reader >= 0);
	assert_int_equal(file_output_write(path, "new", 3, NOBODY), 0);
	assert_content(path, "new");
	assert_int_equal(read(reader, &got, 1), 0);
	close(reader);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(file_output_write(path, "new", 3, NOBODY), 0);
	assert_content(path, "new");
	assert_int_equal(entries(state), 1);
}

static void file_output_write__device_is_left_alone(void **state)
{
	struct stat stat_now;

	(void)state;
	assert_int_equal(file_output_write("/dev/null", "x", 1, NOBODY), -EINVAL);
	assert_int_equal(stat("/dev/null", &stat_now), 0);
	assert_true(S_ISCHR(stat_now.st_mode));
}

/* As with `>> file`: what was there stays, and the name /dev/fd/N is not replaced. */
static void file_output_write__descriptor_names_mean_the_open_descriptor(void **state)
{
	char path[PATH_CHARS], name[32];
	int fd;

	write_text(in_directory(state, "out", path), "head ");
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
	int fd = open(in_directory(state, "out", path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
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

static void file_output_write__number_of_a_descriptor_is_decimal_and_0_is_one(void **state)
{
	char path[PATH_CHARS];
	int saved = dup(STDIN_FILENO), locked = 77, err[4];
	int fd = open(in_directory(state, "out", path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	int high = fcntl(fd, F_DUPFD_CLOEXEC, 20);
	char name[32];

	assert_true(saved >= 0 && fd >= 0 && high >= 20);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", high);
	dup2(fd, STDIN_FILENO);
	err[0] = file_output_write("/dev/fd/0", "zero ", 5, NOBODY);
	err[1] = file_output_lock("/dev/fd/0", &locked);
	err[2] = file_output_write(name, "high", 4, NOBODY);
	err[3] = file_output_write("/dev/fd/0x", "none", 4, NOBODY);
	dup2(saved, STDIN_FILENO);
	close(saved);
	close(high);
	close(fd);
	assert_int_equal(err[0], 0);
	assert_int_equal(err[1], 0);
	assert_int_equal(locked, -1);
	assert_int_equal(err[2], 0);
	assert_int_equal(err[3], -ENOENT);
	assert_content(path, "zero high");
}

static void file_output_write__names_that_are_no_descriptors_are_files(void **state)
{
	static const char *const names[] = {"/dev/fd/x",	  "/dev/fd/:",	      "/dev/fd/1x",
					    "/dev/fd/4294967297", "/proc/self/fd/-1", "/dev/fd/+1",
					    "/dev/fd/ 1"};
	int fd = 77;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(file_output_write(names[i], "x", 1, NOBODY), -ENOENT);
		assert_int_not_equal(file_output_lock(names[i], &fd), 0);
		assert_int_equal(fd, 77);
	}
	/* The greatest of all. */
	assert_int_equal(file_output_write("/dev/fd/2147483647", "x", 1, NOBODY), -EBADF);
}

static void file_output_write__dots_are_directories(void **state)
{
	static const char *const names[] = {".", "..", "/", "/tmp/.", "/tmp/..", "/tmp/"};
	int fd;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(file_output_write(names[i], "x", 1, NOBODY), -EISDIR);
		assert_int_equal(file_output_lock(names[i], &fd), -EISDIR);
	}
}

static uint64_t numbers; /* what getrandom() gives: the number of the call / same_number */
static unsigned int same_number;

ssize_t getrandom(void *buffer, size_t size, unsigned int flags)
{
	uint64_t number = numbers++ / (same_number ? same_number : 1);

	assert_int_equal(flags, 0);
	assert_int_equal(size, sizeof(number));
	memcpy(buffer, &number, size);
	return (ssize_t)size;
}

/* In a shared directory anybody may have made the temporary name, as a link to a file of ours. */
static void file_output_write__taken_temporary_name_is_left_alone(void **state)
{
	char path[PATH_CHARS], target[PATH_CHARS], link[PATH_CHARS];

	write_text(in_directory(state, "target", target), "precious");
	assert_int_equal(
		symlink(target, in_directory(state, ".pyprofd-0000000000000000.tmp", link)), 0);
	in_directory(state, "out", path);
	numbers = 0;
	assert_int_equal(file_output_write(path, "new", 3, NOBODY), 0);
	assert_int_equal(numbers, 2);
	assert_content(path, "new");
	assert_content(target, "precious");
	assert_int_equal(entries(state), 3);
	/* A hundred names are tried. */
	numbers = 0;
	same_number = 100;
	assert_int_equal(file_output_write(path, "last", 4, NOBODY), -EEXIST);
	assert_int_equal(numbers, 100);
	same_number = 0;
	assert_content(path, "new");
	assert_content(target, "precious");
	assert_int_equal(entries(state), 3);
}

static void file_output_lock__file_that_exists_can_be_locked(void **state)
{
	char path[PATH_CHARS], fifo[PATH_CHARS];
	int fd = -1;

	write_text(in_directory(state, "out", path), "the old one");
	assert_int_equal(file_output_lock(path, &fd), 0);
	assert_true(fd >= 0);
	file_output_unlock(path, fd);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_content(path, "the old one");
	assert_int_equal(mkfifo(in_directory(state, "fifo", fifo), 0600), 0);
	fd = 77;
	assert_int_equal(file_output_lock(fifo, &fd), -EINVAL);
	assert_int_equal(file_output_lock("/dev/null", &fd), -EINVAL);
	assert_int_equal(fd, 77);
	assert_int_equal(entries(state), 2);
	fd = 77;
	assert_int_equal(file_output_lock("-", &fd), 0);
	assert_int_equal(fd, -1);
}

static void file_output_lock__second_is_ebusy_and_the_file_goes_at_the_end(void **state)
{
	char path[PATH_CHARS], lock[PATH_CHARS];
	int first = -1, second = -1;

	in_directory(state, "out", path);
	in_directory(state, "out.lock", lock);
	assert_int_equal(file_output_lock(path, &first), 0);
	assert_true(first >= 0);
	assert_int_equal(file_output_lock(path, &second), -EBUSY);
	assert_int_equal(second, -1);
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
	assert_int_equal(file_output_lock(in_directory(state, "no/out", path), &fd), -ENOENT);
	assert_int_equal(file_output_lock("/dev/fd/999", &fd), -EBADF);
	assert_int_equal(file_output_lock("/dev/null", &fd), -EINVAL);
	assert_int_equal(file_output_lock("-", &fd), 0);
	assert_int_equal(fd, -1);
}

static void file_output_lock__link_in_place_of_the_lock_is_not_followed(void **state)
{
	char path[PATH_CHARS], target[PATH_CHARS];
	int fd = -1;

	write_text(in_directory(state, "target", target), "precious");
	assert_int_equal(symlink(target, in_directory(state, "out.lock", path)), 0);
	assert_int_equal(file_output_lock(in_directory(state, "out", path), &fd), -ELOOP);
	assert_content(target, "precious");
}

static void file_output_write__name_of_one_character(void **state)
{
	char path[PATH_CHARS];

	assert_int_equal(file_output_write(in_directory(state, "a", path), "one", 3, NOBODY), 0);
	assert_content(path, "one");
}

/* A number at the same place in a name of a file. */
static void file_output_write__number_elsewhere_is_no_descriptor(void **state)
{
	char directory[] = "/tmp/abXXXXXX/", path[32];

	(void)state;
	directory[strlen(directory) - 1] = '\0';
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/1", directory);
	assert_int_equal(file_output_write(path, "one", 3, NOBODY), 0);
	assert_content(path, "one");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(directory), 0);
}

static void file_output_write__standard_error_by_its_name(void **state)
{
	char path[PATH_CHARS];
	int saved = dup(STDERR_FILENO), err;
	int fd = open(in_directory(state, "out", path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	dup2(fd, STDERR_FILENO);
	err = file_output_write("/dev/stderr", "said", 4, NOBODY);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fd);
	assert_int_equal(err, 0);
	assert_content(path, "said");
}

/* No child gets the descriptors, and no link is followed. */
static void file_output_write__opens_with_care(void **state)
{
	char path[PATH_CHARS];

	libc_begin();
	assert_int_equal(file_output_write("/dev/null", "x", 1, NOBODY), -EINVAL);
	assert_int_equal(opened, 0);
	assert_int_equal(file_output_write(in_directory(state, "out", path), "x", 1, NOBODY), 0);
	assert_int_equal(opened, 2);
	assert_int_equal(common_flags & O_CLOEXEC, O_CLOEXEC);
	assert_int_equal(opened_flags & O_NOFOLLOW, O_NOFOLLOW);
}

/* The file, and then the directory with its name. */
static void file_output_write__is_synced(void **state)
{
	struct stat directory, file;
	char path[PATH_CHARS];
	int next = next_descriptor();

	libc_begin();
	assert_int_equal(file_output_write(in_directory(state, "out", path), "x", 1, NOBODY), 0);
	assert_int_equal(stat(*state, &directory), 0);
	assert_int_equal(stat(path, &file), 0);
	assert_int_equal(synced_count, 2);
	assert_int_equal(synced[0], file.st_ino);
	assert_int_equal(synced[1], directory.st_ino);
	/* Some file systems cannot do the latter. */
	let_fail("fsync", EINVAL, 1, 1);
	assert_int_equal(file_output_write(path, "new", 3, NOBODY), 0);
	assert_content(path, "new");
	assert_int_equal(next_descriptor(), next);
	assert_int_equal(bad_closes, 0);
}

static void file_output_write__failed_step_leaves_the_old_file_and_nothing_else(void **state)
{
	static const char *const calls[] = {"fsync", "fchmod", "fchown", "renameat"};
	char path[PATH_CHARS];
	int next = next_descriptor();

	write_text(in_directory(state, "out", path), "the old one");
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		libc_begin();
		let_fail(calls[i], EIO, 0, 1);
		if (file_output_write(path, "new", 3, NOBODY) != -EIO)
			fail_msg("%s", calls[i]);
		assert_content(path, "the old one");
		assert_int_equal(entries(state), 1);
	}
	let_fail("open", EACCES, 1, 1);
	assert_int_equal(file_output_write(path, "new", 3, NOBODY), -EACCES);
	let_fail("open", EACCES, 0, 1);
	assert_int_equal(file_output_write(path, "new", 3, NOBODY), -EACCES);
	assert_content(path, "the old one");
	/* A file that stays ours is better than none; it is on disk all the same. */
	libc_begin();
	let_fail("fchown", EPERM, 0, 1);
	assert_int_equal(file_output_write(path, "new", 3, 1, 1), 0);
	assert_int_equal(synced_count, 2);
	assert_content(path, "new");
	assert_int_equal(next_descriptor(), next);
}

static int denied; /* what access is asked for that nobody has */

int faccessat(int directory_fd, const char *path, int mode, int flags)
{
	(void)directory_fd, (void)path;
	assert_int_equal(flags, AT_EACCESS);
	errno = EACCES;
	return mode & denied ? -1 : 0;
}

/* Though there is a lock file that could be locked. */
static void file_output_lock__directory_needs_to_be_written_and_entered(void **state)
{
	static const int modes[] = {W_OK, X_OK};
	char path[PATH_CHARS];
	int fd = -1, next = next_descriptor();

	write_text(in_directory(state, "out.lock", path), "");
	in_directory(state, "out", path);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		denied = modes[i];
		assert_int_equal(file_output_lock(path, &fd), -EACCES);
		assert_int_equal(fd, -1);
	}
	denied = 0;
	assert_int_equal(next_descriptor(), next);
}

static void file_output_unlock__of_a_directory_that_is_gone(void **state)
{
	char directory[PATH_CHARS], path[PATH_CHARS], lock[PATH_CHARS];
	int fd = -1;

	assert_int_equal(mkdir(in_directory(state, "below", directory), 0700), 0);
	in_directory(state, "below/out", path);
	assert_int_equal(file_output_lock(path, &fd), 0);
	assert_int_equal(unlink(in_directory(state, "below/out.lock", lock)), 0);
	assert_int_equal(rmdir(directory), 0);
	file_output_unlock(path, fd);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(file_output_write__replaces_the_file_whole),
		TEST(file_output_write__mode_does_not_depend_on_the_umask),
		TEST(file_output_write__owner_is_the_one_asked_for),
		TEST(file_output_write__link_is_replaced_and_its_target_left_alone),
		TEST(file_output_write__directory_or_missing_directory_is_an_error),
		TEST(file_output_write__failed_write_leaves_the_old_file_and_nothing_else),
		TEST(file_output_write__fifo_is_replaced_and_gets_nothing),
		TEST(file_output_write__device_is_left_alone),
		TEST(file_output_write__descriptor_names_mean_the_open_descriptor),
		TEST(file_output_write__dash_is_standard_output),
		TEST(file_output_write__number_of_a_descriptor_is_decimal_and_0_is_one),
		TEST(file_output_write__names_that_are_no_descriptors_are_files),
		TEST(file_output_write__dots_are_directories),
		TEST(file_output_write__taken_temporary_name_is_left_alone),
		TEST(file_output_lock__file_that_exists_can_be_locked),
		TEST(file_output_lock__second_is_ebusy_and_the_file_goes_at_the_end),
		TEST(file_output_lock__says_early_what_cannot_be_written),
		TEST(file_output_lock__link_in_place_of_the_lock_is_not_followed),
		TEST(file_output_write__name_of_one_character),
		TEST(file_output_write__number_elsewhere_is_no_descriptor),
		TEST(file_output_write__standard_error_by_its_name),
		TEST(file_output_write__opens_with_care),
		TEST(file_output_write__is_synced),
		TEST(file_output_write__failed_step_leaves_the_old_file_and_nothing_else),
		TEST(file_output_lock__directory_needs_to_be_written_and_entered),
		TEST(file_output_unlock__of_a_directory_that_is_gone),
	};

	return cmocka_run_group_tests_name("store/file_output", tests, NULL, NULL);
}
