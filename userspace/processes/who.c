/* SPDX-License-Identifier: BSD-2-Clause */
#include "processes/who.h"

#include <stdio.h>
#include <string.h>

#include <pyprofd/sample.h>

#include "discover/proc_scan.h"
#include "discover/process_table.h"

void who_read_details(struct process_table *processes, struct process *process)
{
	if (!process->details_read && !process->exit_ns)
		(void)process_read_details(processes, process);
}

void who_find(struct process_table *processes, struct pp_process_id id, uint32_t tid,
	      struct who *ret_who)
{
	struct process *process = process_table_find_or_tgid(processes, id);

	*ret_who = (struct who){.process = process};
	if (!process) {
		(void)thread_comm_read(id.tgid, tid, ret_who->comm);
		return;
	}
	who_read_details(processes, process);
	memcpy(ret_who->comm, process->comm, PP_COMM_BYTES);
}

void who_follow(struct who *who, const struct pp_count_key *key)
{
	struct process *process = who->process;

	if (process && key->euid && process->uid != key->euid - 1) {
		process->uid = key->euid - 1;
		process->moves++;
	}
	if (!key->comm[0] || (process && key->tid != key->id.tgid))
		return;
	snprintf(who->comm, sizeof(who->comm), "%.*s", PP_COMM_BYTES - 1, key->comm);
	if (process)
		memcpy(process->comm, who->comm, PP_COMM_BYTES);
}

struct process *who_moved(struct process_table *processes, uint32_t tgid)
{
	struct process *process = process_table_find_tgid(processes, tgid);

	if (!process || process->exit_ns)
		return NULL;
	process->details_read = false;
	process->mappings_changed = true;
	return process;
}
