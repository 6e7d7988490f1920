/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/process_figures.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text.h"
#include "discover/proc_scan.h"

/* ---- CPU time ---- */

/* The most threads of which we read schedstat: each costs some microseconds. */
#define SCHEDULER_TIMES_THREADS 64U
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

/* ---- memory ---- */

#define STATUS_MAX_BYTES (256U << 10) /* Groups and Cpus_allowed can be long */
#define KIB 1024U

enum { FIGURE_PEAK, FIGURE_ANONYMOUS, FIGURE_FILE, FIGURE_SHARED, FIGURE_COUNT };

/* Reads "\t   1234 kB" to the line's end. */
static bool take_kib(struct cursor value, uint64_t *ret_bytes)
{
	uint64_t number;

	while (cursor_char(&value, ' ') || cursor_char(&value, '\t'))
		;
	return cursor_number(&value, 10, &number) && value.end - value.at == 3 &&
	       !memcmp(value.at, " kB", 3) && !__builtin_mul_overflow(number, KIB, ret_bytes);
}

static bool take_line(struct cursor line, uint64_t figure[FIGURE_COUNT], unsigned int *has)
{
	static const char *const key[FIGURE_COUNT] = {
		[FIGURE_PEAK] = "VmHWM:",
		[FIGURE_ANONYMOUS] = "RssAnon:",
		[FIGURE_FILE] = "RssFile:",
		[FIGURE_SHARED] = "RssShmem:",
	};

	for (unsigned int i = 0; i < FIGURE_COUNT; i++) {
		if (!cursor_text(&line, key[i]))
			continue;
		*has |= 1U << i;
		return take_kib(line, &figure[i]);
	}
	return true;
}

int resident_memory_parse(const char *text, size_t size, struct resident_memory *ret_memory)
{
	uint64_t figure[FIGURE_COUNT] = {0};
	struct cursor rest = {text, text + size}, line;
	unsigned int has = 0;

	while (cursor_line(&rest, &line))
		if (!take_line(line, figure, &has))
			return -EBADMSG;
	if (!has)
		return -ENODATA;
	if (has != (1U << FIGURE_COUNT) - 1)
		return -EBADMSG;
	*ret_memory = (struct resident_memory){.anonymous_bytes = figure[FIGURE_ANONYMOUS],
					       .file_bytes = figure[FIGURE_FILE],
					       .shared_bytes = figure[FIGURE_SHARED],
					       .peak_bytes = figure[FIGURE_PEAK]};
	return 0;
}

int resident_memory_read(uint32_t pid, struct resident_memory *ret_memory)
{
	OWNED_MEM char *text = NULL;
	char path[32];
	size_t size;
	int err;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	err = read_file(path, STATUS_MAX_BYTES, &text, &size);
	if (err)
		return err == -ENOENT ? -ESRCH : err;
	return resident_memory_parse(text, size, ret_memory);
}
