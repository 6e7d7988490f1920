/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/sched_switch.h"

#include "attach/tracepoint_type.h"

#define PARAMETERS 5U /* the tracepoint's own data first, then its arguments */

bool sched_switch_tells_state(const struct btf *kernel)
{
	const struct btf_type *function =
		tracepoint_prototype(kernel, "btf_trace_sched_switch", PARAMETERS);
	const struct btf_param *parameter;
	const struct btf_type *state;

	if (!function)
		return false;
	parameter = btf_params(function);
	state = tracepoint_resolve(kernel, parameter[4].type);
	return tracepoint_takes_task(kernel, &parameter[2]) &&
	       tracepoint_takes_task(kernel, &parameter[3]) && state && btf_is_int(state) &&
	       state->size == sizeof(unsigned int);
}
