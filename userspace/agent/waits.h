/* SPDX-License-Identifier: BSD-2-Clause */
/* Slots of threads -> the counters and the ledger of a window. */
#ifndef AGENT_WAITS_H
#define AGENT_WAITS_H

struct agent;
struct counts;
struct slots_window;

int waits_open(struct agent *agent); /* nothing, when the options ask for no waits */
/* The kernel side measures from now on. */
void waits_start(struct agent *agent);
/* What threads waited in a window that has ended, into its counters and the ledger. */
int waits_collect(struct agent *agent, const struct slots_window *window, struct counts *counts);
/* Waits whose stack is known by chance only, scaled to what is known exactly; all counters are in. */
int waits_divide(struct agent *agent, const struct slots_window *window, struct counts *counts);
/* The ledger of the window, to that of its profile and of the run. */
int waits_close(struct agent *agent);
/* The profile's ledger, into its comments; the next one begins. */
int waits_describe(struct agent *agent);
void waits_release(struct agent *agent);

#endif
