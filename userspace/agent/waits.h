/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the threads' slots at the end of a window: waits become counters, and all times a
 * ledger. */
#ifndef AGENT_WAITS_H
#define AGENT_WAITS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "ledger/ledger.h"

struct counts;
struct profiles;
struct services;
struct slots_window;
struct waits;

/* All other functions accept NULL: waits are not captured. */
int waits_new(const struct services *services, struct waits **ret_waits);
void waits_free(struct waits *waits);
DEFINE_OWNED(struct waits, waits)

/* The kernel side measures from now on: what processes did before does not count. */
void waits_start(struct waits *waits);
/* Adds what threads waited in a window that has ended to its counters, and reads the ledger.
 * Returns 0; -ENOMEM; -errno. */
int waits_collect(struct waits *waits, const struct slots_window *window, struct counts *counts);
/* Scales waits whose stack was walked by chance to what is known exactly.  Call it when all
 * counters are there. Returns 0 or -ENOMEM. */
int waits_divide(struct waits *waits, const struct slots_window *window, struct counts *counts);
/* Says what a sample on the CPU was busy with.  Returns 0 or -ENOMEM. */
int waits_add_sample(struct waits *waits, struct pp_process_id id, enum ledger_part part,
		     uint64_t weight);
/* Adds the window's ledger to that of its profile and that of the run.  Returns 0 or -ENOMEM. */
int waits_close(struct waits *waits);
/* Adds the profile's ledger as rows of kind ledger, and begins the next one.  Returns 0 or
 * -ENOMEM. */
int waits_describe(struct waits *waits, struct profiles *profiles);
/* Prints the ledger of the run. */
void waits_print(const struct waits *waits, FILE *stream);

/* NULL for NULL. */
struct ledger *waits_ledger(struct waits *waits);

#endif
