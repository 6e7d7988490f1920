/* SPDX-License-Identifier: BSD-2-Clause */
/* The CPU time of another process. */
#ifndef BASE_PROCESS_CPU_H
#define BASE_PROCESS_CPU_H

#include <stdint.h>
#include <sys/types.h>

/* Returns the CPU time of all threads that a process has and had; 0: it has ended. */
uint64_t process_cpu_ns(pid_t pid);
/* Returns for how long its first thread was ready and had no CPU; 0: that is not known. */
uint64_t process_delay_ns(pid_t pid);

#endif
