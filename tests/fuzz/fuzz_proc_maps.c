/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: discover/proc_maps.c discover/mapping_set.c base/user_quota.c base/io.c */
/* A hostile text of /proc/PID/maps, read into a set of mappings: it must be sorted, without
 * overlaps. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "discover/mapping_set.h"
#include "discover/proc_maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int add(void *context, const struct mapping *mapping)
{
	struct process *process = context;
	struct mapping copy = *mapping;
	int err;

	assert(strlen(mapping->path) < MAPPING_PATH_MAX_BYTES);
	/* Inodes as times, so that older ones meet newer ones too. */
	copy.time_ns = mapping->key.inode % 16;
	copy.path = mapping_is_anonymous(mapping) ? "" : "/f";
	err = mapping_set_put(process, &copy);
	assert(!err || err == -ENOSPC);
	return 0;
}

static void check(const struct process *process)
{
	assert(process->mapping_count <= MAPPING_SET_MAX);
	for (size_t i = 0; i < process->mapping_count; i++) {
		assert(process->mapping[i].start < process->mapping[i].end);
		assert(!i || process->mapping[i - 1].end <= process->mapping[i].start);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct process process = {0}, child = {0};
	struct proc_maps_summary summary;

	assert(!proc_maps_parse((const char *)data, size, add, &process, &summary));
	assert(summary.bad_line_count <= summary.line_count);
	check(&process);
	assert(!mapping_set_share(&child, &process, 9));
	check(&child);
	assert(!mapping_set_drop_older(&process, 5, 3));
	check(&process);
	check(&child);
	mapping_set_release(&process);
	mapping_set_release(&child);
	return 0;
}
