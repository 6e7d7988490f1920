/* SPDX-License-Identifier: BSD-2-Clause */
#include "processes/process_shares.h"

#include <stdlib.h>

#include <pyprofd/config.h>

#include "attach/kernel_side.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"

#define ASKED_A_CALL 32U /* 1.3 ms */

/* A process has ended. */
static void take_out(void *context, struct process *process)
{
	struct process_shares *shares = context;

	if (process->share)
		shares->held[process->share - 1]--;
	process->share = 0;
}

void process_shares_init(struct process_shares *shares, struct process_table *processes,
			 struct kernel_side *kernel)
{
	*shares = (struct process_shares){.processes = processes, .kernel = kernel};
	process_table_on_end(processes, take_out, shares);
}

void process_shares_release(struct process_shares *shares)
{
	process_table_on_end(shares->processes, NULL, NULL);
	free(shares->unasked.id);
	*shares = (struct process_shares){0};
}

static void count(struct process_shares *shares, struct process *process)
{
	const struct user_shares rows = kernel_side_parts(shares->kernel).user_shares;

	if (!process_user_kept(process)) /* root has no share */
		return;
	process->share = (uint32_t)(user_shares_claim(&rows, process->user) - rows.row) + 1;
	shares->held[process->share - 1]++;
}

void process_shares_add(struct process_shares *shares, struct process *process)
{
	if (process->share || process->exit_ns)
		return;
	if (process->is_user_known || process_list_add(&shares->unasked, process->id))
		count(shares, process);
}

void process_shares_tell(struct process_shares *shares)
{
	const struct kernel_side_parts parts = kernel_side_parts(shares->kernel);
	struct process_list *unasked = &shares->unasked;

	for (unsigned int asked = 0; asked < ASKED_A_CALL && unasked->count; asked++) {
		struct process *process =
			process_table_find(shares->processes, unasked->id[--unasked->count]);

		if (process && !process->share && !process->exit_ns)
			count(shares, process);
	}
	/* The kernel side adds to both; what comes in between these lines is in the next count. */
	for (uint32_t i = 0; i < PP_USER_SHARE_ROWS; i++)
		__atomic_store_n(&parts.user_shares.row[i].processes, shares->held[i],
				 __ATOMIC_RELAXED);
	user_shares_expire(&parts.user_shares);
	kernel_side_config(shares->kernel)->processes_left =
		(int64_t)parts.process_room - (int64_t)process_table_live_count(shares->processes);
}

bool process_shares_take(const struct kernel_side *kernel, uint32_t tgid)
{
	volatile struct pp_config *config = kernel_side_config(kernel);
	const struct process process = {.id.tgid = tgid};
	const uint32_t user = process_user(&process);
	const struct user_shares shares = kernel_side_parts(kernel).user_shares;
	uint32_t *held = &user_shares_claim(&shares, user)->processes;

	if (user && (config->processes_left <= 0 || *held >= (uint64_t)config->processes_left))
		return false;
	if (user)
		__atomic_fetch_add(held, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub((int64_t *)&config->processes_left, 1, __ATOMIC_RELAXED);
	return true;
}
