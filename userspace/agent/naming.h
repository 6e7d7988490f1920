/* SPDX-License-Identifier: BSD-2-Clause */
/* Where symbolize/ gets names from. */
#ifndef AGENT_NAMING_H
#define AGENT_NAMING_H

#include <stdint.h>

struct agent;
struct naming;
struct symbolizer_sources;

int naming_new(struct agent *agent, struct naming **ret_naming);
void naming_free(struct naming *naming);
/* Reads the kernel's names, once: 60 ms that the end of the first window is spared. */
void naming_prepare(struct naming *naming);
/* Whose /tmp/perf-PID.map was not read, for a reason that the log tells once. */
uint64_t naming_refused_jits(const struct naming *naming);
/* For one window: its modules start anew. */
void naming_begin(struct naming *naming, struct symbolizer_sources *ret_sources);

#endif
