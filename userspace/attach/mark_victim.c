/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/mark_victim.h"

#include "attach/tracepoint_type.h"

/* The tracepoint's own data first, then its arguments. */
#define PARAMETERS_PID 2U
#define PARAMETERS_TASK 3U

enum mark_victim mark_victim_arguments(const struct btf *kernel)
{
	static const char name[] = "btf_trace_mark_victim";
	const struct btf_type *function = tracepoint_prototype(kernel, name, PARAMETERS_TASK);
	const struct btf_type *pid;

	if (function)
		return tracepoint_takes_task(kernel, &btf_params(function)[1]) ? MARK_VICTIM_TASK
									       : MARK_VICTIM_NONE;
	function = tracepoint_prototype(kernel, name, PARAMETERS_PID);
	pid = function ? tracepoint_resolve(kernel, btf_params(function)[1].type) : NULL;
	return pid && btf_is_int(pid) && pid->size == sizeof(int) ? MARK_VICTIM_PID
								  : MARK_VICTIM_NONE;
}
