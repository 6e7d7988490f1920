/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the time of each process went, by the ledgers.  No state. */
#ifndef SERVE_WAITS_H
#define SERVE_WAITS_H

#include <stdint.h>

#include "base/json_writer.h"
#include "query/machine.h"

#define WAITS_PROCESSES_SHOWN 100U

/* Writes "processes":[{"pid","comm","ms":{"running",...},"running_ms":{"python",...}}],"more":N
 * into an object that is open, in milliseconds summed over threads; and, of all processes (pid 0),
 * "others": the sum of those that are not shown or have no ledger of their own.  machine: sorted
 * by machine_sort(). */
void waits_put(const struct machine *machine, uint32_t pid, struct json_writer *json);

#endif
