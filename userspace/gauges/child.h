/* SPDX-License-Identifier: BSD-2-Clause */
/* The child that alone loads NVIDIA's management library (NVML): a vendor's code never runs with
 * the agent's rights.  It reads the gauges of all GPUs once a second, and writes them into a pipe
 * (gauges/record.h). */
#ifndef GAUGES_CHILD_H
#define GAUGES_CHILD_H

#include "gauges/record.h"

/* Writes until the agent closes the pipe, and ends the process. */
_Noreturn void gauges_child_main(void);

#endif
