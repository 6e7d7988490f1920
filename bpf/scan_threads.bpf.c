/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shows every user thread that is asleep, once, as switch_thread.bpf.c would have seen it when it
 * went to sleep.  This runs in the agent, which reads the iterator; the threads sleep on or wake up
 * meanwhile. */
#include "lib/wait_reason.bpf.h"

#include <pyprofd/wait.h>

static __always_inline bool is_asleep(struct task_struct *task, __u32 state)
{
	if (!state || state & (STATE_DEAD | STATE_WAKING | STATE_NEW))
		return false;
	if (task->flags & (PF_KTHREAD | PF_EXITING))
		return false;
	/* The thread is about to be switched out, which on_switch() will see. */
	return !bpf_core_field_exists(task->on_cpu) || !task->on_cpu;
}

/* The thread's id in its own namespace, the innermost. */
static __always_inline __u32 inner_tid_of(struct task_struct *task)
{
	const struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u64 level = BPF_CORE_READ(pid, level);
	const char *innermost;
	int tid = 0;

	innermost = (const char *)pid + bpf_core_field_offset(struct pid, numbers) +
		    level * bpf_core_type_size(struct upid) +
		    bpf_core_field_offset(struct upid, nr);
	bpf_probe_read_kernel(&tid, sizeof(tid), innermost);
	return tid;
}

static __always_inline void take_registers(struct pp_scan_record *record,
					   const struct user_registers *regs,
					   const struct call_site *site)
{
	record->syscall = site->number;
	record->argument = site->argument;
	record->fp = registers_by_number(regs, record->registers);
	record->pc = registers_pc(regs);
	record->sp = record->registers[PP_REG_SP];
	if (registers_are_user(regs))
		record->flags |= registers_are_compat(regs) ? PP_SCAN_COMPAT : PP_SCAN_USER;
}

static __always_inline void take_kernel_addresses(struct pp_scan_record *record,
						  struct task_struct *task)
{
	long bytes = bpf_get_task_stack(task, record->kernel, sizeof(record->kernel), 0);

	record->kernel_count = bytes > 0 ? (__u64)bytes / 8 : 0; /* BPF divides without a sign */
}

static __always_inline void take_returns(struct pp_scan_record *record, struct task_struct *task)
{
	const struct return_instance *instance = BPF_CORE_READ(task, utask, return_instances);
	__u32 i;

	for (i = 0; i < PP_MAX_RETURNS && instance; i++) {
		return_read(instance, &record->returns[i]);
		instance = BPF_CORE_READ(instance, next);
	}
	record->return_count = i;
}

SEC("iter/task")
int on_scan(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct pp_scan_record *record;
	struct scan_state *scan;
	struct user_registers *regs;
	struct call_site site;
	__u32 zero = 0, state;

	if (!task)
		return 0;
	state = task_state_of(task);
	scan = bpf_map_lookup_elem(&scans, &zero);
	if (!scan || !is_asleep(task, state))
		return 0;
	regs = (void *)scan->registers;
	_Static_assert(sizeof(*regs) <= sizeof(scan->registers), "room");
	copy_saved_of(regs, task);
	record = &scan->record;
	record->tgid = task->tgid;
	record->tid = task->pid;
	record->inner_tid = inner_tid_of(task);
	record->state = state;
	record->flags = BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait) ? PP_SCAN_IOWAIT : 0;
	call_site_of(regs, &site);
	site.is_disk = waits_for_disk(task, state);
	record->wait = wait_reason(task, state, &site);
	record->started_ns = task->start_time;
	record->switches = task->nvcsw + task->nivcsw;
	record->thread_pointer = task_thread_pointer(task);
	record->first_word = task_first_word(task);
	take_registers(record, regs, &site);
	take_kernel_addresses(record, task);
	take_returns(record, task);
	record->size = record->return_count ? sizeof(*record) : PP_SCAN_RECORD_SHORT;
	if (record->return_count)
		bpf_seq_write(ctx->meta->seq, record, sizeof(*record));
	else
		bpf_seq_write(ctx->meta->seq, record, PP_SCAN_RECORD_SHORT);
	return 0;
}

/* ---- the address spaces of processes: include/pyprofd/wait.h ----
 * Which have the lock of their mappings taken at this moment, and which have changed.  These take
 * no lock themselves. */

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

/* Returns the address space of a process, once for each; NULL: it is no process's, or was. */
static __always_inline struct mm_struct *space_of(struct task_struct *task)
{
	/* A leader that has ended has none; its threads go on. */
	if (!task || (task->pid != task->tgid && BPF_CORE_READ(task, group_leader, mm)))
		return NULL;
	return task->flags & PF_KTHREAD ? NULL : task->mm;
}

SEC("iter/task")
int on_space(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct mm_struct *mm = space_of(task);
	struct pp_space_record record = {};

	if (!task || !mm)
		return 0;
	record.tgid = task->tgid;
	if (bpf_core_field_exists(mm->exec_vm))
		record.code_pages = BPF_CORE_READ(mm, exec_vm);
	record.writes = writes_of(mm) ?: BPF_CORE_READ(mm, map_count);
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}

SEC("iter/task")
int on_lock(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct mm_struct *mm = space_of(task);
	struct pp_lock_record record = {};
	__u64 count;

	/* Kernels for real time have another lock. */
	if (!task || !mm || !bpf_core_field_exists(mm->mmap_lock.count))
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
