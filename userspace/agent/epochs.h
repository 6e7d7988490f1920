/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides when the kernel side sends stacks and code again, so that the dictionary can forget the
 * rest. */
#ifndef AGENT_EPOCHS_H
#define AGENT_EPOCHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct context_table;
struct dictionary;
struct file_table;
struct kernel_side;
struct process_table;

/* How large the dictionary may get: CPUs bring samples, and processes bring code. */
struct dictionary_limits {
	uint64_t budget_bytes; /* --max-memory; 0: none */
	uint32_t cpus;
};
size_t dictionary_limit(const struct dictionary_limits *limits, size_t processes);

struct epochs {
	/* Borrowed. */
	struct kernel_side *kernel;
	struct dictionary *dictionary;
	struct text_table *texts;
	struct file_table *files;
	struct context_table *contexts;
	const struct process_table *processes;
	struct dictionary_limits limits;
	/* Its own. */
	uint32_t epoch;
	uint32_t windows_closed;
	uint64_t refused; /* by the dictionary, when it made room last */
};
/* Begins the first epoch.  The dictionary is empty. */
void epochs_start(struct epochs *epochs);
/* Call it at the end of each window.  The dictionary makes room when it refused something.  Returns
 * whether a new epoch has begun: stacks that no thread will send again must be kept in use. */
bool epochs_end_window(struct epochs *epochs);

#endif
