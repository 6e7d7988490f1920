/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes the rate of samples while the agent runs: at the end of a window, because a profile has
 * one period. */
#ifndef AGENT_RATE_H
#define AGENT_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/governor.h"

struct cpu_events;
struct kernel_side;
struct options;

/* The tables were made for the rate at the start; they are emptied early up to this multiple. */
#define RATE_GROWTH_MAX 4U

struct rate {
	struct cpu_events *events;  /* borrowed; each CPU's is opened again */
	struct kernel_side *kernel; /* borrowed */
	struct options *options;    /* borrowed; hz is the rate in force */
	struct governor governor;
	uint32_t start_hz;  /* what the tables were made for */
	uint32_t asked_hz;  /* by whoever configures; governor.steps halve it */
	uint32_t failed_hz; /* which events cannot be opened at; 0: none */
	unsigned int steps; /* of the governor, which are in force */
	bool is_stale;	    /* the cap has changed, and with it the budgets of walks */
	bool is_floor_told; /* that no more steps help */
};

/* Remembers the rate and the cap that the options name, which are in force. */
void rate_init(struct rate *rate);
/* Takes other ones, from the next rate_follow() on. */
void rate_ask(struct rate *rate, uint32_t hz, uint32_t max_cpu_ppm);
/* Holds what was spent up to now (window_facts_cost_ns()) against the cap, and tells each step. */
void rate_govern(struct rate *rate, uint64_t spent_ns, uint64_t now_ns);
/* Whether the rate can become `hz` without a restart: each window must be a profile of its own. */
bool rate_can_be(const struct rate *rate, uint32_t hz);
/* Makes the rate what is asked for and allowed.  Call it when a window has just been cut, before
 * the next one's profiles are opened.  When an event cannot be opened it keeps the rate, and tells
 * once. */
void rate_follow(struct rate *rate);

#endif
