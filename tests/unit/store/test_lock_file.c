/* SPDX-License-Identifier: BSD-2-Clause */
#include "fixture.h"

#include <sys/wait.h>

#include "libc.h"

#include "base/cleanup.h"
#include "store/file_output.h"

static void lock_file_take__writes_its_own_pid_whole(void **state)
{
	OWNED_FD int directory = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	char path[PATH_CHARS];
	char text[64] = "";
	int taken;

	write_text(in_directory(state, "lock", path), "1234567890 what an earlier one has left\n");
	assert_int_equal(lock_file_take(directory, "lock", &fd), 0);
	assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
	assert_int_equal(atoi(text), getpid());
	assert_string_equal(strchr(text, '\n'), "\n");
	taken = fd;
	lock_file_remove(directory, "lock", TAKE_FD(fd));
	assert_int_equal(fcntl(taken, F_GETFD), -1);
	assert_int_equal(faccessat(directory, "lock", F_OK, 0), -1);
	lock_file_remove(directory, "lock", -1);
}

/* The file is opened in a way in which nobody can lead us astray or make us wait. */
static void lock_file__is_opened_with_care(void **state)
{
	OWNED_FD int directory = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	const int careful = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

	libc_begin();
	assert_int_equal(lock_file_take(directory, "lock", &fd), 0);
	assert_int_equal(opened, 2);
	assert_int_equal(common_flags & careful, careful);
}

static void lock_file__is_a_regular_file(void **state)
{
	OWNED_FD int directory = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char path[PATH_CHARS];
	int fd = -1;

	libc_begin();
	assert_int_equal(mkfifo(in_directory(state, "fifo", path), 0600), 0);
	assert_int_equal(lock_file_take(directory, "fifo", &fd), -EINVAL);
	assert_int_equal(lock_calls, 0);
	assert_int_equal(mkdir(in_directory(state, "below", path), 0700), 0);
	assert_int_equal(lock_file_take(directory, "below", &fd), -EISDIR);
	assert_int_equal(symlink("none", in_directory(state, "link", path)), 0);
	assert_int_equal(lock_file_take(directory, "link", &fd), -ELOOP);
	assert_int_equal(fd, -1);
}

static char lock_path[PATH_CHARS];
static unsigned int replaced, replacements;

/* Who held the lock removes the file, and somebody else makes a new one. */
static void replace_lock(void)
{
	if (replaced++ < replacements) {
		unlink(lock_path);
		write_text(lock_path, "");
	}
}

/* A lock on a file that has lost its name is none. */
static void lock_file_take__tries_again_when_the_file_was_replaced(void **state)
{
	OWNED_FD int directory = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	struct stat named, taken;

	libc_begin();
	in_directory(state, "lock", lock_path);
	before_lock = replace_lock;
	replaced = 0;
	replacements = 15;
	assert_int_equal(lock_file_take(directory, "lock", &fd), 0);
	assert_int_equal(lock_calls, 16);
	assert_int_equal(fstat(fd, &taken), 0);
	assert_int_equal(stat(lock_path, &named), 0);
	assert_int_equal(taken.st_ino, named.st_ino);
	close(TAKE_FD(fd));
	/* Not for ever. */
	libc_begin();
	before_lock = replace_lock;
	replaced = 0;
	replacements = 1000;
	assert_int_equal(lock_file_take(directory, "lock", &fd), -EBUSY);
	assert_int_equal(lock_calls, 16);
	assert_int_equal(fd, -1);
	assert_int_equal(bad_closes, 0);
}

