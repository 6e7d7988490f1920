/* SPDX-License-Identifier: BSD-2-Clause */
/* How much CPU time the scheduler gave to what is profiled, as an independent measure of what is in the
 * profiles.  Of the whole machine it is user, nice and system of /proc/stat: without interrupts, which samples
 * have where they hit a task, and without what a hypervisor took, so that samples can be more and are not
 * fewer.  Of chosen processes it is their lines of /proc/PID/stat; what one that has ended got since the last
 * reading is not in it.  Where there is a ledger waits.c takes its sums instead. */
#ifndef AGENT_COVERAGE_H
#define AGENT_COVERAGE_H

#include <stdint.h>

struct agent;
struct coverage;

int coverage_new(struct agent *agent, struct coverage **ret_coverage);
void coverage_free(struct coverage *coverage);
/* CPU time since the last call, or since coverage_new(). */
uint64_t coverage_take(struct coverage *coverage);

#endif
