/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads other processes' memory through the child for that (CHILD_MEMORY), with a deadline. A
 * read that blocks (a page of a FUSE file, or of userfaultfd) costs the agent one deadline and
 * the child, which is killed and replaced; its process is then left alone for a time, and after
 * some of them its user is. One thread. */
#ifndef PEEK_CLIENT_H
#define PEEK_CLIENT_H

#include <stdint.h>

#include "base/cleanup.h"
#include "base/io.h"

/* Longer than a page that comes from a disk takes, shorter than the longest stall of the agent's
 * loop, 250 ms. */
#define PEEK_DEADLINE_NS 100000000ULL
/* For processes of a user, other than root, of whom one was late: the few that may follow come in
 * one turn of the loop. */
#define PEEK_SUSPECT_MS 10

/* After a file or directory of the host that was late. */
#define PEEK_HOST_AGAIN_NS 600000000000ULL
#define PEEK_HOST_LATE_MAX 2U /* so often in a row, then no more; see WORKER_STUCK_MAX */

struct peek_stats {
	uint64_t reads, late; /* late: did not answer before the deadline */
	uint64_t left_alone;  /* reads that were not tried: of who was late, or without a child */
	uint64_t starts;      /* of children */
	uint64_t cpu_ns;      /* of all children */
	uint64_t stuck;	      /* children that did not end when they were killed */
};

struct peek;
/* program: what children are, "/proc/self/exe" for the agent's own. Starts the first one, if that
 * can be done. Returns 0 or -ENOMEM. */
int peek_new(const char *program, struct peek **ret_peek);
/* Waits until the first child is ready, WORKER_START_NS at most: reads do not wait for it, and a
 * slow machine's first look at its processes would find nothing. */
void peek_await(struct peek *peek);
/* Ends the child. */
void peek_free(struct peek *peek);
DEFINE_OWNED(struct peek, peek)

/* Reads all pieces, or none, of the memory of task `tid`.
 * Returns 0; -EFAULT when part of them is not mapped; -ESRCH; -ETIMEDOUT when the process did not
 * answer in time or is left alone; -errno. */
int peek_read(void *peek, pid_t tid, const struct process_piece *piece, size_t count);
/* As process_read_maps(): who takes the lock of another process' mappings waits for whoever holds
 * it, and that may be for a page that never comes. */
int peek_read_maps(void *peek, pid_t tid, size_t max_bytes, char **ret_text, size_t *ret_size);
/* As process_read_text() and process_list_logs(): the memory of a process again, and a directory on
 * a disk that may be slow. */
int peek_read_text(void *peek, pid_t tid, enum process_text which, size_t max_bytes,
		   char **ret_text, size_t *ret_size);
int peek_list_logs(void *peek, enum process_log_directory which, char **ret_entries,
		   size_t *ret_size);
/* These, for process_access_by(). */
extern const struct process_access peek_access;
/* peek NULL: there are none, *ret_stats is untouched. */
void peek_get_stats(const struct peek *peek, struct peek_stats *ret_stats);

#endif
