/* SPDX-License-Identifier: BSD-2-Clause */
/* Filters of system calls, seccomp(2): a list of steps that begins with CHECK_MACHINE. */
#ifndef BASE_CALL_FILTER_H
#define BASE_CALL_FILTER_H

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

#ifdef __x86_64__
#define OUR_ARCH AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000U /* <asm/unistd.h>: __X32_SYSCALL_BIT */
#else
#define OUR_ARCH AUDIT_ARCH_AARCH64
#define X32_BIT 0x80000000U
#endif

#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                     \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

#define CHECK_MACHINE                                                                              \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),                   \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0),                               \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),                               \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),             \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, X32_BIT, 0, 1),                               \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define ARGUMENT(index)                                                                            \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[index]))

/* Applies a filter to the calling process, which must have given up new privileges
 * (PR_SET_NO_NEW_PRIVS).  Cannot be undone.  Returns 0 or -errno. */
int call_filter_enter(const struct sock_filter *filter, size_t count);

#endif
