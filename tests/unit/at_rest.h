/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits until threads have come to rest, instead of a fixed time that a busy machine needs longer
 * than. */
#ifndef TESTS_UNIT_AT_REST_H
#define TESTS_UNIT_AT_REST_H

#include <cmocka.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REST_MS 30U
#define REST_LIMIT_MS 20000U

/* Returns how often the thread was switched out; 0: it runs, or is gone. */
static inline unsigned long long rest_switches(pid_t pid, pid_t tid)
{
	unsigned long long voluntary = 0, other = 0;
	char path[64], line[256], state = '\0';
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	status = fopen(path, "r");
	while (status && fgets(line, sizeof(line), status)) {
		sscanf(line, "State: %c", &state);
		sscanf(line, "voluntary_ctxt_switches: %llu", &voluntary);
		sscanf(line, "nonvoluntary_ctxt_switches: %llu", &other);
	}
	if (status)
		fclose(status);
	return state == 'S' ? voluntary + other : 0;
}

/* The sum over all threads of a process, and how many of them run. */
static inline unsigned long long rest_look(pid_t pid, unsigned int *ret_running)
{
	unsigned long long sum = 0;
	const struct dirent *item;
	char path[64];
	DIR *dir;

	*ret_running = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (item = readdir(dir))) {
		const pid_t tid = (pid_t)strtol(item->d_name, NULL, 10);
		const unsigned long long switches = tid ? rest_switches(pid, tid) : 0;

		*ret_running += tid && !switches;
		sum += switches;
	}
	if (dir)
		closedir(dir);
	return sum;
}

/* Waits until all threads of the process but `busy` sleep and none of those has run for some time.
 * A thread that waits for Python's GIL runs every 5 ms. */
static inline void wait_for_rest(pid_t pid, unsigned int busy)
{
	unsigned int running, waited_ms = 0;
	unsigned long long before, now = rest_look(pid, &running);

	do {
		if (waited_ms >= REST_LIMIT_MS)
			fail_msg("process %d does not come to rest", pid);
		before = now;
		usleep(REST_MS * 1000);
		waited_ms += REST_MS;
		now = rest_look(pid, &running);
	} while (running > busy || now != before);
}

/* As wait_for_rest(), of one thread. */
static inline void wait_for_thread_rest(pid_t pid, pid_t tid)
{
	unsigned long long before, now = rest_switches(pid, tid);
	unsigned int waited_ms = 0;

	do {
		if (waited_ms >= REST_LIMIT_MS)
			fail_msg("thread %d does not come to rest", tid);
		before = now;
		usleep(REST_MS * 1000);
		waited_ms += REST_MS;
		now = rest_switches(pid, tid);
	} while (!now || now != before);
}

#endif
