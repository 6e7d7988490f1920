/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop that wakes the agent: signals, the tick, the rings, the side-band and clients, until
 * windows end. */
#ifndef AGENT_LOOP_H
#define AGENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/command.h"
#include "agent/service.h"
#include "base/clock.h"

#define LOOP_TICK_NS (250 * NS_PER_MS)

struct agent;
struct reload;

/* A question to the child that parses files takes up to a quarter of a second.  A turn of the loop
 * in which the child has computed for long makes no step of the window's end or of a dump, which
 * may ask another one; but not for too many turns in a row. */
#define TURN_QUESTIONS_LONG_NS (40 * NS_PER_MS)
#define TURN_QUESTIONS_PUT_OFF_MAX 8U /* turns in a row */

/* All zeros: before the first turn. */
struct turn_questions {
	uint64_t began_ns; /* CPU time of the child when the turn began */
	uint32_t put_off;  /* turns in a row before this one that put a step off */
	bool has_put_off;  /* this turn has */
};
/* Begins a turn; used_ns, here and below: CPU time of the child. */
void turn_questions_begin(struct turn_questions *questions, uint64_t used_ns);
/* Returns whether this turn has time for a step that may ask about a file. */
bool turn_questions_allow(struct turn_questions *questions, uint64_t used_ns);

struct loop {
	int epoll, signals, tick;
	uint64_t ticked_ns, next_slow_ns, window_ends_ns, all_ends_ns; /* UINT64_MAX: never */
	uint64_t woken_ns;	 /* when the loop last woke; 0: not yet */
	uint64_t turns_since_ns; /* when `turns` began to count */
	uint32_t turns;
	bool has_served_processes, has_served_stacks; /* since then */
	bool has_more_identities; /* processes to look at, when their slice was over */
	bool has_more_stacks;	  /* in the ring or in the queue, when their slice was over */
	bool has_unused_files;	  /* perhaps: they are looked for, and closed */
	struct turn_questions questions;
	uint64_t pauses;	/* that were longer than a window */
	bool is_unsampled_told; /* that a CPU which came online is not sampled */
	int exit_status;
	struct command_setting command_setting;
	bool is_giving_up;
	struct command *command;
	struct service service;
	struct reload *reload; /* borrowed; NULL: there is no file to read again */
	struct server *server; /* borrowed; NULL: nothing is served over HTTP */
};

/* Watches all that can wake the agent.  Returns 0 or -errno; loop_close() either way. */
int loop_open(struct loop *loop, const struct agent *agent);
/* Watches the sampling events, once there are some.  Returns 0 or -errno. */
int loop_watch_sampling(const struct loop *loop, const struct agent *agent);
void loop_close(struct loop *loop);
/* Waits once, and serves what has come.  timeout_ms -1 waits for ever.  Returns 0 or -errno. */
int loop_serve(struct agent *agent, struct loop *loop, int timeout_ms);
/* Runs window after window, until loop->all_ends_ns or agent->is_ending.  Returns 0 or -errno. */
int loop_run_windows(struct agent *agent, struct loop *loop);

#endif
