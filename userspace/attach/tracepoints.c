/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/tracepoints.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nearest.h"

/* The tracepoints of the running kernel, as its BTF lists them.  No state. */

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

/* Returns the type behind typedefs and qualifiers; NULL: none. */
static const struct btf_type *resolve(const struct btf *kernel, __u32 id)
{
	int resolved = btf__resolve_type(kernel, id);

	return resolved < 0 ? NULL : btf__type_by_id(kernel, (__u32)resolved);
}

static const struct btf_type *pointed_at(const struct btf *kernel, const struct btf_type *type)
{
	return type && btf_is_ptr(type) ? resolve(kernel, type->type) : NULL;
}

/* Returns the prototype of a tracepoint with so many parameters: its own data first, then its
 * arguments.  typedef_name: "btf_trace_NAME".  NULL: there is no such tracepoint, or it has another
 * number of them. */
static const struct btf_type *prototype_of(const struct btf *kernel, const char *typedef_name,
					   unsigned int parameters)
{
	int id = btf__find_by_name_kind(kernel, typedef_name, BTF_KIND_TYPEDEF);
	const struct btf_type *function = id < 0 ? NULL : resolve(kernel, (__u32)id);

	function = pointed_at(kernel, function);
	return function && btf_is_func_proto(function) && btf_vlen(function) == parameters
		       ? function
		       : NULL;
}

/* Returns whether a parameter is a pointer to struct task_struct. */
static bool takes_task(const struct btf *kernel, const struct btf_param *parameter)
{
	const struct btf_type *task = pointed_at(kernel, resolve(kernel, parameter->type));

	return task && btf_is_struct(task) &&
	       !strcmp(btf__name_by_offset(kernel, task->name_off), "task_struct");
}

/* ---- mark_victim ---- */

/* The tracepoint's own data first, then its arguments. */
#define PARAMETERS_PID 2U
#define PARAMETERS_TASK 3U

enum mark_victim mark_victim_arguments(const struct btf *kernel)
{
	static const char name[] = "btf_trace_mark_victim";
	const struct btf_type *function = prototype_of(kernel, name, PARAMETERS_TASK);
	const struct btf_type *pid;

	if (function)
		return takes_task(kernel, &btf_params(function)[1]) ? MARK_VICTIM_TASK
								    : MARK_VICTIM_NONE;
	function = prototype_of(kernel, name, PARAMETERS_PID);
	pid = function ? resolve(kernel, btf_params(function)[1].type) : NULL;
	return pid && btf_is_int(pid) && pid->size == sizeof(int) ? MARK_VICTIM_PID
								  : MARK_VICTIM_NONE;
}

/* ---- sched_switch ---- */

#define PARAMETERS_SWITCH 5U /* the tracepoint's own data first, then its arguments */

bool sched_switch_tells_state(const struct btf *kernel)
{
	const struct btf_type *function =
		prototype_of(kernel, "btf_trace_sched_switch", PARAMETERS_SWITCH);
	const struct btf_param *parameter;
	const struct btf_type *state;

	if (!function)
		return false;
	parameter = btf_params(function);
	state = resolve(kernel, parameter[4].type);
	return takes_task(kernel, &parameter[2]) && takes_task(kernel, &parameter[3]) && state &&
	       btf_is_int(state) && state->size == sizeof(unsigned int);
}

/* ---- cgroup_attach_task ---- */

#define PARAMETERS_ATTACH 5U

bool cgroup_attach_tells_task(const struct btf *kernel)
{
	const struct btf_type *function =
		prototype_of(kernel, "btf_trace_cgroup_attach_task", PARAMETERS_ATTACH);

	return function && takes_task(kernel, &btf_params(function)[3]);
}
