/* SPDX-License-Identifier: BSD-2-Clause */
/* What this process costs, for its own metrics. */
#ifndef BASE_OWN_COST_H
#define BASE_OWN_COST_H

#include <stdint.h>

/* Returns the CPU time of all threads, in user space and in the kernel; children do not count. */
uint64_t own_cost_cpu_ns(void);
/* Returns the resident memory; 0: /proc does not say. */
uint64_t own_cost_rss_bytes(void);

#endif
