/* SPDX-License-Identifier: BSD-2-Clause */
/* What a store keeps beyond the age of its windows: STORE/kept/NAME/ holds hard links to the files
 * of all windows of some minutes.  NAME is YYYY-MM-DDTHHMMSSZ-oom-PID-UID-COMM or
 * YYYY-MM-DDTHHMMSSZ-signal, in UTC.  A directory is made, and removed, under the name .NAME.tmp,
 * so that NAME is always whole. */
#ifndef STORE_KEPT_H
#define STORE_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEPT_DIRECTORY "kept"
#define KEPT_NAME_CHARS 64U
#define KEPT_COMM_CHARS 16U
/* What all that is kept may take, and which part of a small --store-max. */
#define KEPT_MAX_BYTES (100ULL << 20)
#define KEPT_SHARE 10U
/* One directory links files of at most this part of it, the newest ones. */
#define KEPT_ONE_SHARE 4U
/* A directory counts as this part of it at least: so many directories are kept at most. */
#define KEPT_MAX 64U
/* Directories of one program (comm) of one user; a ninth takes the place of the oldest. */
#define KEPT_SAME_MAX 8U
/* The longest window, which may have begun before the minutes that are kept (options/options.h). */
#define KEPT_WINDOW_MAX_MS 600000U

enum kept_reason {
	KEPT_OOM,    /* a process ended for want of memory */
	KEPT_SIGNAL, /* somebody asked for it: SIGUSR1 */
};

struct kept_name {
	uint64_t time_ms; /* of the end or of the signal, since 1970; in whole seconds */
	enum kept_reason reason;
	uint32_t pid;		    /* of KEPT_OOM; as the host sees it */
	uint32_t uid;		    /* of KEPT_OOM: the user who answers for the process */
	char comm[KEPT_COMM_CHARS]; /* of KEPT_OOM; [A-Za-z0-9._-]{1,15} */
};
/* Copies a comm and writes '_' for each byte that a name cannot have; "_" for an empty one. */
void kept_comm(const char *comm, char ret_comm[KEPT_COMM_CHARS]);
void kept_name_format(const struct kept_name *kept, char name[KEPT_NAME_CHARS]);
/* Returns whether a name is one that kept_name_format() writes. */
bool kept_name_parse(const char *name, struct kept_name *ret_kept);

struct kept_entry {
	char name[KEPT_NAME_CHARS];
	struct kept_name is;
	/* Its part of its files' bytes, which all of their links share: st_size / st_nlink. */
	uint64_t bytes;
	bool must_go; /* of kept_trim() */
};
/* Oldest first.  Release with kept_list_release(). */
struct kept_list {
	struct kept_entry *entry; /* owned */
	size_t count, capacity;
	uint64_t bytes; /* of all */
};
/* Lists what a store has kept.  Symbolic links are not followed, other names are ignored.  Returns
 * 0, also when nothing was ever kept; -ENOTDIR, -ELOOP: something else has the name kept/;
 * -errno. */
int kept_list(int store_fd, struct kept_list *ret_list);
void kept_list_release(struct kept_list *list);

/* Returns what kept/ may take of a store with this bound; 0: it has none. */
uint64_t kept_max_bytes(uint64_t store_max_bytes);
/* Removes directories that were left half made or half removed; then, of one program and user, the
 * oldest above KEPT_SAME_MAX; then, while all take more than max_bytes, the oldest of the user who
 * takes most, so that a user whose programs are killed again and again pushes out his own.  newest:
 * it stays; NULL: any may go.  *ret_bytes, always set, is what is left.  Returns 0 or -errno. */
int kept_trim(int store_fd, uint64_t max_bytes, const char *newest, uint64_t *ret_bytes);

struct kept_request {
	struct kept_name name;	    /* its time moves on by seconds when the name is taken */
	uint64_t from_ms, until_ms; /* windows that overlap [from, until), since 1970 */
	uint64_t max_bytes;	    /* of all that is kept */
};
struct kept_result {
	char name[KEPT_NAME_CHARS]; /* below kept/ */
	uint64_t bytes;
	uint64_t span_ms; /* from the first window's begin to the last one's end */
	uint32_t files;
};
/* Links the files of the windows, except those that merging has made.  Returns 0; -ENODATA: the
 * store has none; -EFBIG: not even the last one has room; -EEXIST: so much was kept in that minute;
 * -EPERM, -EOPNOTSUPP: also for a file system without hard links; -errno.  After an error nothing
 * is left of it. */
int kept_link(int store_fd, const struct kept_request *request, struct kept_result *ret_result);

#endif
