/* SPDX-License-Identifier: BSD-2-Clause */
/* What is kept of a store for longer than its windows: STORE/kept/NAME/ holds one KIND.pb.gz a kind
 * and the text file `about`.  NAME is YYYY-MM-DDTHHMMSSZ-oom-PID-COMM or YYYY-MM-DDTHHMMSSZ-signal,
 * in UTC.  A directory is made, and removed, under the name .NAME.tmp, so that NAME is always
 * whole. */
#ifndef STORE_KEPT_H
#define STORE_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEPT_DIRECTORY "kept"
#define KEPT_ABOUT "about"
#define KEPT_ABOUT_MAX_BYTES (256U << 10)
#define KEPT_FILE_SUFFIX ".pb.gz"
#define KEPT_NAME_CHARS 64U
#define KEPT_TEMPORARY_CHARS (KEPT_NAME_CHARS + 8U)
#define KEPT_COMM_CHARS 16U
/* What all that is kept may take, and which part of a small --store-max. */
#define KEPT_MAX_BYTES (20ULL << 20)
#define KEPT_SHARE 10U
/* The most directories that are listed: each has taken room of KEPT_MAX_BYTES. */
#define KEPT_MAX 4096U

enum kept_reason {
	KEPT_OOM,    /* a process ended for want of memory */
	KEPT_SIGNAL, /* somebody asked for it: SIGUSR1 */
};

struct kept_name {
	uint64_t time_ms; /* of the end or of the signal, since 1970; in whole seconds */
	enum kept_reason reason;
	uint32_t pid;		    /* of KEPT_OOM; as the host sees it */
	char comm[KEPT_COMM_CHARS]; /* of KEPT_OOM; [A-Za-z0-9._-]{1,15} */
};
/* Copies a comm and writes '_' for each byte that a name cannot have; "_" for an empty one. */
void kept_comm(const char *comm, char ret_comm[KEPT_COMM_CHARS]);
void kept_name_format(const struct kept_name *kept, char name[KEPT_NAME_CHARS]);
/* Returns whether a name is one that kept_name_format() writes. */
bool kept_name_parse(const char *name, struct kept_name *ret_kept);
void kept_temporary_name(const char *name, char temporary[KEPT_TEMPORARY_CHARS]);

/* Returns what kept/ may take of a store with this bound; 0: it has none. */
uint64_t kept_max_bytes(uint64_t store_max_bytes);

struct kept_entry {
	char name[KEPT_NAME_CHARS];
	struct kept_name is;
	uint64_t bytes; /* of its files */
};
/* Oldest first.  Release with kept_list_release(). */
struct kept_list {
	struct kept_entry *entry; /* owned */
	size_t count, capacity;
	uint64_t bytes; /* of all */
};
/* Opens kept/ of a store.  Returns 0; -ENOENT: nothing was ever kept; -ENOTDIR, -ELOOP: something
 * else has the name; -errno. */
int kept_open(int store_fd, int *ret_fd);
/* Lists what kept/ holds.  Symbolic links are not followed, other names are ignored.  Returns 0 or
 * -errno. */
int kept_list(int kept_fd, struct kept_list *ret_list);
void kept_list_release(struct kept_list *list);
/* Returns the bytes of all that a store has kept; 0: nothing, or it cannot be read. */
uint64_t kept_count_bytes(int store_fd);
/* Removes one that is kept.  Returns 0, also when it is gone; -errno. */
int kept_remove(int kept_fd, const char *name);
/* Removes what somebody who was killed has left under temporary names. */
void kept_remove_temporary(int kept_fd);

#endif
