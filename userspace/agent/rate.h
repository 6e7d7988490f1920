/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes the rate of samples while the agent runs: at the end of a window, because a profile has
 * one period. */
#ifndef AGENT_RATE_H
#define AGENT_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct cpu_events;
struct kernel_side;
struct options;

/* The tables were made for the rate at the start; they are emptied early up to this multiple. */
#define RATE_GROWTH_MAX 4U

struct rate {
	struct cpu_events *events;  /* borrowed; each CPU's is opened again */
	struct kernel_side *kernel; /* borrowed */
	struct options *options;    /* borrowed; hz is the rate in force */
	uint32_t start_hz, wanted_hz;
};

/* Remembers the rate that the options name, which is in force. */
void rate_init(struct rate *rate);
/* Whether the rate can become `hz` without a restart: each window must be a profile of its own. */
bool rate_can_be(const struct rate *rate, uint32_t hz);
/* Makes the rate wanted_hz.  Call it when a window has just been cut, before the next one's
 * profiles are opened.  When an event cannot be opened it keeps the rate, and tells once. */
void rate_follow(struct rate *rate);

#endif
