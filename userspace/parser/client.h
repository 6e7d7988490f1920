/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's side of the parser child: reads other processes' memory through it, with a deadline.
 * A read that blocks (a page of a FUSE file, or of userfaultfd) costs the agent one deadline and
 * the child, which is killed and replaced; its process is then left alone for a time, and after
 * some of them its user is. One thread. */
#ifndef PARSER_CLIENT_H
#define PARSER_CLIENT_H

#include <stdint.h>

#include "base/cleanup.h"
#include "base/io.h"

/* Longer than a page that comes from a disk takes, shorter than the longest stall of the agent's
 * loop, 250 ms. */
#define PARSER_DEADLINE_NS 100000000ULL
/* For processes of a user, other than root, of whom one was late: the few that may follow come in
 * one turn of the loop. */
#define PARSER_SUSPECT_MS 10

/* After a file or directory of the host that was late. */
#define PARSER_HOST_AGAIN_NS 600000000000ULL
#define PARSER_HOST_LATE_MAX 2U /* so often in a row, then no more; see WORKER_STUCK_MAX */

struct parser_stats {
	uint64_t reads, late; /* late: did not answer before the deadline */
	uint64_t left_alone;  /* reads that were not tried: of who was late, or without a child */
	uint64_t starts;      /* of children */
	uint64_t cpu_ns;      /* of all children */
};

struct parser;
/* program: what children are, "/proc/self/exe" for the agent's own. Starts the first one, if that
 * can be done. Returns 0 or -ENOMEM. */
int parser_new(const char *program, struct parser **ret_parser);
/* Waits until the first child is ready, WORKER_START_NS at most: reads do not wait for it, and a
 * slow machine's first look at its processes would find nothing. */
void parser_await(struct parser *parser);
/* Ends the child. */
void parser_free(struct parser *parser);
DEFINE_OWNED(struct parser, parser)

/* Reads all pieces, or none, of the memory of task `tid`.
 * Returns 0; -EFAULT when part of them is not mapped; -ESRCH; -ETIMEDOUT when the process did not
 * answer in time or is left alone; -errno. */
int parser_read(void *parser, pid_t tid, const struct process_piece *piece, size_t count);
/* As process_read_maps() and process_open_mapped(): who takes the lock of another process' mappings
 * waits for whoever holds it, and that may be for a page that never comes. */
int parser_read_maps(void *parser, pid_t tid, size_t max_bytes, char **ret_text, size_t *ret_size);
int parser_open_mapped(void *parser, pid_t tid, uint64_t start, uint64_t end, int *ret_path_fd);
/* As process_read_text() and process_list_logs(): the memory of a process again, and a directory on
 * a disk that may be slow. */
int parser_read_text(void *parser, pid_t tid, enum process_text which, size_t max_bytes,
		     char **ret_text, size_t *ret_size);
int parser_list_logs(void *parser, enum process_log_directory which, char **ret_entries,
		     size_t *ret_size);
/* These, for process_access_by(). */
extern const struct process_access parser_access;
/* parser NULL: there are none, *ret_stats is untouched. */
void parser_get_stats(const struct parser *parser, struct parser_stats *ret_stats);

#endif
