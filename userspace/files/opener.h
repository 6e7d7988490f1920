/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's side of the child that opens other people's files (files/opening.h).  The files stay
 * there: a file is known by the number of its descriptor in the child, for as long as the child is
 * the same one.  A child that is late costs one deadline, is replaced, and takes all its files with
 * it; the process or the file it was late at is left alone for a time, after some of them its user
 * is; and what one waits at that cannot be ended is left alone until it ends (struct
 * worker_blame).  One thread. */
#ifndef FILES_OPENER_H
#define FILES_OPENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "elf/debug_file.h"
#include "files/identity.h"

/* Longer than a path on a disk takes, shorter than the longest stall of the agent's loop. */
#define OPENER_DEADLINE_MS 100U
/* For files of a user, other than root, of whom one was late, and of everybody for a second after
 * one was; not for those of local file systems (files/vouch.h). */
#define OPENER_SUSPECT_MS 10U

struct mapping;
struct opened_file;
struct opening_seen;

struct opener_stats {
	uint64_t asked, late; /* late: did not answer before the deadline */
	uint64_t left_alone;  /* requests not made: of who was late, or without a child */
	uint64_t starts;      /* of children */
	uint64_t cpu_ns;      /* of all children */
	uint64_t stuck;	      /* children that did not end when they were killed */
};

struct opener;
/* As foreign_new(), which starts it, and foreign_await(). */
int opener_new(const char *program, struct opener **ret_opener);
bool opener_await(struct opener *opener);
void opener_free(struct opener *opener);
DEFINE_OWNED(struct opener, opener)
/* Returns the socket over which the child that parses gets files; borrowed. */
int opener_peer(const struct opener *opener);
/* Returns which child it is: descriptors are those of one child. */
uint64_t opener_child(const struct opener *opener);
void opener_get_stats(const struct opener *opener, struct opener_stats *ret_stats);

/* An open file, as the agent knows it. */
struct opener_file {
	uint64_t child; /* opener_child(), when it was opened */
	int fd;		/* in that child; -1: it is not open */
	/* For when the child is late at it. */
	uint32_t number; /* of the file */
	uid_t user;	 /* who has mapped it */
	uint64_t place;	 /* opener_place() */
};
/* Returns the number of a device; 0: none. */
uint64_t opener_place(const struct file_key *key);
/* Returns whether a file system is one that is mounted where pyprofd runs, and for which the kernel
 * answers.  A user who makes others wait mounts where pyprofd does not see it, or FUSE. */
bool opener_is_local(struct opener *opener, uint64_t place);

/* All return 0; -ETIMEDOUT: there is no child, it was late, or what is asked about is left alone;
 * -ESTALE: the file is not open in this child; else what opening it gave: */

/* Opens the file of a mapping of process `tgid`, whose user is to blame when it never answers; also
 * when it lies in a container or was deleted or replaced meanwhile.  Only regular files are ever
 * opened, and names are looked up inside the process's own root.
 * -ENOENT: the file no longer exists, or the mapping is anonymous; -ESTALE: another file has that
 * name now; -EINVAL: not a regular file; -ESRCH; -EACCES: also not to the process' user. */
int opener_open_mapped(struct opener *opener, uint32_t tgid, uid_t user,
		       const struct mapping *mapping, struct opened_file *ret_opened);

struct opener_perf_map {
	pid_t tid;	    /* of a task that shows the process' root */
	uint32_t inner_pid; /* its pid in its own namespace */
	uid_t user;	    /* under which the process acts now, as the host sees it */
	int64_t started_s;  /* wall clock */
};
/* Opens the perf map of a process, if it is not as it was seen.  Sets *ret_opened's refusal. */
int opener_open_perf_map(struct opener *opener, const struct opener_perf_map *map,
			 const struct opening_seen *seen, struct opened_file *ret_opened);
/* Opens a path of whoever started pyprofd; *ret_file is to be closed.  -EINVAL: not a regular
 * file. */
int opener_open_path(struct opener *opener, const char *path, struct opened_file *ret_opened,
		     struct opener_file *ret_file);

/* The debug files that may belong to a file. */
struct opener_debug {
	const struct debug_names *names;
	const char *path; /* of the file */
	uid_t owner;
};
/* Hands an open file (fd -1: none) and its debug files (NULL: none are wanted) to the child that
 * parses.  *ret_number tells them from others there, *ret_files which ones they are, as in struct
 * foreign_request. */
int opener_hand(struct opener *opener, const struct opener_file *file,
		const struct opener_debug *debug, uint32_t *ret_number, uint32_t *ret_files);
/* Gets a descriptor for the agent itself, the caller's; tid: who has mapped the file.  -EREMOTE: a
 * program or a network answers for its file system, and may never do so. */
int opener_give(struct opener *opener, const struct opener_file *file, pid_t tid, int *ret_fd);
/* Returns whether two files are equal in so many bytes; also false when that takes too long. */
bool opener_is_equal(struct opener *opener, const struct opener_file *a,
		     const struct opener_file *b, uint64_t bytes);
/* As file_text_check(), 0 also where there is no answer. */
int opener_check_text(struct opener *opener, const struct opener_file *file,
		      const struct file_identity *identity, const struct foreign_segment *segment,
		      size_t count);
/* Closes a file, which is not open any more; several of them by as few requests as there can be. */
void opener_close(struct opener *opener, struct opener_file *file);
void opener_close_many(struct opener *opener, struct opener_file *const *file, size_t count);

#endif
