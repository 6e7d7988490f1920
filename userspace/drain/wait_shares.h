/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns waits whose stacks were sampled into rows like all others (docs/design/waits.md).  The
 * exact sum of a wait site with differing stacks (PP_KIND_WAIT_SITE) is divided among these stacks
 * in proportion to the waits walked there (PP_KIND_WALKED).  Waits with a weight
 * (PP_KIND_WEIGHTED) share the time in the ledger that remains after all exact sums of their
 * process and reason. */
#ifndef DRAIN_WAIT_SHARES_H
#define DRAIN_WAIT_SHARES_H

#include <stdbool.h>

#include <pyprofd/wait.h>

#include "drain/counts.h"

struct wait_shares {
	/* Returns a process's total time of one kind in the window; false: not known. */
	bool (*exact_ns)(void *context, struct pp_process_id id, enum pp_ledger where,
			 uint64_t *ret_ns);
	void *context;
	bool leaves_short_out; /* offcpu-min: exact_ns includes waits that have no row */
};

/* Turns all kinds of waits in `counts` into PP_KIND_WAIT, with `effective` set.  Returns 0 or
 * -ENOMEM. */
int wait_shares_divide(const struct wait_shares *shares, struct counts *counts);

#endif
