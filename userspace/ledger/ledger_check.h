/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares the ledger's CPU time with the scheduler's, process by process. */
#ifndef LEDGER_LEDGER_CHECK_H
#define LEDGER_LEDGER_CHECK_H

#include "base/cleanup.h"
#include "ledger/ledger.h"

struct ledger_check;
int ledger_check_new(struct ledger_check **ret_check);
void ledger_check_free(struct ledger_check *check);
DEFINE_OWNED(struct ledger_check, ledger_check)

/* Starts the comparison of a process that is new in the ledger.  On failure the process is not
 * compared. */
void ledger_check_begin(struct ledger_check *check, uint32_t tgid);
/* Reads the scheduler's time at the end of a window; for ledger_busy(), context is the check. */
void ledger_check_read(void *context, uint32_t tgid);
/* Call ledger_check_add() for all lines of the window, then ledger_check_compare() for each: it
 * sets over_ns and checked_ns of the process's first line when there are readings for both ends. */
void ledger_check_add(struct ledger_check *check, const struct ledger_line *line);
void ledger_check_compare(struct ledger_check *check, struct ledger_line *line);

/* A process with less CPU time than this in a window is not read; the next reading includes it. */
#define LEDGER_CHECK_WORTH_NS 20000000ULL

#endif
