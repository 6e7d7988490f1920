/* SPDX-License-Identifier: BSD-2-Clause */
/* Has the last ten minutes kept (store/keep.h): of a process that the kernel has ended for want of
 * memory, when the window with its end is written, and of everything when somebody asks by a
 * signal.  A child does it, one at a time, and nobody waits for it. */
#ifndef AGENT_KEEPER_H
#define AGENT_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "store/writer.h"

struct process;
struct process_table;
struct keeper;

#define KEEPER_KEPT_MS 600000U /* how much is kept */

/* program: what the child is, "/proc/self/exe" for this one.  store: the path of the directory, for
 * messages; store_fd: borrowed.  Starts nothing yet.  Returns 0 or -ENOMEM. */
int keeper_new(const char *program, const char *store, int store_fd, struct keeper **ret_keeper);
/* Kills the child: what it was at is not kept, and leaves nothing that the next start does not
 * remove. */
void keeper_free(struct keeper *keeper);
DEFINE_OWNED(struct keeper, keeper)

/* Notes that the kernel ends a process; one that is noted already, or for which there is no room,
 * is not noted. */
void keeper_add_victim(struct keeper *keeper, struct process *process, uint64_t time_ns);
/* Notes that everything up to now is to be kept. */
void keeper_add_signal(struct keeper *keeper, uint64_t now_ns);
/* Returns whether a window that began at started_ns should be cut: a signal came after that. */
bool keeper_wants_cut(const struct keeper *keeper, uint64_t started_ns);

/* What a turn needs to know; all is borrowed. */
struct keeper_view {
	const struct process_table *processes;
	struct writer_end written;
	uint64_t store_max_bytes; /* 0: no bound */
	uint64_t now_ns;
};
/* Starts the child for what is due, and takes what the last one says; call it a few times a
 * second. */
void keeper_turn(struct keeper *keeper, const struct keeper_view *view);
/* Keeps what is left, when the run's last window is written, and waits for it with a bound.
 * Processes that have not ended yet count as ended. */
void keeper_finish(struct keeper *keeper, struct keeper_view *view);

struct keeper_stats {
	uint64_t kept;
	uint64_t failed;   /* PP_LOSS_KEEP_FAILED */
	uint64_t left_out; /* PP_LOSS_KEEP_SHARE */
};
/* keeper may be NULL. */
void keeper_get_stats(const struct keeper *keeper, struct keeper_stats *ret_stats);

#endif
