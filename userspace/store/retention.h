/* SPDX-License-Identifier: BSD-2-Clause */
/* What is in the store, and what has to go.  Only files and folders of the store's own names are
 * counted or deleted; symbolic links are never followed. */
#ifndef STORE_RETENTION_H
#define STORE_RETENTION_H

#include <stdint.h>
#include <time.h>

#include "store/store_names.h"

#define STORE_STALE_TEMPORARY_SECONDS 3600

struct retention_totals {
	uint64_t files, bytes;
};

/* Counts, and deletes temporary files last written before `stale`.  0 or -errno. */
int retention_count(int store_fd, time_t stale, struct retention_totals *ret_totals);
/* Deletes the oldest files, never `keep`, until at most max_bytes are left, and the folders that
 * are empty then.  totals: what there is now, kept up to date.  0 or -errno; *ret_deleted is always
 * set. */
int retention_trim(int store_fd, uint64_t max_bytes, const struct store_file *keep,
		   struct retention_totals *totals, uint64_t *ret_deleted);

#endif
