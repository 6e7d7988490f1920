/* SPDX-License-Identifier: BSD-2-Clause */
#include "processes/who.h"

#include <string.h>

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
