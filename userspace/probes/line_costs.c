/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/line_costs.h"

#include <errno.h>
#include <stdlib.h>

#include "attach/calls_side.h"
#include "base/clock.h"
#include "base/median.h"
#include "drain/table.h"
#include "probes/exact_sites.h"
#include "probes/own_sites.h"

#define ROUNDS 21U /* the median counts: others had an interrupt in them */
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
static int forget(const struct calls_side *side)
{
	struct ids ids = {};
	int err = table_read(calls_side_rows(side), sizeof(uint64_t), sizeof(struct pp_line_row),
			     on_row, &ids);

	for (size_t i = 0; !err && i < ids.count; i++)
		err = table_remove(calls_side_rows(side), &ids.id[i]);
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
		err = forget(side);
	if (!err)
		*ret_costs = costs;
	return err;
}
