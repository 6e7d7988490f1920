/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the time of each process went, by the ledgers.  No state. */
#ifndef SERVE_WAITS_H
#define SERVE_WAITS_H

#include <stdbool.h>

#include "base/json_writer.h"
#include "query/machine.h"

#define WAITS_PROCESSES_SHOWN 100U

/* Writes "processes":[{"pid","comm","ms":{"running",...},"running_ms":{"python",...}}],"more":N
 * into an object that is open, in milliseconds summed over threads; and, of all processes,
 * "others": the sum of those that are not shown or have no rows of their own. */
void waits_put(const struct machine *machine, bool is_of_all, struct json_writer *json);

#endif
