/* SPDX-License-Identifier: BSD-2-Clause */
/* When the kernel side's tables of counters are swapped, and what they held. */
#ifndef AGENT_TABLES_H
#define AGENT_TABLES_H

#include <stdint.h>

struct agent;
struct counts;
struct wakes;

/* Sets the tables that the next window begins with; returns the number of those that are closed by it. */
uint32_t tables_swap_for_next(struct agent *agent);
void tables_settle(void); /* until nobody writes to closed ones any more */
/* Empties closed tables.  0; -ENOMEM; -errno. */
int tables_drain(struct agent *agent, uint32_t number, struct counts *counts, struct wakes *wakes);
/* Counters named between two looks at the tables that are filled meanwhile. */
#define NAMED_AT_ONCE 256U
/* Call it often: when an open table is half full, the window goes on with empty ones.  0; -ENOMEM; -errno. */
int tables_relieve(struct agent *agent);

#endif
