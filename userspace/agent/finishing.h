/* SPDX-License-Identifier: BSD-2-Clause */
/* What the agent lends to finish/. */
#ifndef AGENT_FINISHING_H
#define AGENT_FINISHING_H

struct agent;

/* Fills agent->finisher.  The agent's tables are open. */
void finishing_prepare(struct agent *agent);

#endif
