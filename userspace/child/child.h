/* SPDX-License-Identifier: BSD-2-Clause */
/* A child that is kept at work: how it is started, ended and reaped, and when another one may be
 * started, by the restart policy of its row. */
#ifndef CHILD_CHILD_H
#define CHILD_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "child/spawn.h"

struct child {
	enum child_kind kind;
	pid_t pid;	 /* 0: there is none */
	clockid_t clock; /* its CPU time */
	bool is_killed;
	uint64_t started_ns;	 /* CLOCK_MONOTONIC, as all times */
	uint64_t start_after_ns; /* another one may be started then */
	uint64_t rest_ns;	 /* the next pause */
};

/* There is no child yet. */
void child_init(struct child *child, enum child_kind kind);
/* Returns whether there is none, and one may be started now. */
bool child_is_due(const struct child *child, uint64_t now_ns);
/* Starts one where there is none.  Returns 0 or -errno, as child_spawn(). */
int child_start(struct child *child, const struct child_start *start, uint64_t now_ns);
/* Kills it; it ends when what it waits for lets it. */
void child_kill(struct child *child);
/* Returns whether there was one, which has ended and is reaped: its wait status. */
bool child_has_ended(struct child *child, int *ret_status);
/* Kills it, and does not wait for its end. */
void child_release(struct child *child);
/* Has the next one started after the row's pause: the last one could not be started, or has ended
 * or failed by itself. */
void child_rest(struct child *child, uint64_t now_ns);
/* ... after its longest pause: what keeps the child from working does not change soon. */
void child_rest_long(struct child *child, uint64_t now_ns);
/* Begins anew with the shortest pause, which is over. */
void child_forgive(struct child *child);
/* Returns whether the last one ran as long as the row calls steady. */
bool child_was_steady(const struct child *child, uint64_t now_ns);
/* The CPU time of the one there is. */
uint64_t child_cpu_ns(const struct child *child);

#endif
