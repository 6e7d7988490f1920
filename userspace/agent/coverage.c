/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/coverage.h"

#include <errno.h>
#include <unistd.h>

#include <uthash.h>

#include "attach/context_table.h"
#include "base/clock.h"
#include "base/io.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"

/* Its line of interrupts holds a number for each of thousands. */
#define HOST_STAT_BYTES (1U << 20)
#define PROCESSES_MAX 4096U

struct seen {
	uint32_t tgid;
	uint64_t start_ns, cpu_ns;
	uint32_t pass; /* number of the last reading that found it */
	UT_hash_handle hh;
};

struct coverage {
	const struct process_table *processes; /* NULL: the whole machine */
	uint64_t began_ns; /* CLOCK_MONOTONIC */
	uint64_t host_ns;
	struct seen *seen;
	uint32_t pass;
};

/* Returns 0 when /proc/stat cannot be read. */
static uint64_t read_host_ns(void)
{
	OWNED_MEM char *text = NULL;
	unsigned long long user, nice, kernel;

	if (read_file("/proc/stat", HOST_STAT_BYTES, &text, NULL) ||
	    sscanf(text, "cpu %llu %llu %llu", &user, &nice, &kernel) != 3)
		return 0;
	return (user + nice + kernel) * (NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* Of a process that is older than this measurement, only the CPU time from now on counts. */
static uint64_t take_process(struct coverage *coverage, uint32_t tgid)
{
	struct proc_stat stat;
	struct seen *seen;
	uint64_t before_ns = 0;

	if (proc_stat_read(tgid, &stat))
		return 0;
	HASH_FIND(hh, coverage->seen, &tgid, sizeof(tgid), seen);
	if (seen && seen->start_ns == stat.start_ns)
		before_ns = seen->cpu_ns;
	else if (stat.start_ns < coverage->began_ns)
		before_ns = stat.cpu_ns;
	if (!seen) {
		if (HASH_COUNT(coverage->seen) >= PROCESSES_MAX)
			return 0;
		seen = calloc(1, sizeof(*seen));
		if (!seen)
			return 0;
		seen->tgid = tgid;
		HASH_ADD(hh, coverage->seen, tgid, sizeof(seen->tgid), seen);
	}
	seen->start_ns = stat.start_ns;
	seen->cpu_ns = stat.cpu_ns;
	seen->pass = coverage->pass;
	return stat.cpu_ns > before_ns ? stat.cpu_ns - before_ns : 0;
}

static uint64_t take_processes(struct coverage *coverage)
{
	const struct process *process = NULL;
	struct seen *seen, *next;
	uint64_t cpu_ns = 0;

	coverage->pass++;
	while ((process = process_table_next(coverage->processes, process)))
		if (!process->exit_ns && context_table_flags(process) & PP_CONTEXT_MATCHES)
			cpu_ns += take_process(coverage, process->id.tgid);
	HASH_ITER (hh, coverage->seen, seen, next) {
		if (seen->pass == coverage->pass)
			continue;
		HASH_DEL(coverage->seen, seen);
		free(seen);
	}
	return cpu_ns;
}

int coverage_new(const struct process_table *processes, struct coverage **ret_coverage)
{
	struct coverage *coverage = calloc(1, sizeof(*coverage));

	if (!coverage)
		return -ENOMEM;
	coverage->processes = processes;
	coverage->began_ns = mono_ns();
	(void)coverage_take(coverage);
	*ret_coverage = coverage;
	return 0;
}

void coverage_free(struct coverage *coverage)
{
	struct seen *seen, *next;

	if (!coverage)
		return;
	HASH_ITER (hh, coverage->seen, seen, next) {
		HASH_DEL(coverage->seen, seen);
		free(seen);
	}
	free(coverage);
}

uint64_t coverage_take(struct coverage *coverage)
{
	uint64_t before_ns;

	if (!coverage)
		return 0;
	if (coverage->processes)
		return take_processes(coverage);
	before_ns = coverage->host_ns;
	coverage->host_ns = read_host_ns();
	return before_ns && coverage->host_ns > before_ns ? coverage->host_ns - before_ns : 0;
}
