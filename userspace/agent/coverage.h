/* SPDX-License-Identifier: BSD-2-Clause */
/* How much CPU time the scheduler gave to what is profiled, as an independent measure of what the
 * profiles contain.
 *
 * For the whole machine this is user, nice and system of /proc/stat.  Those leave out interrupts
 * and what a hypervisor took; samples that hit a task in an interrupt include both, so there can be
 * more samples than this time but never fewer.  For chosen processes it is their lines of
 * /proc/PID/stat; what a process got between the last reading and its end is missing.  Where there
 * is a ledger, waits.c uses its sums instead. */
#ifndef AGENT_COVERAGE_H
#define AGENT_COVERAGE_H

#include <stdint.h>

struct coverage;
struct process_table;

/* processes: those of this table that the filters let through; borrowed.  NULL: the whole machine.
 * Returns 0 or -ENOMEM. */
int coverage_new(const struct process_table *processes, struct coverage **ret_coverage);
void coverage_free(struct coverage *coverage);
/* Returns the CPU time since the last call, or since coverage_new(); 0 for NULL. */
uint64_t coverage_take(struct coverage *coverage);

#endif
