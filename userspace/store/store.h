/* SPDX-License-Identifier: BSD-2-Clause */
/* Stores profiles on disk: one .pb.gz per window and kind; the name is the index.
 * DIR/YYYY-MM-DD/HH/<start_ms>-<dur_ms>-<kind>.pb.gz  (UTC; files 0640, directories 0750) */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "store/kept.h"

/* What the calling thread had before. */
struct fs_user {
	uid_t uid;
	gid_t gid;
	bool is_changed;
};

struct store;

/* What is kept; 0: no bound. */
struct store_limits {
	uint64_t max_bytes;  /* of file sizes, those in kept/ included (store/kept.h) */
	uint64_t max_age_ms; /* from the end of a file to that of the newest one */
};

/* Creates DIR when it does not exist, and takes its lock file (flock on DIR/.lock) against a second
 * instance.
 * Returns 0; -EBUSY: another instance writes here; -EACCES, -EROFS, -ENOTDIR, -errno. */
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

/* Writes one file by name, whole or not at all, mode 0640.  owner: uid and gid to give it to, -1:
 * keep; without the right to give it away it stays ours.  Locks PATH.lock while file_output_lock()
 * holds `lock`.  "-", /dev/stdout and /dev/fd/N mean those descriptors; a symbolic link or a FIFO
 * is replaced, because others may have put it there; a device is -EINVAL. */
int file_output_write(const char *path, const void *bytes, size_t size, uid_t uid, gid_t gid);
/* Checks at the start that PATH can be written (its directory exists and is writable, there is
 * nothing but a regular file or a link) and takes a lock against a second instance.  Returns a lock
 * fd in *ret_fd (-1: PATH is a descriptor and needs no lock); -EBUSY; -EISDIR; -EINVAL: a device or
 * FIFO; -errno. */
int file_output_lock(const char *path, int *ret_fd);
/* Removes the lock file and closes the fd (-1: does nothing). */
void file_output_unlock(const char *path, int fd);

#endif
