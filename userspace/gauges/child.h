/* SPDX-License-Identifier: BSD-2-Clause */
/* The child that alone loads NVIDIA's management library (NVML): a vendor's code never runs with
 * the agent's rights.  It reads the gauges of all GPUs once a second, and writes them into a pipe
 * (gauges/record.h). */
#ifndef GAUGES_CHILD_H
#define GAUGES_CHILD_H

#include <stdbool.h>

#define GAUGES_ARGV0 "pyprofd-gauges" /* the agent's own program under this name is the child */
#define GAUGES_PIPE_FD 3	      /* where it writes; 0 to 2 are /dev/null */

/* Returns whether this program was started to be that child. */
bool gauges_child_is_meant(const char *argv0);
/* Writes until the agent closes the pipe, and ends the process. */
_Noreturn void gauges_child_main(void);

#endif
