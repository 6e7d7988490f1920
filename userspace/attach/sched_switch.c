/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/sched_switch.h"

#include <bpf/btf.h>

#define PARAMETERS 5U /* the tracepoint's own data first, then its arguments */

/* Returns the type behind typedefs and qualifiers; NULL: none. */
static const struct btf_type *type_of(const struct btf *kernel, __u32 id)
{
	int resolved = btf__resolve_type(kernel, id);

	return resolved < 0 ? NULL : btf__type_by_id(kernel, (__u32)resolved);
}

static const struct btf_type *pointed_at(const struct btf *kernel, const struct btf_type *type)
{
	return type && btf_is_ptr(type) ? type_of(kernel, type->type) : NULL;
}

static bool is_task(const struct btf *kernel, const struct btf_param *parameter)
{
	const struct btf_type *task = pointed_at(kernel, type_of(kernel, parameter->type));

	return task && btf_is_struct(task) &&
	       !__builtin_strcmp(btf__name_by_offset(kernel, task->name_off), "task_struct");
}

bool sched_switch_tells_state(const struct btf *kernel)
{
	int id = btf__find_by_name_kind(kernel, "btf_trace_sched_switch", BTF_KIND_TYPEDEF);
	const struct btf_type *function = id < 0 ? NULL : type_of(kernel, (__u32)id);
	const struct btf_param *parameter;
	const struct btf_type *state;

	function = pointed_at(kernel, function);
	if (!function || !btf_is_func_proto(function) || btf_vlen(function) != PARAMETERS)
		return false;
	parameter = btf_params(function);
	state = type_of(kernel, parameter[4].type);
	return is_task(kernel, &parameter[2]) && is_task(kernel, &parameter[3]) && state &&
	       btf_is_int(state) && state->size == sizeof(unsigned int);
}
