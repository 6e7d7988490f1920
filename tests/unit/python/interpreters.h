/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the installed CPythons, for tests that need live ones.  Run from the repository's root.
 * PYPROFD_INTERPRETERS: a directory that tests/interpreters/fetch.sh filled (default:
 * build/interpreters); PYPROFD_PYTHON_LIST: a file with what tests/interpreters/list.py has
 * printed, instead of all; PYPROFD_PYTHONS: more commands, separated by colons. */
#ifndef TESTS_UNIT_PYTHON_INTERPRETERS_H
#define TESTS_UNIT_PYTHON_INTERPRETERS_H

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/cleanup.h"

#define MAX_INTERPRETERS 32U

struct interpreter {
	char label[64];
	char command[512]; /* for a shell; may be `chroot TREE ...` */
};

static inline size_t interpreters_add(struct interpreter *interpreters, size_t count,
				      const char *label, const char *command)
{
	if (count >= MAX_INTERPRETERS)
		return count;
	snprintf(interpreters[count].label, sizeof(interpreters[count].label), "%.63s", label);
	snprintf(interpreters[count].command, sizeof(interpreters[count].command), "%.511s",
		 command);
	return count + 1;
}

/* Returns how many there are. */
static inline size_t interpreters_find(struct interpreter interpreters[MAX_INTERPRETERS])
{
	const char *directory = getenv("PYPROFD_INTERPRETERS"), *more = getenv("PYPROFD_PYTHONS");
	const char *listed = getenv("PYPROFD_PYTHON_LIST");
	OWNED_MEM char *copy = more ? strdup(more) : NULL;
	char line[1024], *rest = copy, *command;
	size_t count = 0;
	FILE *list;

	snprintf(line, sizeof(line), "python3 tests/interpreters/list.py %s",
		 directory ? directory : "");
	if (listed)
		snprintf(line, sizeof(line), "exec cat '%s'", listed);
	list = popen(line, "r");
	while (list && fgets(line, sizeof(line), list)) {
		char *tab = strchr(line, '\t');

		line[strcspn(line, "\n")] = '\0';
		if (!tab)
			continue;
		*tab = '\0';
		count = interpreters_add(interpreters, count, line, tab + 1);
	}
	if (list)
		pclose(list);
	while ((command = strsep(&rest, ":")))
		count = interpreters_add(interpreters, count, command, command);
	return count;
}

/* Calls check() for each interpreter; skips the test when there is none. */
static inline void interpreters_check(void (*check)(const struct interpreter *interpreter))
{
	struct interpreter interpreters[MAX_INTERPRETERS];
	size_t count = interpreters_find(interpreters);

	if (!count) {
		print_message("# skipped: no CPython at hand\n");
		skip();
	}
	for (size_t i = 0; i < count; i++) {
		print_message("  %s\n", interpreters[i].label);
		check(&interpreters[i]);
	}
}

/* An interpreter that runs a script; the script prints `PID n` first, at last `END`, and then waits
 * to be killed. */
struct live_python {
	FILE *text;
	pid_t pid;
};

static inline struct live_python live_python_start(const struct interpreter *interpreter,
						   const char *script)
{
	char command[1024], line[64];
	struct live_python live = {0};

	snprintf(command, sizeof(command), "exec %s - < %s", interpreter->command, script);
	live.text = popen(command, "r");
	if (live.text && fgets(line, sizeof(line), live.text))
		sscanf(line, "PID %d", &live.pid);
	return live;
}

static inline void live_python_stop(struct live_python *live)
{
	if (live->pid > 0)
		kill(live->pid, SIGKILL);
	if (live->text)
		pclose(live->text);
}

#endif
