/* SPDX-License-Identifier: BSD-2-Clause */
/* How far the ledger's time on the CPU is off the scheduler's own, process by process. */
#ifndef LEDGER_LEDGER_CHECK_H
#define LEDGER_LEDGER_CHECK_H

#include "base/cleanup.h"
#include "ledger/ledger.h"

struct ledger_check;
int ledger_check_new(struct ledger_check **ret_check);
void ledger_check_free(struct ledger_check *check);
DEFINE_OWNED(struct ledger_check, ledger_check)

/* The ledger begins with this process now.  Failures only mean that it is not compared. */
void ledger_check_begin(struct ledger_check *check, uint32_t tgid);
/* At the end of a window: what the scheduler says now; for ledger_busy(), context is the check. */
void ledger_check_read(void *context, uint32_t tgid);
/* All lines of the window, then each of them once more: over_ns and checked_ns of the process's first line
 * are set when it was read now and before. */
void ledger_check_add(struct ledger_check *check, const struct ledger_line *line);
void ledger_check_compare(struct ledger_check *check, struct ledger_line *line);

/* On the CPU in a window: less is no news, the next reading has it. */
#define LEDGER_CHECK_WORTH_NS 20000000ULL

#endif
