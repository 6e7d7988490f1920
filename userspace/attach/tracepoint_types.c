/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/tracepoint_types.h"

#include <bpf/btf.h>
#include <string.h>

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
