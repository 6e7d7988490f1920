/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shows which processes have the lock of their mappings taken at this moment
 * (include/pyprofd/scan.h).  It takes no lock itself. */
#include "lib/kernel.bpf.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <pyprofd/scan.h>

#define COUNT_WRITTEN 1UL
#define OWNER_FLAGS 7UL

static __always_inline __u64 writes_of(struct mm_struct *mm)
{
	const struct mm_struct___6_4 *mm_6_4 = (const void *)mm;
	const struct mm_struct___6_13 *mm_6_13 = (const void *)mm;

	if (bpf_core_field_exists(mm_6_13->mm_lock_seq.sequence))
		return BPF_CORE_READ(mm_6_13, mm_lock_seq.sequence);
	if (bpf_core_field_exists(mm_6_4->mm_lock_seq))
		return (__u32)BPF_CORE_READ(mm_6_4, mm_lock_seq);
	return 0;
}

SEC("iter/task")
int on_lock(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct pp_lock_record record = {};
	struct mm_struct *mm;
	__u64 count;

	/* A leader that has ended has none; its threads go on. */
	if (!task || (task->pid != task->tgid && BPF_CORE_READ(task, group_leader, mm)))
		return 0;
	mm = task->mm;
	/* Kernels for real time have another lock. */
	if (!mm || task->flags & PF_KTHREAD || !bpf_core_field_exists(mm->mmap_lock.count))
		return 0;
	count = BPF_CORE_READ(mm, mmap_lock.count.counter);
	if (!count)
		return 0;
	record.tgid = task->tgid;
	record.mappings = BPF_CORE_READ(mm, map_count);
	record.writes = writes_of(mm);
	if (count & COUNT_WRITTEN)
		record.writer = BPF_CORE_READ(mm, mmap_lock.owner.counter) & ~OWNER_FLAGS;
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}
