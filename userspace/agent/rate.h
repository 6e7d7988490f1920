/* SPDX-License-Identifier: BSD-2-Clause */
/* What sampling may take: --max-cpu.  Budgets of the walks on each CPU, and the rate of samples,
 * which changes at the end of a window, because a profile has one period. */
#ifndef AGENT_RATE_H
#define AGENT_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "options/options.h"

struct cpu_events;
struct kernel_side;

/* The tables were made for the rate at the start; they are emptied early up to this multiple. */
#define RATE_GROWTH_MAX 4U

/* The rate is halved so often at most. */
#define RATE_STEPS_MAX 6U
/* So many windows in a row must leave room before a step is taken back. */
#define RATE_CALM_WINDOWS 3U

/* Walks, in each PP_BUDGET_PERIOD_NS of a CPU. */
struct walk_budgets {
	uint32_t sample_ns, switch_ns, memory_ns;
	uint32_t memory_shift_min; /* struct pp_config */
};
/* cpus: those that are sampled, which share --max-cpu. */
struct walk_budgets walk_budgets_of(const struct options *options, uint32_t cpus);

struct rate {
	struct cpu_events *events;    /* borrowed; each CPU's is opened again */
	struct kernel_side *kernel;   /* borrowed */
	struct options *options;      /* borrowed; hz is the rate in force */
	uint32_t cap_ppm;	      /* of one core; 0: none */
	unsigned int wanted_steps;    /* how often the rate is to be halved */
	unsigned int calm;	      /* windows in a row that left room for twice the rate */
	uint64_t spent_ns, looked_ns; /* as of the last look; looked_ns 0: there was none */
	uint32_t start_hz;	      /* what the tables were made for */
	uint32_t asked_hz;	      /* by whoever configures; steps halve it */
	uint32_t failed_hz;	      /* which events cannot be opened at; 0: none */
	unsigned int steps;	      /* that are in force */
	bool is_stale;		      /* the cap has changed, and with it the budgets of walks */
	bool is_floor_told;	      /* that no more steps help */
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
