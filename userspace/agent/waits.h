/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the threads' slots at the end of a window: waits become counters, and all times a
 * ledger. */
#ifndef AGENT_WAITS_H
#define AGENT_WAITS_H

#include <stdint.h>

#include "ledger/ledger.h"

struct waits;

/* Both accept NULL: waits are not captured. */

/* Says what a sample on the CPU was busy with.  Returns 0 or -ENOMEM. */
int waits_add_sample(struct waits *waits, struct pp_process_id id, enum ledger_part part,
		     uint64_t weight);
/* Returns NULL for NULL. */
struct ledger *waits_ledger(struct waits *waits);

#endif
