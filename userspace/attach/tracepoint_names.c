/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/tracepoint_names.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nearest.h"

/* BTF has a typedef of this name for each tracepoint (include/trace/bpf_probe.h). */
#define TYPE_PREFIX "btf_trace_"
#define EVENTS_DIRECTORY "/sys/kernel/tracing/events"

/* Groups whose tracepoints are hit while locks are held that our program takes itself, or at
 * places from which its own helpers come by again. */
static const char *const refused_groups[] = {"lock", "preemptirq", "rcu", "bpf_test_run",
					     "bpf_trace"};

/* Returns whether the group can be seen not to have the tracepoint: the directory is root's. */
static bool is_elsewhere(const char *group, const char *name)
{
	char path[512];

	if (access(EVENTS_DIRECTORY, X_OK))
		return false;
	snprintf(path, sizeof(path), EVENTS_DIRECTORY "/%s/%s", group, name);
	return access(path, F_OK) != 0;
}

static int find_name(const struct btf *kernel, const char *name, char *near, size_t near_size)
{
	struct nearest nearest = NEAREST_NONE;
	const uint32_t count = btf__type_cnt(kernel);

	for (uint32_t id = 1; id < count; id++) {
		const struct btf_type *type = btf__type_by_id(kernel, id);
		const char *known;

		if (!btf_is_typedef(type))
			continue;
		known = btf__name_by_offset(kernel, type->name_off);
		if (!known || strncmp(known, TYPE_PREFIX, strlen(TYPE_PREFIX)))
			continue;
		known += strlen(TYPE_PREFIX);
		if (!strcmp(known, name))
			return 0;
		nearest_compare(&nearest, name, strlen(name), known);
	}
	snprintf(near, near_size, "%s", nearest.name ? nearest.name : "");
	return -ENOENT;
}

int tracepoint_check(const char *group, const char *name, char *near, size_t near_size, char *why,
		     size_t why_size)
{
	struct btf *kernel;
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(refused_groups); i++)
		if (!strcmp(group, refused_groups[i])) {
			snprintf(why, why_size,
				 "tracepoints of the group '%s' are hit inside of what our "
				 "program itself calls, and could lock a CPU up",
				 group);
			return -EPERM;
		}
	if (is_elsewhere(group, name)) {
		near[0] = '\0';
		err = -ENOENT;
	} else {
		err = 0;
	}
	kernel = btf__load_vmlinux_btf();
	if (!kernel)
		return -errno;
	if (!err)
		err = find_name(kernel, name, near, near_size);
	else
		(void)find_name(kernel, name, near, near_size);
	btf__free(kernel);
	return err;
}
