/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums of the ledgers of several windows: of one profile for its rows, of the run for the
 * summary. */
#ifndef LEDGER_LEDGER_SUMS_H
#define LEDGER_LEDGER_SUMS_H

#include <stdio.h>

#include <pyprofd/process.h>

#include "base/cleanup.h"
#include "ledger/ledger.h"

/* The most processes with a sum of their own, of which a user, root too, may have as many as are
 * still free; later ones share a sum with tgid 0, whose `processes` counts each of them once for
 * each window. */
#define LEDGER_SUMS_MAX 2048U

struct ledger_sum {
	struct ledger_line line;
	char comm[PP_COMM_BYTES + 1];
};

struct ledger_sums;
int ledger_sums_new(struct ledger_sums **ret_sums);
void ledger_sums_free(struct ledger_sums *sums);
DEFINE_OWNED(struct ledger_sums, ledger_sums)

/* Adds a line.  Returns 0 or -ENOMEM. */
int ledger_sums_add(struct ledger_sums *sums, const struct ledger_line *line, const char *comm);
void ledger_sums_clear(struct ledger_sums *sums);
/* Lists the sums, most CPU time first; the caller frees the list.  Returns 0 or -ENOMEM. */
int ledger_sums_list(const struct ledger_sums *sums, struct ledger_sum **ret_list,
		     size_t *ret_count);

/* Prints all processes together, and then the busiest ones; prints nothing when there was no
 * thread. */
void ledger_sums_print(const struct ledger_sums *sums, FILE *stream);

#endif
