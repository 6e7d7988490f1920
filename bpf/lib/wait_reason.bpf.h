/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds why a thread is switched out, from its state and the system call it is in. */
#ifndef BPF_LIB_WAIT_REASON_H
#define BPF_LIB_WAIT_REASON_H

#include <asm/unistd.h>

#include "lib/user_registers.bpf.h"

/* include/linux/sched.h; the same on 5.10 to 7.2. */
#define STATE_INTERRUPTIBLE 0x01U
#define STATE_UNINTERRUPTIBLE 0x02U
#define STATE_STOPPED 0x04U
#define STATE_TRACED 0x08U
#define STATE_DEAD 0x80U
#define STATE_WAKING 0x200U
#define STATE_NEW 0x800U

#define NO_SYSCALL (~0ULL)

#if defined(__TARGET_ARCH_arm64)
static __always_inline __u64 syscall_number(const struct user_registers *regs)
{
	return regs->regs[8];
}
static __always_inline __u64 syscall_argument(const struct user_registers *regs)
{
	return regs->regs[0]; /* holds until the call returns: it blocks */
}
#else
/* entry_64.S: -1 for what is no system call. */
static __always_inline __u64 syscall_number(const struct user_registers *regs)
{
	return regs->orig_rax;
}
static __always_inline __u64 syscall_argument(const struct user_registers *regs)
{
	return regs->rdi;
}
#endif

static __always_inline void call_site_of(const struct user_registers *regs, struct call_site *site)
{
#if defined(__TARGET_ARCH_arm64)
	site->pc = regs->pc;
	site->sp = regs->sp;
#else
	site->pc = regs->rip;
	site->sp = regs->rsp;
#endif
	site->number = syscall_number(regs);
	site->argument = syscall_argument(regs);
}

static __always_inline bool waits_for_disk(struct task_struct *task, __u32 state)
{
	return state & STATE_UNINTERRUPTIBLE && BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait);
}

#if !defined(__TARGET_ARCH_arm64)
#ifndef bpf_rdonly_cast /* of tests */
/* No extern: libbpf 1.1 looks in the BTF of modules for one that vmlinux lacks, and listing those
 * wants CAP_SYS_ADMIN.  The agent replaces this call before the load. */
static void *(*const bpf_rdonly_cast)(const void *address,
				      __u32 btf_id) = (void *)PP_CALL_RDONLY_CAST;
#endif

/* Does what bpf_task_pt_regs() does, but without a call.  Where each call's return is guarded (AMD:
 * safe RET) one costs 40 ns.  The registers lie at the same distance, *at, from the bottom of every
 * kernel stack.  Kernels without bpf_rdonly_cast() call. */
static __always_inline const struct pt_regs___kernel *saved_registers_of(struct task_struct *task,
									 __u64 *at,
									 struct call_site *room)
{
	if (!has_rdonly_cast)
		return (const void *)bpf_task_pt_regs(task);
	/* Pointers that pass through memory become numbers: verifiers differ in what may be done
	 * with either pointer. */
	room->sp = (__u64)task->stack;
	if (unlikely(!*at)) {
		room->pc = (__u64)bpf_task_pt_regs(task);
		FORGET();
		*at = room->pc - room->sp;
	}
	FORGET();
	return bpf_rdonly_cast((const void *)(room->sp + *at),
			       bpf_core_type_id_kernel(struct pt_regs___kernel));
}
#endif

/* Reads the current task's system call.  That takes four loads where the kernel allows it, instead
 * of a copy of all registers to `room`: at most switches nothing else is needed. */
static __always_inline void read_call_site(struct task_struct *task, __u64 *registers_at,
					   struct user_registers *room, struct call_site *site)
{
#if !defined(__TARGET_ARCH_arm64)
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) {
		const struct pt_regs___kernel *regs = saved_registers_of(task, registers_at, site);

		site->pc = regs->ip;
		site->sp = regs->sp;
		site->number = regs->orig_ax;
		site->argument = regs->di;
		return;
	}
#endif
	copy_saved(room, task);
	call_site_of(room, site);
}

static __always_inline __u32 task_state_of(struct task_struct *task)
{
	const struct task_struct___5_13 *old = (const void *)task;

	if (bpf_core_field_exists(old->state))
		return old->state;
	return task->__state;
}

#define MODE_TYPE 0170000U
#define MODE_FIFO 0010000U
#define MODE_CHAR 0020000U
#define MODE_SOCKET 0140000U
#define ANON_INODE_MAGIC 0x09041934UL /* include/uapi/linux/magic.h */
#define FAMILY_UNIX 1U
#define FAMILY_INET 2U
#define FAMILY_INET6 10U
#define PROTOCOL_TCP 6U
#define PROTOCOL_UDP 17U

