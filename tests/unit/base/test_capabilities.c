/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/task.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"

#define OURS (CAPABILITY_BIT(CAP_BPF) | CAPABILITY_BIT(CAP_KILL) | CAPABILITY_BIT(CAP_PERFMON))
#define LEFT (CAPABILITY_BIT(CAP_BPF) | CAPABILITY_BIT(CAP_KILL))

/* What the kernel says of a set of this process. */
static uint64_t set_in_proc(const char *name)
{
	FILE *file = fopen("/proc/self/status", "re");
	unsigned long long set = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			(void)sscanf(line + strlen(name), ": %llx", &set);
	if (file)
		fclose(file);
	return set;
}

/* Runs a check in a process of its own, which may lose capabilities.  It returns 0 or the number of
 * what does not hold. */
static void in_child(int (*check)(void))
{
	int status = 0;
	pid_t pid;

	if (!capabilities_are_held(OURS)) {
		print_message("skipped: not root\n");
		skip();
	}
	pid = fork();
	if (!pid)
		_exit(check());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int keep_some(void)
{
	if (capabilities_keep(LEFT, 0))
		return 1;
	if (set_in_proc("CapEff") != LEFT || set_in_proc("CapPrm") != LEFT)
		return 2;
	if (!capabilities_are_held(LEFT) || capabilities_are_held(OURS))
		return 3;
	/* None comes back. */
	return capabilities_keep(UINT64_MAX, UINT64_MAX) || set_in_proc("CapPrm") != LEFT ? 4 : 0;
}

static void capabilities_keep__others_are_gone(void **state)
{
	(void)state;
	in_child(keep_some);
}

static int keep_ambient(void)
{
	const uint64_t ambient = CAPABILITY_BIT(CAP_KILL);
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct word[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, word))
		return 1;
	word[0].inheritable = word[0].permitted;
	word[1].inheritable = word[1].permitted;
	if (syscall(SYS_capset, &header, word) ||
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0) ||
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_PERFMON, 0, 0))
		return 2;
	/* A service's children have its ambient capabilities, less what it has given up. */
	if (capabilities_keep(LEFT, LEFT) || set_in_proc("CapAmb") != ambient)
		return 3;
	return capabilities_keep(LEFT, 0) || set_in_proc("CapAmb") || set_in_proc("CapInh") ? 4 : 0;
}

static void capabilities_keep__ambient_ones_follow(void **state)
{
	(void)state;
	in_child(keep_ambient);
}

/* Lets capset(2) fail, as the filter of a service does. */
static int refuse_capset(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_capset, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = ARRAY_SIZE(code), .filter = code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int keep_none_under_a_filter(void)
{
	if (capabilities_keep(LEFT, 0) || refuse_capset())
		return 1;
	if (capabilities_keep(LEFT, 0))
		return 2;
	/* What would be given up and is not is an error. */
	return capabilities_keep(0, 0) == -EPERM ? 0 : 3;
}

static void capabilities_keep__nothing_to_give_up_takes_no_call(void **state)
{
	(void)state;
	in_child(keep_none_under_a_filter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(capabilities_keep__nothing_to_give_up_takes_no_call),
		cmocka_unit_test(capabilities_keep__others_are_gone),
		cmocka_unit_test(capabilities_keep__ambient_ones_follow),
	};

	return cmocka_run_group_tests_name("base/capabilities", tests, NULL, NULL);
}
