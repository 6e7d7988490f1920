/* SPDX-License-Identifier: BSD-2-Clause */
#include "processes/process_shares.h"

#include <string.h>

#include <pyprofd/config.h>

#include "attach/kernel_side.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"

#define ASKED_A_CALL 32U /* 1.3 ms */

static void publish(struct kernel_side *kernel, const uint32_t *held, int64_t live)
{
	struct pp_user_share *shares = kernel_side_parts(kernel).user_shares;

	/* The kernel side adds to both; what comes in between these lines is in the next count. */
	for (uint32_t i = 0; i < PP_USER_SHARES; i++)
		__atomic_store_n(&shares[i].processes, held[i], __ATOMIC_RELAXED);
	kernel_side_config(kernel)->processes_left =
		(int64_t)kernel_side_parts(kernel).process_room - live;
}

void process_shares_count(struct kernel_side *kernel, struct process_table *processes)
{
	uint32_t held[PP_USER_SHARES] = {0};
	struct process *process = NULL;
	unsigned int asked = 0;
	int64_t live = 0;

	while ((process = process_table_next(processes, process))) {
		if (process->exit_ns)
			continue;
		live++;
		if (!process->is_user_known && asked++ >= ASKED_A_CALL)
			continue;
		/* Root has no share, and others may have its place. */
		if (process_user_kept(process))
			held[process->user % PP_USER_SHARES]++;
	}
	publish(kernel, held, live);
}

bool process_shares_take(const struct kernel_side *kernel, uint32_t tgid)
{
	volatile struct pp_config *config = kernel_side_config(kernel);
	const struct process process = {.id.tgid = tgid};
	const uint32_t user = process_user(&process);
	uint32_t *held = &kernel_side_parts(kernel).user_shares[user % PP_USER_SHARES].processes;

	if (user && (config->processes_left <= 0 || *held >= (uint64_t)config->processes_left))
		return false;
	if (user)
		__atomic_fetch_add(held, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub((int64_t *)&config->processes_left, 1, __ATOMIC_RELAXED);
	return true;
}
