/* SPDX-License-Identifier: BSD-2-Clause */
/* Where symbolize/ gets names from. */
#ifndef AGENT_NAMING_H
#define AGENT_NAMING_H

#include <stdbool.h>
#include <stdint.h>

struct agent;
struct intern;
struct naming;
struct symbolizer;

int naming_new(struct agent *agent, struct naming **ret_naming);
void naming_free(struct naming *naming);
/* Reads the kernel's names, once: 60 ms that the end of the first window is spared. */
void naming_prepare(struct naming *naming);
/* Whose /tmp/perf-PID.map was not read, for a reason that the log tells once. */
uint64_t naming_refused_jits(const struct naming *naming);
struct naming_options {
	struct intern *strings; /* that names go into; borrowed */
	bool no_native;		/* as --no-native, which counts, too */
	/* As struct symbolizer_sources has it; NULL: modules of the open profiles. */
	uint32_t (*module)(void *context, uint32_t file);
};
/* A symbolizer of the stacks in the agent's dictionary.  Names in the kernel and in JIT code are as of now.
 * 0 or -ENOMEM. */
int naming_begin(struct naming *naming, const struct naming_options *options,
		 struct symbolizer **ret_symbolizer);

#endif
