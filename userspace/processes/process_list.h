/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes to look at later. */
#ifndef PROCESSES_PROCESS_LIST_H
#define PROCESSES_PROCESS_LIST_H

#include <stddef.h>

#include <pyprofd/process.h>

/* All zero is an empty list; free(id) releases it. */
struct process_list {
	struct pp_process_id *id; /* owned */
	size_t count, capacity;
};

/* Adds a process, unless it is one of the last eight.  Returns 0; -ENOSPC: there are too many;
 * -ENOMEM. */
int process_list_add(struct process_list *list, struct pp_process_id id);

#endif