/* Another one creates the file between our two attempts to open it, or removes its directory. */
static void lock_file_take__tries_again_when_the_file_comes_or_goes(void **state)
{
	static const int errs[] = {EEXIST, ENOENT};
	OWNED_FD int directory = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		int fd = -1;

		libc_begin();
		let_fail("open", errs[i], 1, 1);
		assert_int_equal(lock_file_take(directory, "lock", &fd), 0);
		assert_int_equal(opened, 4);
		lock_file_remove(directory, "lock", fd);
		libc_begin();
		fd = -1;
		let_fail("open", ENOENT, 0, 1);
		assert_int_equal(lock_file_take(directory, "lock", &fd), 0);
		lock_file_remove(directory, "lock", fd);
	}
	/* A directory that was removed has no room for it. */
	libc_begin();
	let_fail("open", ENOENT, 0, UINT32_MAX);
	assert_int_equal(lock_file_take(directory, "lock", &(int){-1}), -ENOENT);
	assert_int_equal(opened, 32);
	libc_begin();
	let_fail("open", EACCES, 0, 1);
	assert_int_equal(lock_file_take(directory, "lock", &(int){-1}), -EACCES);
	assert_int_equal(opened, 1);
	libc_begin();
	let_fail("open", EACCES, 1, 1);
	assert_int_equal(lock_file_take(directory, "lock", &(int){-1}), -EACCES);
	assert_int_equal(opened, 2);
}

static void lock_file_take__says_why_it_cannot_be_locked(void **state)
{
	OWNED_FD int directory = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;

	libc_begin();
	let_fail("flock", ENOLCK, 0, 1);
	assert_int_equal(lock_file_take(directory, "lock", &fd), -ENOLCK);
	assert_int_equal(fd, -1);
	assert_int_equal(lock_file_take(directory, "lock", &fd), 0);
	assert_int_equal(lock_file_take(directory, "lock", &(int){-1}), -EBUSY);
}

/* One that was killed, and of which a thread waits for a file system, cannot end and keeps it: here
 * its main thread is all that has ended. */
static void lock_file_take__of_one_that_was_killed_is_told_apart(void **state)
{
	OWNED_FD int directory = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	const pid_t pid = fork();
	siginfo_t info;
	char text[32];

	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	libc_begin();
	assert_int_equal(lock_file_take(directory, "lock", &fd), 0);
	snprintf(text, sizeof(text), "%d\n", pid);
	assert_int_equal(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
	assert_int_equal(lock_file_take(directory, "lock", &(int){-1}), -EOWNERDEAD);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(lock_file_take(directory, "lock", &(int){-1}), -EBUSY);
}

/* The lock is what counts; without room for the pid the file is empty, and nobody else's pid is
 * in it. */
static void lock_file_take__needs_no_room_for_the_pid(void **state)
{
	OWNED_FD int directory = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	char path[PATH_CHARS];
	struct stat stat;

	libc_begin();
	write_text(in_directory(state, "lock", path), "1234\n");
	let_fail("pwrite", ENOSPC, 0, 1);
	assert_int_equal(lock_file_take(directory, "lock", &fd), 0);
	assert_int_equal(fstat(fd, &stat), 0);
	assert_int_equal(stat.st_size, 0);
}

/* 0 is a descriptor like any other: a service may start without standard input. */
static void lock_file_take__descriptor_0_is_one(void **state)
{
	OWNED_FD int directory = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int saved = dup(STDIN_FILENO), fd[2] = {77, 77}, err[2];

	libc_begin();
	in_directory(state, "lock", lock_path);
	close(STDIN_FILENO);
	err[0] = lock_file_take(directory, "lock", &fd[0]);
	if (!fd[0])
		lock_file_remove(directory, "lock", fd[0]);
	before_lock = replace_lock;
	replaced = 0;
	replacements = 1000;
	err[1] = lock_file_take(directory, "lock", &fd[1]);
	dup2(saved, STDIN_FILENO);
	close(saved);
	assert_int_equal(err[0], 0);
	assert_int_equal(fd[0], 0);
	assert_int_equal(err[1], -EBUSY);
	assert_int_equal(fd[1], 77);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lock_file_take__writes_its_own_pid_whole),
		TEST(lock_file__is_opened_with_care),
		TEST(lock_file__is_a_regular_file),
		TEST(lock_file_take__tries_again_when_the_file_was_replaced),
		TEST(lock_file_take__tries_again_when_the_file_comes_or_goes),
		TEST(lock_file_take__says_why_it_cannot_be_locked),
		TEST(lock_file_take__of_one_that_was_killed_is_told_apart),
		TEST(lock_file_take__needs_no_room_for_the_pid),
		TEST(lock_file_take__descriptor_0_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
