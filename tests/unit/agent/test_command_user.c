/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/command.h"

#include <cmocka.h>
#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

#define NOBODY 65534U
#define WITHOUT_ENTRY 3999999999U

static void call_through_sudo(const char *uid, const char *gid)
{
	assert_int_equal(uid ? setenv("SUDO_UID", uid, 1) : unsetenv("SUDO_UID"), 0);
	assert_int_equal(gid ? setenv("SUDO_GID", gid, 1) : unsetenv("SUDO_GID"), 0);
}

static bool is_root(void)
{
	if (!geteuid())
		return true;
	print_message("skipped: only root becomes somebody else\n");
	return false;
}

static void command_user_find__nobody_else_calls_it(void **state)
{
	struct command_user *user = (void *)1;

	(void)state;
	call_through_sudo(NULL, NULL);
	assert_int_equal(command_user_find(&user), 0);
	assert_null(user);
	user = (void *)1;
	call_through_sudo("0", "0");
	assert_int_equal(command_user_find(&user), 0);
	assert_null(user);
}

static void command_user_find__ids_that_are_none_do_not_mean_root(void **state)
{
	struct command_user *user;

	(void)state;
	if (!is_root())
		skip();
	call_through_sudo("joe", "0");
	assert_int_equal(command_user_find(&user), -EINVAL);
	call_through_sudo("65534", NULL);
	assert_int_equal(command_user_find(&user), -EINVAL);
}

static bool has_value(const char *name, const char *wanted)
{
	const char *value = getenv(name);

	return wanted ? value && !strcmp(value, wanted) : !value;
}

/* Returns 0, or the number of the first thing that is not the user's. */
static int become_and_look(const struct command_user *user)
{
	gid_t group[64];
	int count;

	setenv("HOME", "/root", 1);
	setenv("USER", "root", 1);
	setenv("LOGNAME", "root", 1);
	setenv("MAIL", "/var/mail/root", 1);
	if (command_user_become(user))
		return 1;
	count = getgroups(64, group);
	if (getuid() != user->uid || geteuid() != user->uid || getgid() != user->gid ||
	    getegid() != user->gid)
		return 2;
	for (int i = 0; i < count; i++) {
		if (!group[i])
			return 3;
	}
	if (count < 1 || !setuid(0) || !setgid(0) || !setgroups(0, NULL))
		return 4;
	if (!has_value("HOME", user->home ?: "/") || !has_value("USER", user->name) ||
	    !has_value("LOGNAME", user->name) || !has_value("SHELL", user->shell))
		return 5;
	return has_value("SUDO_UID", NULL) && has_value("SUDO_GID", NULL) && has_value("MAIL", NULL)
		       ? 0
		       : 6;
}

static void expect_become(const struct command_user *user)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(become_and_look(user));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void command_user_become__has_nothing_of_roots(void **state)
{
	OWNED(command_user) struct command_user *user = NULL;

	(void)state;
	if (!is_root())
		skip();
	call_through_sudo("65534", "65534");
	assert_int_equal(command_user_find(&user), 0);
	assert_int_equal(user->uid, NOBODY);
	assert_int_equal(user->gid, NOBODY);
	assert_string_equal(user->name, "nobody");
	assert_int_equal(user->group_count, 1);
	expect_become(user);
}

static void command_user_become__works_without_an_entry_of_the_user(void **state)
{
	OWNED(command_user) struct command_user *user = NULL;

	(void)state;
	if (!is_root())
		skip();
	call_through_sudo("3999999999", "12345");
	assert_int_equal(command_user_find(&user), 0);
	assert_int_equal(user->uid, WITHOUT_ENTRY);
	assert_null(user->name);
	assert_int_equal(user->group_count, 1);
	assert_int_equal(user->group[0], 12345);
	expect_become(user);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(command_user_find__nobody_else_calls_it),
		cmocka_unit_test(command_user_find__ids_that_are_none_do_not_mean_root),
		cmocka_unit_test(command_user_become__has_nothing_of_roots),
		cmocka_unit_test(command_user_become__works_without_an_entry_of_the_user),
	};

	return cmocka_run_group_tests_name("agent/command_user", tests, NULL, NULL);
}
