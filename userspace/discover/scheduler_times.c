/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/scheduler_times.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "discover/proc_scan.h"

#define SCHEDSTAT_MAX_BYTES 256U

int schedstat_parse(const char *text, uint64_t *ret_cpu_ns)
{
	char *end;
	unsigned long long ns;

	if (*text < '0' || *text > '9')
		return -EBADMSG;
	errno = 0;
	ns = strtoull(text, &end, 10);
	if (errno || *end != ' ')
		return -EBADMSG;
	*ret_cpu_ns = ns;
	return 0;
}

static int read_schedstat(uint32_t tgid, const char *tid, uint64_t *ret_cpu_ns)
{
	OWNED_MEM char *text = NULL;
	char path[64];
	size_t size;
	int err;

	if (snprintf(path, sizeof(path), "/proc/%u/task/%s/schedstat", tgid, tid) >=
	    (int)sizeof(path))
		return -EBADMSG;
	err = read_file(path, SCHEDSTAT_MAX_BYTES, &text, &size);
	return err ? err : schedstat_parse(text, ret_cpu_ns);
}

static int sum_schedstat(uint32_t tgid, DIR *tasks, struct scheduler_times *times)
{
	const struct dirent *task;
	uint64_t ns;
	int err;

	while ((task = readdir(tasks))) {
		if (task->d_name[0] == '.')
			continue;
		if (++times->threads > SCHEDULER_TIMES_THREADS)
			return -E2BIG;
		err = read_schedstat(tgid, task->d_name, &ns);
		if (err)
			return err;
		times->schedstat_ns += ns;
	}
	return 0;
}

int scheduler_times_read(uint32_t tgid, struct scheduler_times *ret_times)
{
	struct scheduler_times times = {};
	struct proc_stat stat;
	char path[32];
	DIR *tasks;
	int err = proc_stat_read(tgid, &stat);

	if (err)
		return err;
	times.start_ns = stat.start_ns;
	times.stat_ns = stat.cpu_ns;
	snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	tasks = opendir(path);
	if (tasks) {
		times.has_schedstat = !sum_schedstat(tgid, tasks, &times);
		closedir(tasks);
	}
	*ret_times = times;
	return 0;
}

static uint64_t grown(uint64_t before, uint64_t after)
{
	return after > before ? after - before : 0;
}

uint64_t scheduler_times_between(const struct scheduler_times *before,
				 const struct scheduler_times *after, bool has_exits)
{
	/* With fewer threads, some have exited, possibly before we were told. */
	if (before->has_schedstat && after->has_schedstat && !has_exits &&
	    after->threads >= before->threads)
		return grown(before->schedstat_ns, after->schedstat_ns);
	return grown(before->stat_ns, after->stat_ns);
}
