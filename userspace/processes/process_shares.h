/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells the kernel side how many processes each user has in its tables, of which a user may have as
 * many as are left for all others.  Each process is counted when it comes and when it ends: one
 * that does nothing costs nothing.  One thread. */
#ifndef PROCESSES_PROCESS_SHARES_H
#define PROCESSES_PROCESS_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/config.h>

#include "processes/process_list.h"

struct kernel_side;
struct process;
struct process_table;

struct process_shares {
	struct process_table *processes; /* borrowed, as is `kernel` */
	struct kernel_side *kernel;
	uint32_t held[PP_USER_SHARE_ROWS];
	struct process_list unasked; /* nobody has asked yet who answers for them */
};
/* Counts none; those of the table that end are taken out from now on. */
void process_shares_init(struct process_shares *shares, struct process_table *processes,
			 struct kernel_side *kernel);
void process_shares_release(struct process_shares *shares);

/* Counts a process of the table, unless it is counted, or has ended. */
void process_shares_add(struct process_shares *shares, struct process *process);
/* Tells the kernel side, and frees rows in which nobody has anything.  Some of whom nobody has
 * asked yet who answers for them are looked up. */
void process_shares_tell(struct process_shares *shares);
/* Takes room for a process that was found in /proc.  Returns false when its user has his share;
 * root has none.  To look up whose it is takes 40 us. */
bool process_shares_take(const struct kernel_side *kernel, uint32_t tgid);

#endif
