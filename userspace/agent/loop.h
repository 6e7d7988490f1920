/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop that wakes the agent: signals, the tick, the rings, the side-band and clients, until windows end. */
#ifndef AGENT_LOOP_H
#define AGENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/command.h"
#include "base/clock.h"

#define LOOP_TICK_NS (250 * NS_PER_MS)

struct agent;

struct loop {
	int epoll, signals, tick;
	uint64_t ticked_ns, next_slow_ns, window_ends_ns, all_ends_ns; /* UINT64_MAX: never */
	int exit_status;
	struct command_setting command_setting;
	bool is_giving_up;
	struct command *command;
};

/* All that can wake the agent is open.  0 or -errno; loop_close() either way. */
int loop_open(struct loop *loop, const struct agent *agent);
void loop_close(struct loop *loop);
/* Waits once, and serves what has come.  timeout_ms: -1: for ever.  0 or -errno. */
int loop_serve(struct agent *agent, struct loop *loop, int timeout_ms);
/* Window after window, until loop->all_ends_ns or agent->is_ending.  0 or -errno. */
int loop_run_windows(struct agent *agent, struct loop *loop);

#endif
