/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's tables of counters: each window begins with empty ones, and goes on with empty ones when one
 * is half full (include/pyprofd/table.h). */
#include "agent/tables.h"

#include <time.h>

#include "agent/agent.h"

/* The tables that the kernel side writes to now. */
static uint32_t open_number(const struct agent *agent)
{
	return kernel_side_config(agent->kernel)->table[agent->window & 1];
}

uint32_t tables_swap_for_next(struct agent *agent)
{
	const uint32_t number = open_number(agent);

	kernel_side_config(agent->kernel)->table[(agent->window + 1) & 1] = number + 1;
	return number;
}

void tables_settle(void)
{
	const struct timespec settle = {.tv_nsec = PP_SETTLE_NS};

	nanosleep(&settle, NULL);
}

int tables_drain(struct agent *agent, uint32_t number, struct counts *counts, struct wakes *wakes)
{
	static const enum pp_table counted[] = {PP_TABLE_SAMPLES, PP_TABLE_WAITS, PP_TABLE_COARSE};
	const struct kernel_side *kernel = agent->kernel;
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(counted) && !err; i++)
		err = counts_drain(kernel_side_table(kernel, counted[i], number), counts);
	if (!err)
		err = counts_drain_rest(kernel_side_rest(kernel), number, counts);
	if (!err && agent->options->wakers)
		err = wakes_drain(kernel_side_table(kernel, PP_TABLE_WAKES, number), wakes, counts);
	for (unsigned int table = 0; table < PP_TABLE_COUNT && !err; table++) {
		volatile struct pp_fill *fill =
			kernel_side_fill(kernel, (enum pp_table)table, number);

		fill->rows = 0;
		fill->is_told = 0;
	}
	return err;
}

static bool is_half_full(const struct agent *agent, uint32_t number)
{
	for (unsigned int table = 0; table < PP_TABLE_COUNT; table++) {
		const volatile struct pp_fill *fill =
			kernel_side_fill(agent->kernel, (enum pp_table)table, number);

		if (fill->half && fill->rows >= fill->half)
			return true;
	}
	return false;
}

int tables_relieve(struct agent *agent)
{
	const uint32_t number = open_number(agent);

	if (!is_half_full(agent, number))
		return 0;
	kernel_side_config(agent->kernel)->table[agent->window & 1] = number + 1;
	agent->summary.early_swaps++;
	tables_settle();
	return tables_drain(agent, number, &agent->finished, &agent->woken);
}
