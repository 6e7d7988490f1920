/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: base/capabilities.c */
#include "base/capabilities.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(capabilities_keep__others_are_gone),
		cmocka_unit_test(capabilities_keep__ambient_ones_follow),
	};

	return cmocka_run_group_tests_name("base/capabilities", tests, NULL, NULL);
}
