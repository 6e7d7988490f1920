/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for process_shares.c, but for process_shares_take(): each process is counted, and
 * nobody is told. */
#ifndef UNIT_PROCESSES_COUNTED_SHARES_H
#define UNIT_PROCESSES_COUNTED_SHARES_H

#include "discover/process.h"
#include "processes/process_shares.h"

void process_shares_add(struct process_shares *counted, struct process *process)
{
	(void)counted;
	process->share = 1;
}

void process_shares_init(struct process_shares *counted, struct process_table *processes,
			 struct kernel_side *kernel)
{
	(void)counted, (void)processes, (void)kernel;
}

void process_shares_tell(struct process_shares *counted)
{
	(void)counted;
}

void process_shares_release(struct process_shares *counted)
{
	(void)counted;
}

#endif
