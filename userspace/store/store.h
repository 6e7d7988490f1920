/* SPDX-License-Identifier: BSD-2-Clause */
/* Stores profiles on disk: one .pb.gz per window and kind; the name is the index.
 * DIR/YYYY-MM-DD/HH/<start_ms>-<dur_ms>-<kind>.pb.gz  (UTC; files 0640, directories 0750) */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/cleanup.h"
#include "store/store_query.h"

struct store;
struct kept_request;
struct kept_result;

/* What is kept; 0: no bound. */
struct store_limits {
	uint64_t max_bytes;  /* of file sizes, those in kept/ included (store/kept.h) */
	uint64_t max_age_ms; /* from the end of a file to that of the newest one */
};

/* Creates DIR when it does not exist, and takes its lock file (flock on DIR/.lock) against a second
 * instance.
 * Returns 0; -EBUSY: another instance writes here; -EOWNERDEAD: as
 * lock_file_take(); -EACCES, -EROFS, -ENOTDIR, -errno. */
int store_open(const char *directory, const struct store_limits *limits, struct store **ret_store);
void store_free(struct store *store);
/* Holds from the next file on. */
void store_set_limits(struct store *store, const struct store_limits *limits);
DEFINE_OWNED(struct store, store)
/* Writes one profile (temporary name, fsync, rename, fsync of the directory), then deletes the
 * oldest files above max_bytes and, once a minute, those above max_age_ms (never the one just
 * written).  kind: [a-z0-9_]{1,32}, else -EINVAL.
 * An existing file is not replaced: the start in the name moves on by milliseconds.  ret_path may
 * be NULL.
 * Returns 0 or -errno (-ENOSPC, -EDQUOT: the caller keeps the bytes and tries again); no
 * half-written file stays. */
int store_put(struct store *store, const char *kind, uint64_t start_wall_ns, uint64_t duration_ns,
	      const void *bytes, size_t size, char **ret_path);
/* Links the windows of some minutes into kept/, as kept_link() does with the store's bound, and
 * removes what then has no room there. */
int store_keep(struct store *store, const struct kept_request *request,
	       struct kept_result *ret_result);
struct store_stats {
	uint64_t files, bytes, deleted_files;
};
/* Returns the directory's descriptor, which the store owns. */
int store_directory_fd(const struct store *store);
void store_get_stats(const struct store *store, struct store_stats *ret_stats);

/* ---- retention: counts files, and deletes the oldest and those that are too old ----
 * Only files and directories with names of the store are counted or deleted; symbolic links are
 * never followed. */

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
