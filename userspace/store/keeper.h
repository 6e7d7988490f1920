/* SPDX-License-Identifier: BSD-2-Clause */
/* Notes when the last ten minutes are to be kept (store/kept.h): those of a process that the kernel
 * ends for want of memory, and those before a signal.  The thread that writes windows keeps them,
 * when the window with the end is written. */
#ifndef STORE_KEEPER_H
#define STORE_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct store;
struct writer_window;
struct keeper;

#define KEEPER_KEPT_MS 600000U /* how much is kept */

/* store: the path of the directory, for messages.  Returns 0 or -ENOMEM. */
int keeper_new(const char *store, struct keeper **ret_keeper);
void keeper_free(struct keeper *keeper);
DEFINE_OWNED(struct keeper, keeper)

/* ---- the loop's side ---- */

/* A process that the kernel ends. */
struct keeper_victim {
	uint32_t pid, generation;   /* which process had the pid */
	uint32_t uid;		    /* of the user who answers for it */
	const char *comm;	    /* borrowed */
	uint64_t begun_ns, time_ns; /* when its program started; when the kernel chose it */
};
/* Notes a process; one that is noted already, or for which there is no room, is not noted. */
void keeper_add_victim(struct keeper *keeper, const struct keeper_victim *victim);
/* Notes that everything up to now is to be kept. */
void keeper_add_signal(struct keeper *keeper, uint64_t now_ns);
/* Returns whether a window that began at started_ns should be cut: a signal came after that.
 * keeper may be NULL here and below. */
bool keeper_wants_cut(struct keeper *keeper, uint64_t started_ns);
/* Returns when a process ended; 0: it has not; KEEPER_GONE: nothing is known of it any more. */
typedef uint64_t (*keeper_end)(const void *context, uint32_t pid, uint32_t generation);
#define KEEPER_GONE UINT64_MAX
/* Notes which processes have ended; call it a few times a second. */
void keeper_find_ends(struct keeper *keeper, uint64_t now_ns, keeper_end end, const void *context);
/* Counts what was not kept when the run's last window is written. */
void keeper_finish(struct keeper *keeper);

struct keeper_stats {
	uint64_t kept;
	uint64_t failed;   /* PP_LOSS_KEEP_FAILED */
	uint64_t left_out; /* PP_LOSS_KEEP_SHARE */
};
void keeper_get_stats(struct keeper *keeper, struct keeper_stats *ret_stats);

/* ---- the writer's side ---- */

/* Keeps what is due, now that a window is in the store.  With the last one of the run everything
 * is: a process that has not ended yet counts as ended. */
void keeper_keep(struct keeper *keeper, struct store *store, const struct writer_window *window);

#endif
