/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/tracepoint_type.h"

#include <string.h>

const struct btf_type *tracepoint_resolve(const struct btf *kernel, __u32 id)
{
	int resolved = btf__resolve_type(kernel, id);

	return resolved < 0 ? NULL : btf__type_by_id(kernel, (__u32)resolved);
}

static const struct btf_type *pointed_at(const struct btf *kernel, const struct btf_type *type)
{
	return type && btf_is_ptr(type) ? tracepoint_resolve(kernel, type->type) : NULL;
}

const struct btf_type *tracepoint_prototype(const struct btf *kernel, const char *typedef_name,
					    unsigned int parameters)
{
	int id = btf__find_by_name_kind(kernel, typedef_name, BTF_KIND_TYPEDEF);
	const struct btf_type *function = id < 0 ? NULL : tracepoint_resolve(kernel, (__u32)id);

	function = pointed_at(kernel, function);
	return function && btf_is_func_proto(function) && btf_vlen(function) == parameters
		       ? function
		       : NULL;
}

bool tracepoint_takes_task(const struct btf *kernel, const struct btf_param *parameter)
{
	const struct btf_type *task =
		pointed_at(kernel, tracepoint_resolve(kernel, parameter->type));

	return task && btf_is_struct(task) &&
	       !strcmp(btf__name_by_offset(kernel, task->name_off), "task_struct");
}
