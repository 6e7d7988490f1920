/* SPDX-License-Identifier: BSD-2-Clause */
#include "parser/sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "parser/protocol.h"

#ifdef __x86_64__
#define OUR_ARCH AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000U /* <asm/unistd.h>: __X32_SYSCALL_BIT */
#else
#define OUR_ARCH AUDIT_ARCH_AARCH64
#define X32_BIT 0x80000000U
#endif

static int limit_all(void)
{
	static const struct {
		int resource;
		rlim_t most;
	} limits[] = {
		{RLIMIT_FSIZE, 0}, {RLIMIT_CORE, 0},   {RLIMIT_NPROC, 0},
		{RLIMIT_AS, 0},	   {RLIMIT_NOFILE, 8},
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		const struct rlimit limit = {limits[i].most, limits[i].most};

		if (setrlimit(limits[i].resource, &limit))
			return -errno;
	}
	return 0;
}

#define WORD(capability) ((capability) / 32)
#define BIT(capability) (1U << (capability) % 32)

/* Keeps what looking at other users' processes takes, where it is permitted: CAP_CHECKPOINT_RESTORE
 * for /proc/PID/map_files, whose directory is the owner's alone. */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}, {0}};
	static const uint32_t kept[2] = {
		[WORD(CAP_SYS_PTRACE)] = BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH),
		[WORD(CAP_CHECKPOINT_RESTORE)] = BIT(CAP_CHECKPOINT_RESTORE),
	};

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) && errno != EINVAL)
		return -errno;
	if (syscall(SYS_capget, &header, data))
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(data); i++) {
		const uint32_t left = data[i].permitted & kept[i];

		data[i] = (struct __user_cap_data_struct){.effective = left, .permitted = left};
	}
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                     \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int filter_calls(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, X32_BIT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		ALLOW(process_vm_readv),
		ALLOW(pread64),
		ALLOW(recvmsg),
		ALLOW(sendmsg),
		ALLOW(close),
		ALLOW(exit_group),
		ALLOW(rt_sigreturn),
		/* Opening to read, or with O_PATH: nothing can be written. */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PARSER_OPEN_TEXT, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PARSER_OPEN_PATH, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	const struct sock_fprog program = {.len = ARRAY_SIZE(filter), .filter = filter};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

int parser_sandbox_enter(void)
{
	int err;

	/* A terminal's Ctrl-C and a service's stop reach the child as well; it ends with the agent,
	 * whose last requests it still answers. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_DUMPABLE, 0) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	err = drop_capabilities();
	if (!err)
		err = limit_all();
	if (!err)
		err = filter_calls();
	return err;
}
