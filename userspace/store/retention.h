/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts the files of a store and deletes the oldest and those that are too old.  Only files and
 * directories with names of the store are counted or deleted; symbolic links are never followed. */
#ifndef STORE_RETENTION_H
#define STORE_RETENTION_H

#include <stdint.h>
#include <time.h>

#include "store/store_names.h"

#define STORE_STALE_TEMPORARY_SECONDS 3600

struct retention_totals {
	uint64_t files, bytes;
};

/* Counts the files, and deletes temporary files last written before `stale`.  Returns 0 or
 * -errno. */
int retention_count(int store_fd, time_t stale, struct retention_totals *ret_totals);
/* Deletes files, never `keep`, until at most max_bytes are left, and the directories that become
 * empty: first those that begin after `keep` ends, as the clock was set back since they were
 * written, then the oldest.  totals: the current totals, which are kept up to date.  Returns 0 or
 * -errno; *ret_deleted is always set. */
int retention_trim(int store_fd, uint64_t max_bytes, const struct store_file *keep,
		   struct retention_totals *totals, uint64_t *ret_deleted);
/* Deletes files, never `keep`, that end at or before end_ms (since 1970), and the directories that
 * become empty.  Reads no further than the first hour that has none.  totals, ret_deleted: as
 * above.  Returns 0 or -errno. */
int retention_expire(int store_fd, uint64_t end_ms, const struct store_file *keep,
		     struct retention_totals *totals, uint64_t *ret_deleted);

#endif
