/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells the kernel side how many processes each user has in its tables, of which a user may have as
 * many as are left for all others.  No state. */
#ifndef PROCESSES_PROCESS_SHARES_H
#define PROCESSES_PROCESS_SHARES_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_side;
struct process_table;

/* Counts the processes that live.  Those of whom nobody has asked yet who answers for them are
 * looked up, some a call. */
void process_shares_count(struct kernel_side *kernel, struct process_table *processes);
/* Takes room for a process that was found in /proc.  Returns false when its user has his share;
 * root has none.  To look up whose it is takes 40 us. */
bool process_shares_take(const struct kernel_side *kernel, uint32_t tgid);

#endif
