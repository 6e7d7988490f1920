/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/calls_cost.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/calls_side.h"
#include "attach/probe_links.h"
#include "base/cleanup.h"
#include "base/own_code.h"
#include "drain/table.h"

#define ROUNDS 21U /* the median counts: others had an interrupt in them */
#define CALLS_A_ROUND 100U

/* As sites of <sys/sdt.h>: a NOP, which the kernel need not step. */
#if defined(__aarch64__)
#define ARGUMENT(number) {.kind = PP_ARG_REGISTER, .bytes = 8, .base = (number)}
#else
/* rdi, rsi and rdx by DWARF number */
#define ARGUMENT(number)                                                                           \
	{.kind = PP_ARG_REGISTER, .bytes = 8, .base = (number) == 0 ? 5 : (number) == 1 ? 4 : 1}
#endif
void calls_cost_entry(const char *file, const char *name, uint64_t code);
void calls_cost_return(const char *file, const char *name, uint64_t code);
__asm__(".pushsection .text, \"ax\"\n"
	".balign 16\n"
	".type calls_cost_entry, %function\n"
	"calls_cost_entry:\n"
	"	nop\n"
	"	ret\n"
	".size calls_cost_entry, . - calls_cost_entry\n"
	".balign 16\n"
	".type calls_cost_return, %function\n"
	"calls_cost_return:\n"
	"	nop\n"
	"	ret\n"
	".size calls_cost_return, . - calls_cost_return\n"
	".popsection\n");

/* ---- sites in this program's file ---- */

static int attach(const struct calls_side *side, int file, enum pp_call_event event,
		  struct probe_links *ret_links)
{
	const void *const code = event == PP_CALL_ENTRY ? (const void *)calls_cost_entry
							: (const void *)calls_cost_return;
	struct probe_link_site site = {};
	const struct probe_links_options options = {.program = calls_side_program(side, event),
						    .file = file,
						    .pid = getpid(),
						    .is_shared = probe_links_can_share(),
						    .site = &site,
						    .count = 1};
	const int err = own_code_offset(code, &site.offset);

	return err ? err : probe_links_attach(&options, ret_links);
}

static int use_site(struct calls_side *side, bool is_used)
{
	struct pp_call_site site = {.is_used = is_used, .is_ours = 1};
	int err;

	for (unsigned int i = 0; i < PP_CALL_ARGUMENTS; i++)
		site.arg[i] = (struct pp_probe_arg)ARGUMENT(i);
	err = calls_side_set_site(side, 0, PP_CALL_ENTRY, &site);
	return err ? err : calls_side_set_site(side, 0, PP_CALL_RETURN, &site);
}

/* ---- rounds ---- */

/* The line stands for the code. */
enum function { OUTER = 1, BODY, INNER, UPPER, LOWER, FUNCTIONS };

struct rounds {
	uint64_t id[FUNCTIONS]; /* of the nodes */
	uint64_t ns[ROUNDS][FUNCTIONS];
};

static void enter(enum function function)
{
	calls_cost_entry("", "", function);
}

static void leave(void)
{
	calls_cost_return("", "", 0);
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

static int compare(const void *a, const void *b)
{
	const uint64_t value_a = *(const uint64_t *)a, value_b = *(const uint64_t *)b;

	return (value_a > value_b) - (value_a < value_b);
}

static uint64_t median_a_call(const struct rounds *rounds, enum function function)
{
	uint64_t ns[ROUNDS];

	for (unsigned int i = 0; i < ROUNDS; i++)
		ns[i] = rounds->ns[i][function];
	qsort(ns, ROUNDS, sizeof(ns[0]), compare);
	return ns[ROUNDS / 2] / CALLS_A_ROUND;
}

static void forget(const struct calls_side *side, const struct rounds *rounds)
{
	const uint32_t tid = (uint32_t)syscall(SYS_gettid);

	for (unsigned int i = OUTER; i < FUNCTIONS; i++)
		(void)bpf_map_delete_elem(calls_side_nodes(side), &rounds->id[i]);
	(void)bpf_map_delete_elem(calls_side_threads(side), &tid);
}

static int measure(struct calls_side *side, struct calls_cost *ret_cost)
{
	OWNED_MEM struct rounds *rounds = calloc(1, sizeof(*rounds));
	struct calls_cost cost = {};
	__u64(*ns)[PP_CALL_EVENTS] = cost.taken_off.ns;
	int err = rounds ? use_site(side, true) : -ENOMEM;

	if (!err)
		err = run_rounds(side, rounds);
	if (rounds)
		forget(side, rounds);
	(void)use_site(side, false);
	if (err)
		return err;
	ns[PP_CALL_ENTRY][PP_CALL_RETURN] = median_a_call(rounds, INNER);
	/* From one entry to the next, and as long from one return to the next. */
	ns[PP_CALL_ENTRY][PP_CALL_ENTRY] = median_a_call(rounds, UPPER) / 2;
	ns[PP_CALL_RETURN][PP_CALL_RETURN] = ns[PP_CALL_ENTRY][PP_CALL_ENTRY];
	ns[PP_CALL_RETURN][PP_CALL_ENTRY] = median_a_call(rounds, BODY);
	cost.hit_ns = (ns[PP_CALL_ENTRY][PP_CALL_RETURN] + ns[PP_CALL_RETURN][PP_CALL_ENTRY]) / 2;
	*ret_cost = cost;
	return 0;
}

int calls_cost_measure(struct calls_side *side, struct calls_cost *ret_cost)
{
	struct probe_links entry = {}, returned = {};
	OWNED_FD int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int err = file < 0 ? -errno : attach(side, file, PP_CALL_RETURN, &returned);

	if (err)
		return err;
	err = attach(side, file, PP_CALL_ENTRY, &entry);
	if (!err)
		err = measure(side, ret_cost);
	probe_links_release(&entry);
	probe_links_release(&returned);
	return err;
}
