/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/hit_costs.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <pyprofd/calls.h>

#include "attach/calls_side.h"
#include "attach/probe_links.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/task.h"
#include "drain/table.h"
#include "probes/exact_sites.h"

#define ROUNDS 21U /* the median counts: others had an interrupt in them */

/* ---- functions of our own with sites as an interpreter has them ---- */

typedef void own_site(const char *file, const char *name, uint64_t line);
own_site own_site_entry, own_site_return, own_site_line;

/* As sites of <sys/sdt.h>: a NOP, which the kernel need not step. */
#if defined(__aarch64__)
#define ARGUMENT(number) {.kind = PP_ARG_REGISTER, .bytes = 8, .base = (number)}
#else
/* rdi, rsi and rdx by DWARF number */
#define ARGUMENT(number)                                                                           \
	{.kind = PP_ARG_REGISTER, .bytes = 8, .base = (number) == 0 ? 5 : (number) == 1 ? 4 : 1}
#endif
#define SITE(name) OWN_CODE(name, "nop\nret\n")
__asm__(".pushsection .text, \"ax\"\n" SITE(own_site_entry) SITE(own_site_return)
		SITE(own_site_line) ".popsection\n");

static own_site *const functions[PP_CALL_EVENTS] = {[PP_CALL_ENTRY] = own_site_entry,
						    [PP_CALL_RETURN] = own_site_return,
						    [PP_CALL_LINE] = own_site_line};

static int attach(const struct calls_side *side, int file, enum pp_call_event event,
		  struct probe_links *ret_links)
{
	struct probe_link_site site = {};
	const struct probe_links_options options = {.program = side->program[event],
						    .file = file,
						    /* One look goes for all. */
						    .locks = event ? -1 : side->locks,
						    .pid = getpid(),
						    .is_shared = probe_links_can_share(),
						    .site = &site,
						    .count = 1};
	const int err = own_code_offset((const void *)functions[event], &site.offset);

	return err ? err : probe_links_attach(&options, ret_links);
}

/* Attaches the programs of the first `events` of enum pp_call_event to them, in this process. */
static int own_sites_attach(const struct calls_side *side, unsigned int events,
			    struct exact_links *ret_links)
{
	OWNED_FD int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct exact_links links = {};
	int err = file < 0 ? -errno : 0;

	for (unsigned int event = 0; !err && event < events; event++)
		err = attach(side, file, (enum pp_call_event)event, &links.event[event]);
	if (err) {
		exact_links_release(&links);
		return err;
	}
	*ret_links = links;
	return 0;
}

/* From here on, or no longer, their hits do something: they are of site 0. */
static int own_sites_use(struct calls_side *side, unsigned int events, bool is_used)
{
	struct pp_call_site site = {.is_used = is_used, .is_ours = 1};
	int err = 0;

	for (unsigned int i = 0; i < PP_CALL_ARGUMENTS; i++)
		site.arg[i] = (struct pp_probe_arg)ARGUMENT(i);
	for (unsigned int event = 0; !err && event < events; event++)
		err = calls_side_set_site(side, 0, (enum pp_call_event)event, &site);
	return err;
}

/* ---- lines ---- */

#define HITS_A_ROUND 200U
#define IDS_MAX 4U

/* Of functions that are told apart by their names; that of line 0 does not count. */
enum { LINE_OTHER, LINE_WANTED };
static const char *const names[] = {[LINE_OTHER] = "other", [LINE_WANTED] = "wanted"};

static uint64_t median_ns(unsigned int line)
{
	uint64_t ns[ROUNDS];

	own_site_line("", names[line], line); /* what is done once for a line */
	for (unsigned int round = 0; round < ROUNDS; round++) {
		const uint64_t before_ns = mono_ns();

		for (unsigned int i = 0; i < HITS_A_ROUND; i++)
			own_site_line("", names[line], line);
		ns[round] = mono_ns() - before_ns;
	}
	return median_take(ns, ROUNDS) / HITS_A_ROUND;
}

struct ids {
	uint64_t id[IDS_MAX];
	size_t count;
};

static int on_row(void *context, const void *key, const void *value)
{
	struct ids *ids = context;

	(void)value;
	if (ids->count < IDS_MAX)
		ids->id[ids->count++] = *(const uint64_t *)key;
	return 0;
}

/* So far all rows are ours. */
static int forget_rows(const struct calls_side *side)
{
	struct ids ids = {};
	int err =
		table_read(side->rows, sizeof(uint64_t), sizeof(struct pp_line_row), on_row, &ids);

	for (size_t i = 0; !err && i < ids.count; i++)
		err = table_remove(side->rows, &ids.id[i]);
	return err;
}

int line_costs_measure(struct calls_side *side, struct pp_line_costs *ret_costs)
{
	const uint64_t other_ns = median_ns(LINE_OTHER), wanted_ns = median_ns(LINE_WANTED);
	struct pp_line_costs costs = {};
	struct exact_links links = {};
	int err = own_sites_attach(side, PP_CALL_EVENTS, &links);

	if (!err)
		err = own_sites_use(side, PP_CALL_EVENTS, true);
	if (!err)
		costs = (struct pp_line_costs){.other_ns = median_ns(LINE_OTHER) - other_ns,
					       .wanted_ns = median_ns(LINE_WANTED) - wanted_ns};
	(void)own_sites_use(side, PP_CALL_EVENTS, false);
	exact_links_release(&links);
	if (!err)
		err = forget_rows(side);
	if (!err)
		*ret_costs = costs;
	return err;
}

/* ---- calls ---- */

#define CALLS_A_ROUND 100U

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
	int err = table_read(side->nodes, sizeof(uint64_t), sizeof(struct pp_call_node), on_node,
			     rounds);

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
		err = bpf_map_lookup_elem(side->nodes, &rounds->id[i], &node);
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
		(void)bpf_map_delete_elem(side->nodes, &rounds->id[i]);
	(void)bpf_map_delete_elem(side->threads, &tid);
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
