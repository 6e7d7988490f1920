/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shows which processes have the lock of their mappings taken at this moment
 * (include/pyprofd/scan.h).  It takes no lock itself. */
#include "lib/kernel.bpf.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <pyprofd/scan.h>

SEC("iter/task")
int on_lock(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct pp_lock_record record = {};
	struct mm_struct *mm;

	/* A leader that has ended has none; its threads go on. */
	if (!task || (task->pid != task->tgid && BPF_CORE_READ(task, group_leader, mm)))
		return 0;
	mm = task->mm;
	/* Kernels for real time have another lock. */
	if (!mm || task->flags & PF_KTHREAD || !bpf_core_field_exists(mm->mmap_lock.count))
		return 0;
	if (!BPF_CORE_READ(mm, mmap_lock.count.counter))
		return 0;
	record.tgid = task->tgid;
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}
