/* SPDX-License-Identifier: BSD-2-Clause */
/* How far the ledger's time on the CPU is off the scheduler's own, process by process. */
#ifndef AGENT_LEDGER_CHECK_H
#define AGENT_LEDGER_CHECK_H

#include "agent/ledger.h"
#include "base/cleanup.h"

struct ledger_check;
int ledger_check_new(struct ledger_check **ret_check);
void ledger_check_free(struct ledger_check *check);
DEFINE_OWNED(struct ledger_check, ledger_check)

/* The ledger begins with this process now.  Failures only mean that it is not compared. */
void ledger_check_begin(struct ledger_check *check, uint32_t tgid);
/* One line of a window that has just ended.  Processes that ran are read anew, and the line's over_ns and
 * checked_ns are set when there was a reading before. */
void ledger_check_line(struct ledger_check *check, struct ledger_line *line);

#endif
