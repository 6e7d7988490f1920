/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel fields we read, and no others.  CO-RE relocates them, so neither their order nor their
 * offsets here mean anything.  Renames on 5.10 to 7.2 are noted beside the field. */
#ifndef BPF_LIB_KERNEL_H
#define BPF_LIB_KERNEL_H

#include <asm/ptrace.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/types.h>
#include <stdbool.h>

#include <pyprofd/limits.h>
#include <pyprofd/sample.h>

/* The fields that a BPF program reads at each switch lie together in its first cache lines. */
#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)

#define PF_EXITING 0x00000004U /* include/linux/sched.h */
#define PF_KTHREAD 0x00200000U

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
};

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

#if defined(__TARGET_ARCH_arm64)
struct thread_struct {
	struct {
		unsigned long tp_value;
	} uw;
};
#else
struct thread_struct {
	unsigned long fsbase;
};
#endif

struct file;

struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_flags;
	struct file *vm_file; /* NULL: anonymous */
};

/* Mappings by address, from 6.1 on: include/linux/maple_tree.h. */
struct maple_tree {
	void *ma_root;
};
struct maple_range_64 {
	unsigned long pivot[15];
	void *slot[16];
};
struct maple_arange_64 {
	unsigned long pivot[9];
	void *slot[10];
};

/* The mappings that the thread used last, before 6.1. */
struct vmacache {
	struct vm_area_struct *vmas[4];
};

/* The page with copies of instructions that breakpoints have replaced, and with the trampoline to
 * which functions with return probes return (kernel/events/uprobes.c). */
struct xol_area {
	unsigned long vaddr;
};

struct hlist_node {
	struct hlist_node *next;
};
struct hlist_head {
	struct hlist_node *first;
};

struct uprobes_state {
	struct xol_area *xol_area;
	struct hlist_head head_tramps; /* from 6.18 on, on x86-64 */
};

typedef struct {
	long counter;
} atomic_long_t;

/* Not so in kernels for real time.  kernel/locking/rwsem.c: bit 0 of `count` is set while a writer
 * has the lock, whose task is then `owner`, with flags in the lowest bits. */
struct rw_semaphore {
	atomic_long_t count;
	atomic_long_t owner;
};

struct seqcount {
	unsigned int sequence;
};

struct mm_struct {
	struct rw_semaphore mmap_lock;
	int map_count;
	unsigned long start_stack;
	unsigned long exec_vm; /* pages that can be executed */
	unsigned long start_brk, brk;
	struct maple_tree mm_mt;
	struct uprobes_state uprobes_state;
};
struct mm_struct___6_4 {
	int mm_lock_seq;
};
struct mm_struct___6_13 {
	struct seqcount mm_lock_seq;
};

/* A call of a function with a return probe that is under way; newest first
 * (kernel/events/uprobes.c, with these fields from 4.3 to 7.2). */
struct return_instance {
	unsigned long func;
	unsigned long stack; /* sp at the function's first instruction */
	unsigned long orig_ret_vaddr;
	struct return_instance *next;
};

struct uprobe_task {
	struct return_instance *return_instances;
	unsigned long vaddr;	 /* of the breakpoint */
	unsigned long xol_vaddr; /* of its instruction's copy, while that is run */
};

struct super_block {
	unsigned long s_magic;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
};

struct file {
	struct inode *f_inode;
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct sock_common {
	unsigned short skc_family;
};

struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
};

struct socket {
	struct sock *sk;
};

struct sched_info {
	unsigned long long run_delay, last_arrival, last_queued; /* ns of the run queue's clock */
};

struct rq {
	__u64 clock;
};

struct cfs_rq {
	struct rq *rq; /* CONFIG_FAIR_GROUP_SCHED, as in all distributions */
};

struct sched_entity {
	struct cfs_rq *cfs_rq; /* the same */
};

typedef struct {
	unsigned int val;
} kuid_t;

struct user_namespace {
	struct user_namespace *parent;
	int level; /* 0: the machine's own */
	kuid_t owner;
};

struct cred {
	kuid_t uid, euid;
	struct user_namespace *user_ns;
};

struct task_struct {
	void *stack;
	unsigned int flags;
	unsigned int on_cpu;  /* 7.2: a byte; only unsigned fields change their size */
	unsigned int __state; /* 5.14; `state` before */
	unsigned in_iowait : 1;
	struct sched_entity se;
	struct sched_info sched_info;
	struct files_struct *files;
	int pid, tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct mm_struct *mm;
	struct pid *thread_pid;
	int pagefault_disabled;	     /* a fault now is an error of the access, which gets no page */
	unsigned long nvcsw, nivcsw; /* times it left the CPU: asleep, preempted */
	__u64 start_time;	     /* ns, CLOCK_MONOTONIC */
	const struct cred *cred;
	struct signal_struct *signal;
	char comm[PP_COMM_BYTES];
	struct uprobe_task *utask; /* NULL: no user probe was hit */
	struct thread_struct thread;
};

struct task_struct___5_13 {
	long state;
};
struct task_struct___6_0 {
	struct vmacache vmacache;
};

/* The kernel's own names for what struct pt_regs of <asm/ptrace.h> calls rdi, orig_rax, rip and
 * rsp. */
struct pt_regs___kernel {
	unsigned long di, orig_ax, ip, sp;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task; /* NULL behind the last one */
};

#pragma clang attribute pop

/* The first word that exec put onto the process's stack: its sp at the first instruction. */
static inline __u64 task_first_word(struct task_struct *task)
{
	return BPF_CORE_READ(task, mm, start_stack);
}

#if defined(__TARGET_ARCH_arm64)
#define TASK_THREAD_POINTER thread.uw.tp_value
#else
#define TASK_THREAD_POINTER thread.fsbase
#endif

/* How far below the CFA a function's sp is at its first instruction: x86-64 has pushed the return
 * address, aarch64 has nothing. */
#if defined(__TARGET_ARCH_arm64)
#define RETURN_ADDRESS_BELOW_CFA 0U
#else
#define RETURN_ADDRESS_BELOW_CFA 8U
#endif

static inline __u64 task_thread_pointer(struct task_struct *task)
{
	return BPF_CORE_READ(task, TASK_THREAD_POINTER);
}

/* Where the verifier knows the current thread (5.11), it lets a field be loaded without a call. */
static __always_inline bool task_fields_can_be_loaded(void)
{
	return bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf);
}

static __always_inline struct task_struct *task_current(void)
{
	if (task_fields_can_be_loaded())
		return (struct task_struct *)bpf_get_current_task_btf();
	return (struct task_struct *)bpf_get_current_task();
}

/* A number in what task_current() returned. */
#define CURRENT_READ(task, field)                                                                  \
	(task_fields_can_be_loaded() ? (task)->field : BPF_CORE_READ(task, field))

/* Reads the kernel's list of a thread's return probes.  Its records may be freed beside us (from
 * 6.13 on by RCU): every read is a checked one, and a wrong address only ends a walk. */
static __always_inline void return_read(const struct return_instance *instance,
					struct pp_return *ret_return)
{
	ret_return->stack = BPF_CORE_READ(instance, stack);
	ret_return->address = BPF_CORE_READ(instance, orig_ret_vaddr);
}

#endif
