/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live/server.h"

#define USER 54321

static int ready[2];

/* The capabilities of a process that has changed its uids: those that the kernel leaves it (all
 * where one of the uids is root's), none, or all. */
enum capabilities { AS_THE_KERNEL_SAYS, NONE, ALL };

/* A process of that user; without root it can only be one of our own. */
static pid_t start(uid_t real, uid_t effective, uid_t saved, int is_dumpable, enum capabilities has)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {};
	char byte = 'x';
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (has == ALL && prctl(PR_SET_KEEPCAPS, 1))
			byte = '-';
		if (setresuid(real, effective, saved))
			byte = '-';
		if (has == NONE && syscall(SYS_capset, &header, none))
			byte = '-';
		/* A change of uid takes it away. */
		prctl(PR_SET_DUMPABLE, is_dumpable);
		(void)!write(ready[1], &byte, 1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
}

static void access__of_another_user(void **state)
{
	(void)state;
	assert_true(live_may_see(0, 1));
	assert_false(live_may_see(USER, 1));
	assert_false(live_may_see(USER, (uint32_t)getpid()));
	assert_false(live_may_see(USER, 99999999));
}

static void access__of_ones_own(void **state)
{
	pid_t pid;

	(void)state;
	if (geteuid()) {
		print_message("skipped: only root can become somebody else\n");
		skip();
	}
	pid = start(USER, USER, USER, 1, AS_THE_KERNEL_SAYS);
	assert_true(live_may_see(USER, (uint32_t)pid));
	assert_false(live_may_see(USER + 1, (uint32_t)pid));
	end(pid);
}

static void access__not_of_what_was_set_uid_or_hides(void **state)
{
	static const struct {
		uid_t real, effective, saved;
		int is_dumpable;
		enum capabilities has;
	} cases[] = {
		{USER, 0, 0, 1, AS_THE_KERNEL_SAYS},
		{USER, USER, 0, 1, AS_THE_KERNEL_SAYS},
		{USER, 0, USER, 1, AS_THE_KERNEL_SAYS},
		{0, USER, USER, 1, AS_THE_KERNEL_SAYS},
		{USER, USER, USER, 0, AS_THE_KERNEL_SAYS},
		/* Each of what is asked of it is enough to refuse it. */
		{USER, USER, 0, 1, NONE},
		{0, USER, USER, 1, NONE},
		{USER, USER, USER + 1, 1, NONE},
		{USER + 1, USER, USER, 1, NONE},
		{USER, USER + 1, USER, 1, NONE},
		{USER, USER, USER, 1, ALL},
		{USER, USER, USER, 0, NONE},
	};

	(void)state;
	if (geteuid()) {
		print_message("skipped: only root can become somebody else\n");
		skip();
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pid_t pid = start(cases[i].real, cases[i].effective, cases[i].saved,
				  cases[i].is_dumpable, cases[i].has);
		bool may_see = live_may_see(USER, (uint32_t)pid);

		end(pid);
		if (may_see)
			fail_msg("case %zu", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(access__of_another_user),
		cmocka_unit_test(access__of_ones_own),
		cmocka_unit_test(access__not_of_what_was_set_uid_or_hides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
