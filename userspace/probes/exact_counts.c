/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/exact_counts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "probes/hit_costs.h"

/* ---- start and end ---- */

static int init_calls(struct exact_counts *counts)
{
	int err = call_paths_new(&counts->paths);

	if (!err)
		err = call_costs_measure(counts->side, &counts->call_costs);
	return err ? err : calls_side_set_costs(counts->side, &counts->call_costs.taken_off);
}

static int init_lines(struct exact_counts *counts)
{
	int err = line_rows_new(&counts->rows);

	if (!err)
		err = line_costs_measure(counts->side, &counts->line_costs);
	return err ? err : calls_side_set_line_costs(counts->side, &counts->line_costs);
}

int exact_counts_init(struct exact_counts *counts, struct calls_side *side, enum exact_what what)
{
	int err;

	*counts = (struct exact_counts){.what = what, .side = side};
	err = what == EXACT_CALLS ? init_calls(counts) : init_lines(counts);
	return err ? err : calls_side_clear_sums(side);
}

void exact_counts_release(struct exact_counts *counts)
{
	call_paths_free(counts->paths);
	line_rows_free(counts->rows);
	*counts = (struct exact_counts){};
}

/* ---- while it runs ---- */

static int cost_of_calls(struct exact_counts *counts, uint64_t *ret_ns)
{
	struct pp_call_sums sums;
	const int err = calls_side_get_sums(counts->side, &sums);

	if (!err)
		*ret_ns = sums.hits * counts->call_costs.hit_ns;
	return err;
}

static int cost_of_lines(struct exact_counts *counts, uint64_t *ret_ns)
{
	struct pp_line_sums sums;
	const int err = calls_side_get_line_sums(counts->side, &sums);

	if (!err)
		*ret_ns = sums.wanted * counts->line_costs.wanted_ns +
			  (sums.hits - sums.wanted) * counts->line_costs.other_ns;
	return err;
}

int exact_counts_cost(struct exact_counts *counts, uint64_t *ret_ns)
{
	return counts->what == EXACT_CALLS ? cost_of_calls(counts, ret_ns)
					   : cost_of_lines(counts, ret_ns);
}

static bool thread_is_alive(uint32_t tgid, uint32_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32, tgid, tid);
	return !access(path, F_OK);
}

static bool is_alive(void *context, const struct pp_call_thread *thread)
{
	(void)context;
	return thread_is_alive(thread->id.tgid, thread->tid);
}

static struct call_tables tables_until(const struct exact_counts *counts, uint64_t ended_ns)
{
	return (struct call_tables){.nodes = calls_side_nodes(counts->side),
				    .threads = calls_side_threads(counts->side),
				    .ended_ns = ended_ns,
				    .is_alive = is_alive};
}

/* A path of calls is a thread's, so those of ended ones can make room.  A line is a process's. */
void exact_counts_tidy(struct exact_counts *counts)
{
	struct call_tables tables;
	struct pp_call_sums sums;
	int removed;

	if (counts->what != EXACT_CALLS || calls_side_get_sums(counts->side, &sums) ||
	    sums.created - counts->removed < PP_CALL_NODES_MAX / 2 ||
	    sums.created - counts->tidied_at < PP_CALL_NODES_MAX / 16)
		return;
	counts->tidied_at = sums.created;
	tables = tables_until(counts, 0);
	removed = call_paths_tidy(counts->paths, &tables);
	if (removed > 0)
		counts->removed += (uint64_t)removed;
}

static int collect_lines(struct exact_counts *counts, uint64_t ended_ns,
			 struct dictionary *dictionary, struct counts *window)
{
	const struct line_tables tables = {.rows = calls_side_rows(counts->side),
					   .runs = calls_side_runs(counts->side),
					   .ended_ns = ended_ns,
					   .is_alive = thread_is_alive};

	(void)calls_side_get_line_sums(counts->side, &counts->line_sums);
	return line_rows_collect(counts->rows, &tables, dictionary, window);
}

int exact_counts_collect(struct exact_counts *counts, uint64_t ended_ns,
			 struct dictionary *dictionary, struct counts *window)
{
	struct call_tables tables;

	if (counts->what == EXACT_LINES)
		return collect_lines(counts, ended_ns, dictionary, window);
	tables = tables_until(counts, ended_ns);
	(void)calls_side_get_sums(counts->side, &counts->call_sums);
	return call_paths_collect(counts->paths, &tables, dictionary, window);
}

/* ---- what is told ---- */

static void describe_calls(const struct exact_counts *counts, char text[EXACT_COUNTS_TEXT_BYTES])
{
	const struct call_costs *costs = &counts->call_costs;
	const struct pp_call_sums *sums = &counts->call_sums;

	snprintf(text, EXACT_COUNTS_TEXT_BYTES,
		 "exact=calls hit_ns=%" PRIu64
		 " entry_ns=%llu return_ns=%llu hits=%llu taken_off_ns=%llu "
		 "unmatched=%llu unnoted=%llu paths=%llu",
		 costs->hit_ns, costs->taken_off.ns[PP_CALL_ENTRY][PP_CALL_RETURN],
		 costs->taken_off.ns[PP_CALL_RETURN][PP_CALL_ENTRY], sums->hits, sums->cost_ns,
		 sums->unmatched, sums->unnoted, sums->created);
}

static void describe_lines(const struct exact_counts *counts, char text[EXACT_COUNTS_TEXT_BYTES])
{
	const struct pp_line_costs *costs = &counts->line_costs;
	const struct pp_line_sums *sums = &counts->line_sums;

	snprintf(text, EXACT_COUNTS_TEXT_BYTES,
		 "exact=lines hit_ns=%llu other_hit_ns=%llu hits=%llu wanted=%llu "
		 "taken_off_ns=%llu unread=%llu unnoted=%llu too_deep=%llu",
		 costs->wanted_ns, costs->other_ns, sums->hits, sums->wanted, sums->cost_ns,
		 sums->unread, sums->unnoted, sums->too_deep);
}

void exact_counts_describe(const struct exact_counts *counts, char text[EXACT_COUNTS_TEXT_BYTES])
{
	if (counts->what == EXACT_CALLS)
		describe_calls(counts, text);
	else
		describe_lines(counts, text);
}
