/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs have had the GPU do (include/pyprofd/cuda.h).  The kernel side's totals are exact;
 * its counters say which stacks the calls came from, for some of them.  At a window's end what is
 * new in each row of totals is divided among the row's counters, so that what all stacks have adds
 * up to the totals.  Bounded by the kernel side's table.  One thread. */
#ifndef DRAIN_CUDA_TOTALS_H
#define DRAIN_CUDA_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/config.h>
#include <pyprofd/cuda.h>

#include "base/cleanup.h"
#include "base/user_shares.h"

struct counts;
struct cuda_totals;

int cuda_totals_new(struct cuda_totals **ret_totals); /* returns 0 or -ENOMEM */
void cuda_totals_free(struct cuda_totals *totals);
DEFINE_OWNED(struct cuda_totals, cuda_totals)

/* Notes what a row has up to now.  Returns 0 or -ENOMEM. */
int cuda_totals_note(struct cuda_totals *totals, uint64_t id, const struct pp_cuda_totals *now);
/* Turns the kernel side's counters of a window (PP_KIND_CUDA) into those of profiles: of each row
 * with something new the shares of its counters, as PP_KIND_CUDA, PP_KIND_CUDA_WAIT and
 * PP_KIND_CUDA_BYTES.  A row without counters has those of its last window with some, or one
 * without a stack (PP_STACK_OTHERS).  Returns 0 or -ENOMEM. */
int cuda_totals_divide(struct cuda_totals *totals, struct counts *counts);

/* Does both with the kernel side's table, and removes the rows of ended processes from it: they
 * stay known here until the next call.  Where there are many it removes those, too, that had
 * nothing new for some windows, and of which no call goes on: else a process whose kernels get ever
 * new handles would have no room left.  (A call that such a row gets in the microsecond of its
 * removal is lost.)  *ret_rows: how many rows the table has then.  Returns 0; -ENOMEM; -errno. */
#define CUDA_TOTALS_MANY (PP_CUDA_TOTALS_MAX / 4)
#define CUDA_TOTALS_IDLE_WINDOWS 6U
struct cuda_tables {
	int totals, removed;	      /* descriptors */
	bool (*is_timed)(size_t api); /* its calls have a time when they return */
	struct user_shares shares;
	bool (*is_alive)(void *context, struct pp_process_id id);
	void *context;
};
int cuda_totals_collect(struct cuda_totals *totals, const struct cuda_tables *tables,
			struct counts *counts, uint64_t *ret_rows);

/* What a row had in the window that was divided last. */
struct cuda_fresh {
	uint64_t id;
	struct pp_cuda_what what;
	uint64_t name; /* as struct pp_cuda_totals */
	uint64_t calls, bytes, host_ns, wait_ns;
	uint64_t captured; /* calls that were recorded, not run: none of `calls` */
	uint64_t nodes;	   /* kernels that `calls` ran, where these launch graphs */
	uint64_t unknown;  /* of `calls`, such that may have run more than that */
	uint64_t spread;   /* profile/cuda_sums.h: struct cuda_sums */
	uint32_t histogram[PP_CUDA_HISTOGRAM]; /* of host_ns */
};
/* Returns 0, or an error that ends it. */
typedef int cuda_on_fresh(void *context, const struct cuda_fresh *fresh);
/* Calls back for each row with something new in that window, until the next
 * cuda_totals_collect().  Returns 0, or an error of on_fresh. */
int cuda_totals_fresh(const struct cuda_totals *totals, cuda_on_fresh *on_fresh, void *context);

/* Returns the id of the text that a row's kernel is called by; 0: none. */
uint64_t cuda_totals_name(const struct cuda_totals *totals, uint64_t id);
/* Keeps a row that nothing was added to: memory that it has allocated is live. */
void cuda_totals_hold(struct cuda_totals *totals, uint64_t id);
/* Returns what a row's calls do, by the counters' detail; NULL: it is not known.  Valid until the
 * next cuda_totals_collect(). */
const struct pp_cuda_what *cuda_totals_what(const struct cuda_totals *totals, uint64_t id);

#endif
