/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: store/lock_file.c base/io.c */
#include "fixture.h"

#include "base/cleanup.h"
#include "store/lock_file.h"

static int owner_of(void **state, const char *text, pid_t *ret_pid)
{
	OWNED_FD int folder = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char path[PATH_CHARS];

	if (text)
		write_text(in_folder(state, "lock", path), text);
	return lock_file_owner(folder, "lock", ret_pid);
}

static void lock_file_owner__is_the_pid_of_the_first_line(void **state)
{
	pid_t pid = 0;

	assert_int_equal(owner_of(state, "1\n", &pid), 0);
	assert_int_equal(pid, 1);
	assert_int_equal(owner_of(state, "2147483647\n", &pid), 0);
	assert_int_equal(pid, 2147483647);
	assert_int_equal(owner_of(state, "12\n34\n", &pid), 0);
	assert_int_equal(pid, 12);
}

static void lock_file_owner__what_is_no_pid_is_enodata(void **state)
{
	static const char *const texts[] = {
		"",	"\n",		"x\n",
		"12",	"12x\n",	"0\n",
		"-5\n", "2147483648\n", "99999999999999999999999999999999999999\n"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		pid_t pid = 77;

		if (owner_of(state, texts[i], &pid) != -ENODATA)
			fail_msg("'%s'", texts[i]);
		assert_int_equal(pid, 77);
	}
}

static void lock_file_owner__no_file_is_enoent(void **state)
{
	pid_t pid = 77;

	assert_int_equal(owner_of(state, NULL, &pid), -ENOENT);
}

static void lock_file_take__writes_its_own_pid_whole(void **state)
{
	OWNED_FD int folder = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	char path[PATH_CHARS];
	pid_t pid = 0;

	write_text(in_folder(state, "lock", path), "1234567890 what an earlier one has left\n");
	assert_int_equal(lock_file_take(folder, "lock", &fd), 0);
	assert_int_equal(lock_file_owner(folder, "lock", &pid), 0);
	assert_int_equal(pid, getpid());
	lock_file_remove(folder, "lock", TAKE_FD(fd));
	assert_int_equal(lock_file_owner(folder, "lock", &pid), -ENOENT);
	lock_file_remove(folder, "lock", -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lock_file_owner__is_the_pid_of_the_first_line),
		TEST(lock_file_owner__what_is_no_pid_is_enodata),
		TEST(lock_file_owner__no_file_is_enoent),
		TEST(lock_file_take__writes_its_own_pid_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
