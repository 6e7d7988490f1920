/* SPDX-License-Identifier: BSD-2-Clause */
/* The ledger as rows of kind ledger: of each process one as a whole, and one by state. */
#ifndef LEDGER_LEDGER_RECORDS_H
#define LEDGER_LEDGER_RECORDS_H

#include "ledger/ledger_sums.h"
#include "windows/record_sink.h"

/* Lists lines, or structures of `size` bytes that begin with one, in the order in which they get
 * rows: record_take_turns() by CPU time.  Returns 0 or -ENOMEM. */
int ledger_turns(const void *lines, size_t count, size_t size, struct record_turn **ret_turn);
/* Adds the rows of a process, or of the others where its tgid is 0.  comm "": its name is not
 * known.  Returns 0 or -ENOMEM. */
int ledger_record_put(const struct record_sink *sink, const struct ledger_line *line,
		      const char *comm);
/* Adds those of the processes of all sums, of which RECORD_PROCESSES_MAX have rows of their own.
 * Returns 0 or -ENOMEM. */
int ledger_records_put(struct record_sink *sink, const struct ledger_sums *sums);

#endif