static __always_inline enum pp_wait socket_wait(const struct file *file)
{
	const struct socket *socket = BPF_CORE_READ(file, private_data);
	const struct sock *sk = BPF_CORE_READ(socket, sk);
	__u32 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	__u32 protocol;

	if (family == FAMILY_UNIX)
		return PP_WAIT_UNIX;
	if (family != FAMILY_INET && family != FAMILY_INET6)
		return PP_WAIT_SOCKET;
	protocol = BPF_CORE_READ(sk, sk_protocol);
	return protocol == PROTOCOL_TCP	  ? PP_WAIT_TCP
	       : protocol == PROTOCOL_UDP ? PP_WAIT_UDP
					  : PP_WAIT_SOCKET;
}

/* Finds what kind of file a descriptor is. */
static __always_inline enum pp_wait descriptor_wait(struct task_struct *task, __u32 fd)
{
	const struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = NULL;
	const struct inode *inode;
	__u32 type;

	if (!table) /* no files: on its way out */
		return PP_WAIT_OTHER;
	if (fd >= BPF_CORE_READ(table, max_fds) ||
	    bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd) || !file)
		return PP_WAIT_OTHER;
	inode = BPF_CORE_READ(file, f_inode);
	type = BPF_CORE_READ(inode, i_mode) & MODE_TYPE;
	if (type == MODE_FIFO)
		return PP_WAIT_PIPE;
	if (type == MODE_SOCKET)
		return socket_wait(file);
	if (type == MODE_CHAR)
		return PP_WAIT_TERMINAL;
	/* Anonymous inodes had no type before 6.16. */
	if (BPF_CORE_READ(inode, i_sb, s_magic) == ANON_INODE_MAGIC)
		return PP_WAIT_EVENTFD;
	return PP_WAIT_FILE;
}

/* Returns what a system call waits for if its number alone says so; PP_WAIT_NONE: its first
 * argument is a descriptor; PP_WAIT_KERNEL: none of this. */
static __always_inline enum pp_wait syscall_wait(__u64 number)
{
	switch (number) {
	case __NR_nanosleep:
	case __NR_clock_nanosleep:
	case __NR_rt_sigsuspend:
	case __NR_rt_sigtimedwait:
#ifdef __NR_pause
	case __NR_pause:
#endif
		return PP_WAIT_SLEEP;
	case __NR_futex:
	case 449: /* futex_waitv, 5.16 */
	case 455: /* futex_wait, 6.7 */
	case __NR_flock:
	case __NR_semop:
	case __NR_semtimedop:
		return PP_WAIT_LOCK;
#ifdef __NR_epoll_wait
	case __NR_epoll_wait:
	case __NR_poll:
	case __NR_select:
#endif
	case __NR_epoll_pwait:
	case 441: /* epoll_pwait2, 5.11 */
	case __NR_ppoll:
	case __NR_pselect6:
		return PP_WAIT_POLL;
	case __NR_wait4:
	case __NR_waitid:
	case __NR_clone: /* vfork, posix_spawn: until the child runs its program */
	case 435:	 /* clone3 */
#ifdef __NR_vfork
	case __NR_vfork:
#endif
		return PP_WAIT_CHILD;
	case 426: /* io_uring_enter */
		return PP_WAIT_IO_URING;
	case __NR_read:
	case __NR_write:
	case __NR_pread64:
	case __NR_pwrite64:
	case __NR_readv:
	case __NR_writev:
	case __NR_preadv:
	case __NR_pwritev:
	case __NR_preadv2:
	case __NR_pwritev2:
	case __NR_recvfrom:
	case __NR_recvmsg:
	case __NR_recvmmsg:
	case __NR_sendto:
	case __NR_sendmsg:
	case __NR_sendmmsg:
	case __NR_accept:
	case __NR_accept4:
	case __NR_connect:
	case __NR_sendfile:
	case __NR_splice:
	case __NR_fsync:
	case __NR_fdatasync:
	case __NR_sync_file_range:
	case __NR_ftruncate:
	case __NR_fallocate:
	case __NR_getdents64:
	case __NR_ioctl:
	case __NR_fcntl:
	case __NR_lseek:
	case __NR_fstat:
		return PP_WAIT_NONE;
	default:
		return PP_WAIT_KERNEL;
	}
}

/* select() of no descriptors: time.sleep() up to CPython 3.10, and others' way to sleep. */
static __always_inline bool selects_nothing(const struct call_site *site)
{
#ifdef __NR_select
	if (site->number == __NR_select)
		return !(__u32)site->argument;
#endif
	return site->number == __NR_pselect6 && !(__u32)site->argument;
}

static __always_inline enum pp_wait wait_reason(struct task_struct *task, __u32 state,
						const struct call_site *site)
{
	enum pp_wait wait;

	if (state & (STATE_STOPPED | STATE_TRACED))
		return PP_WAIT_STOPPED;
	if (site->number == NO_SYSCALL)
		return PP_WAIT_FAULT;
	wait = syscall_wait(site->number);
	if (wait == PP_WAIT_POLL && selects_nothing(site))
		wait = PP_WAIT_SLEEP;
	if (wait == PP_WAIT_NONE)
		wait = descriptor_wait(task, site->argument);
	if (wait == PP_WAIT_KERNEL && site->is_disk)
		wait = PP_WAIT_DISK; /* open, stat, mmap, ...: a path, not a descriptor */
	return wait;
}

#endif
