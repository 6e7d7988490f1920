/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits whose stack is known by chance only become rows as all others are (docs/design/0012): the exact sums of
 * a place at which walks differed (PP_KIND_PLACE) are divided among the stacks by what was walked there
 * (PP_KIND_WALKED), and waits that stand for some that were left out (PP_KIND_WEIGHTED) share what the ledger has
 * beyond all exact sums of their process and reason. */
#ifndef DRAIN_WAIT_SHARES_H
#define DRAIN_WAIT_SHARES_H

#include <stdbool.h>

#include <pyprofd/wait.h>

#include "drain/counts.h"

struct wait_shares {
	/* All of a process' time of one kind in the window; false: not known. */
	bool (*exact_ns)(void *context, struct pp_process_id id, enum pp_ledger where,
			 uint64_t *ret_ns);
	void *context;
	bool leaves_short_out; /* --offcpu-min: exact_ns has waits that no row has */
};

/* All kinds of waits in `counts` are PP_KIND_WAIT then, with `effective`.  0 or -ENOMEM. */
int wait_shares_divide(const struct wait_shares *shares, struct counts *counts);

#endif
