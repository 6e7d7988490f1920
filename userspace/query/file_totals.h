/* SPDX-License-Identifier: BSD-2-Clause */
/* What the windows of a store have in all, remembered by file: files of a store never change, so
 * each is read once.  Nothing is read but in a call, and a call has a budget: who asks again gets
 * more.  Thread-safe; files are read without the lock. */
#ifndef QUERY_FILE_TOTALS_H
#define QUERY_FILE_TOTALS_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "store/store_query.h"

#define FILE_TOTALS_MEMORY_MAX (256U << 20) /* while a file is read */
/* What is remembered, of all kinds: 10 s windows of three kinds for ten days, in 6 MiB.  Files that
 * the last call did not ask for are forgotten for those that it does; the oldest ones beyond are
 * left out. */
#define FILE_TOTALS_WINDOWS_MAX 262144U
#define FILE_TOTALS_UNIT_BYTES 16U

struct file_totals_calls {
	/* A window and what it has, in the kind's unit; 0: somebody recorded, and there was
	 * nothing. */
	void (*known)(void *context, uint64_t start_ms, uint64_t duration_ms, int64_t value);
	/* A file whose windows have not been summed yet. */
	void (*pending)(void *context, uint64_t start_ms, uint64_t duration_ms);
	/* A file that will not be summed: there is no room to remember it. */
	void (*left_out)(void *context, uint64_t start_ms, uint64_t duration_ms);
	void *context;
};

/* How far a call came. */
struct file_totals_state {
	/* Of the kind, in the range.  Broken and unreadable ones are not tried again until they
	 * change. */
	uint64_t files, pending, broken, unreadable, left_out;
	char unit[FILE_TOTALS_UNIT_BYTES]; /* "": no file has been read */
};

struct file_totals;
/* windows_max: FILE_TOTALS_WINDOWS_MAX; less for tests.  Returns 0 or -ENOMEM. */
int file_totals_new(uint32_t windows_max, struct file_totals **ret_totals);
void file_totals_free(struct file_totals *totals);
DEFINE_OWNED(struct file_totals, file_totals)

/* Sums files that are not known yet, the newest first, until budget_ns have passed, and calls back
 * for all windows of a range.  kind: one that has files, so not wall.  Returns 0; -EINVAL: wall;
 * -ENOMEM; -errno of store_list(). */
int file_totals_read(struct file_totals *totals, const char *store, const char *kind,
		     const struct store_range *range, uint64_t budget_ns,
		     const struct file_totals_calls *calls, struct file_totals_state *ret_state);

#endif
