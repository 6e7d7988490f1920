/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: discover/process_figures.c discover/proc_scan.c discover/process_table.c discover/mapping_set.c base/user_quota.c discover/proc_maps.c base/io.c base/intern.c base/utf8.c base/index_table.c */
/* The texts of /proc/PID/stat, status and schedstat, in which the process chose its name. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "discover/proc_scan.h"
#include "discover/process_figures.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_stat(const char *text, size_t size)
{
	struct proc_stat stat;

	if (proc_stat_parse(text, size, 100, 12345, &stat))
		return;
	assert(stat.comm[PP_COMM_BYTES - 1] == '\0');
	/* Later than the start of the machine, whatever the text says. */
	assert(!proc_stat_parse(text, size, 1, UINT64_MAX, &stat) && !stat.start_ns);
}

static void read_schedstat(const char *text)
{
	struct scheduler_times before = {.has_schedstat = true}, after = before;

	if (schedstat_parse(text, &after.schedstat_ns))
		return;
	assert(*text >= '0' && *text <= '9');
	assert(scheduler_times_between(&before, &after, false) == after.schedstat_ns);
	assert(!scheduler_times_between(&after, &before, false));
	assert(!scheduler_times_between(&before, &after, true));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Its own allocation, so that a read behind its end is seen; the parsers of whole files
	 * take a size, that of schedstat a NUL. */
	char *text = malloc(size + 1);
	struct resident_memory memory;
	struct proc_status status;

	assert(text);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	read_stat(text, size);
	read_schedstat(text);
	if (!proc_status_parse(text, size, &status))
		assert(size > strlen("Tgid:PPid:Uid:"));
	if (!resident_memory_parse(text, size, &memory))
		assert(!(memory.anonymous_bytes % 1024) && !(memory.peak_bytes % 1024) &&
		       size > strlen("VmHWM:0 kBRssAnon:0 kBRssFile:0 kBRssShmem:0 kB"));
	free(text);
	return 0;
}
