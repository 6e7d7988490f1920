/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop that wakes the agent: signals, the tick, the rings, the side-band and clients, until
 * windows end. */
#ifndef AGENT_LOOP_H
#define AGENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/command.h"
#include "agent/service.h"
#include "agent/turn_questions.h"
#include "base/clock.h"

#define LOOP_TICK_NS (250 * NS_PER_MS)

struct agent;
struct reload;

struct loop {
	int epoll, signals, tick;
	uint64_t ticked_ns, next_slow_ns, window_ends_ns, all_ends_ns; /* UINT64_MAX: never */
	uint64_t woken_ns; /* when the loop last woke; 0: not yet */
	uint64_t turns_since_ns; /* when `turns` began to count */
	uint32_t turns;
	bool has_served_processes, has_served_stacks; /* since then */
	bool has_more_identities; /* processes to look at, when their slice was over */
	bool has_more_stacks; /* in the ring or in the queue, when their slice was over */
	bool has_unused_files; /* perhaps: they are looked for, and closed */
	struct turn_questions questions;
	uint64_t pauses; /* that were longer than a window */
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
void loop_close(struct loop *loop);
/* Waits once, and serves what has come.  timeout_ms -1 waits for ever.  Returns 0 or -errno. */
int loop_serve(struct agent *agent, struct loop *loop, int timeout_ms);
/* Runs window after window, until loop->all_ends_ns or agent->is_ending.  Returns 0 or -errno. */
int loop_run_windows(struct agent *agent, struct loop *loop);

#endif
