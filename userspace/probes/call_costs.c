/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/call_costs.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/calls_side.h"
#include "base/cleanup.h"
#include "base/median.h"
#include "drain/table.h"
#include "probes/exact_sites.h"
#include "probes/own_sites.h"

#define ROUNDS 21U /* the median counts: others had an interrupt in them */
#define CALLS_A_ROUND 100U

/* ---- rounds ---- */

/* The line stands for the code. */
enum function { OUTER = 1, BODY, INNER, UPPER, LOWER, FUNCTIONS };

struct rounds {
	uint64_t id[FUNCTIONS]; /* of the nodes */
	uint64_t ns[ROUNDS][FUNCTIONS];
};

static void enter(enum function function)
{
	own_site_entry("", "", function);
}

static void leave(void)
{
	own_site_return("", "", 0);
}

static void run_round(void)
{
	enter(BODY);
	for (unsigned int i = 0; i < CALLS_A_ROUND; i++) {
		enter(INNER);
		leave();
	}
	leave();
	for (unsigned int i = 0; i < CALLS_A_ROUND; i++) {
		enter(UPPER);
		enter(LOWER);
		leave();
		leave();
	}
}

static int on_node(void *context, const void *key, const void *value)
{
	const struct pp_call_node *node = value;
	struct rounds *rounds = context;

	if (node->code < FUNCTIONS)
		rounds->id[node->code] = *(const uint64_t *)key;
	return 0;
}

static int find_nodes(const struct calls_side *side, struct rounds *rounds)
{
	int err = table_read(calls_side_nodes(side), sizeof(uint64_t), sizeof(struct pp_call_node),
			     on_node, rounds);

	for (unsigned int i = OUTER; !err && i < FUNCTIONS; i++)
		err = rounds->id[i] ? 0 : -ENODATA;
	return err;
}

static int read_self(const struct calls_side *side, const struct rounds *rounds,
		     uint64_t ret_ns[FUNCTIONS])
{
	struct pp_call_node node;
	int err = 0;

	for (unsigned int i = OUTER; !err && i < FUNCTIONS; i++) {
		err = calls_side_get_node(side, rounds->id[i], &node);
		if (!err)
			ret_ns[i] = node.self_ns;
	}
	return err;
}

static int run_rounds(const struct calls_side *side, struct rounds *rounds)
{
	uint64_t before[FUNCTIONS] = {0}, after[FUNCTIONS] = {0};
	int err;

	enter(OUTER);
	run_round();
	err = find_nodes(side, rounds);
	for (unsigned int round = 0; !err && round < ROUNDS; round++) {
		/* The time of the reading is the outer function's. */
		err = read_self(side, rounds, before);
		run_round();
		if (!err)
			err = read_self(side, rounds, after);
		for (unsigned int i = OUTER; i < FUNCTIONS; i++)
			rounds->ns[round][i] = after[i] - before[i];
	}
	leave();
	return err;
}

static uint64_t median_a_call(const struct rounds *rounds, enum function function)
{
	uint64_t ns[ROUNDS];

	for (unsigned int i = 0; i < ROUNDS; i++)
		ns[i] = rounds->ns[i][function];
	return median_take(ns, ROUNDS) / CALLS_A_ROUND;
}

static void forget(const struct calls_side *side, const struct rounds *rounds)
{
	const uint32_t tid = (uint32_t)syscall(SYS_gettid);

	for (unsigned int i = OUTER; i < FUNCTIONS; i++)
		(void)bpf_map_delete_elem(calls_side_nodes(side), &rounds->id[i]);
	(void)bpf_map_delete_elem(calls_side_threads(side), &tid);
}

static int measure(struct calls_side *side, struct call_costs *ret_cost)
{
	OWNED_MEM struct rounds *rounds = calloc(1, sizeof(*rounds));
	struct call_costs cost = {};
	__u64(*ns)[PP_CALL_MOVES] = cost.taken_off.ns;
	int err = rounds ? own_sites_use(side, PP_CALL_MOVES, true) : -ENOMEM;

	if (!err)
		err = run_rounds(side, rounds);
	if (rounds)
		forget(side, rounds);
	(void)own_sites_use(side, PP_CALL_MOVES, false);
	if (err)
		return err;
	ns[PP_CALL_ENTRY][PP_CALL_RETURN] = median_a_call(rounds, INNER);
	/* The outer loop has one entry after another, then one return after another: each pair of
	 * events takes half of it. */
	ns[PP_CALL_ENTRY][PP_CALL_ENTRY] = median_a_call(rounds, UPPER) / 2;
	ns[PP_CALL_RETURN][PP_CALL_RETURN] = ns[PP_CALL_ENTRY][PP_CALL_ENTRY];
	ns[PP_CALL_RETURN][PP_CALL_ENTRY] = median_a_call(rounds, BODY);
	cost.hit_ns = (ns[PP_CALL_ENTRY][PP_CALL_RETURN] + ns[PP_CALL_RETURN][PP_CALL_ENTRY]) / 2;
	*ret_cost = cost;
	return 0;
}

int call_costs_measure(struct calls_side *side, struct call_costs *ret_cost)
{
	struct exact_links links = {};
	int err = own_sites_attach(side, PP_CALL_MOVES, &links);

	if (!err)
		err = measure(side, ret_cost);
	exact_links_release(&links);
	return err;
}
