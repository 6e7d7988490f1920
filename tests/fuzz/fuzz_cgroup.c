/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: discover/proc_scan.c discover/process_table.c discover/mapping_set.c base/user_quota.c discover/proc_maps.c discover/cpus.c base/intern.c base/utf8.c base/io.c base/index_table.c */
/* The texts of /proc/PID/cgroup, stat and status, and of a list of CPUs. */
#include <assert.h>
#include <string.h>

#include "discover/cpus.h"
#include "discover/proc_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct container container;
	struct proc_status status;
	struct proc_stat stat;
	struct cpu_list list = {0};

	container_parse(text, size, &container);
	assert(memchr(container.cgroup, '\0', sizeof(container.cgroup)));
	assert(strlen(container.id) == 0 || strlen(container.id) == 64);
	assert(container.cgroup[0] == '\0' || container.cgroup[0] == '/');
	if (!proc_stat_parse(text, size, 100, 12345, &stat))
		assert(memchr(stat.comm, '\0', sizeof(stat.comm)));
	proc_status_parse(text, size, &status);
	if (!cpu_list_parse(text, size, &list))
		for (size_t i = 1; i < list.count; i++)
			assert(list.cpu[i - 1] < list.cpu[i]);
	cpu_list_release(&list);
	return 0;
}
