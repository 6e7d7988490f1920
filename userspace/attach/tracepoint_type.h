/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads from the kernel's BTF which arguments a tracepoint has. */
#ifndef ATTACH_TRACEPOINT_TYPE_H
#define ATTACH_TRACEPOINT_TYPE_H

#include <bpf/btf.h>
#include <stdbool.h>

/* Returns the type behind typedefs and qualifiers; NULL: none. */
const struct btf_type *tracepoint_resolve(const struct btf *kernel, __u32 id);
/* Returns the prototype of a tracepoint with so many parameters: its own data first, then its
 * arguments.  typedef_name: "btf_trace_NAME".  NULL: there is no such tracepoint, or it has another
 * number of them. */
const struct btf_type *tracepoint_prototype(const struct btf *kernel, const char *typedef_name,
					    unsigned int parameters);
/* Returns whether a parameter is a pointer to struct task_struct. */
bool tracepoint_takes_task(const struct btf *kernel, const struct btf_param *parameter);

#endif
