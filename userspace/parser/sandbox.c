/* SPDX-License-Identifier: BSD-2-Clause */
#include "parser/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/call_filter.h"
#include "base/capabilities.h"
#include "base/cleanup.h"
#include "parser/protocol.h"

/* Memory that the child which parses files may add: .gnu_debugdata unpacks to 64 MiB, whose buffer
 * may be copied as it grows, by a decoder that takes 34 MiB more. */
#define DATA_MAX_BYTES (256U << 20)

struct limit {
	int resource;
	rlim_t most;
};
/* Of the children that add no memory. */
static const struct limit memory_limits[] = {
	{RLIMIT_FSIZE, 0}, {RLIMIT_CORE, 0}, {RLIMIT_NPROC, 0}, {RLIMIT_AS, 0}, {RLIMIT_NOFILE, 8},
};
/* Mapped files are not bounded: RLIMIT_AS would count them. */
static const struct limit files_limits[] = {
	{RLIMIT_FSIZE, 0},
	{RLIMIT_CORE, 0},
	{RLIMIT_NPROC, 0},
	{RLIMIT_NOFILE, 16},
#ifndef __SANITIZE_ADDRESS__ /* whose shadow memory counts */
	{RLIMIT_DATA, DATA_MAX_BYTES},
#endif
};

static const struct sock_filter memory_filter[] = {
	CHECK_MACHINE,
	ALLOW(process_vm_readv),
	ALLOW(pread64),
	ALLOW(getdents64),
	ALLOW(recvmsg),
	ALLOW(sendmsg),
	ALLOW(close),
	ALLOW(exit_group),
	ALLOW(rt_sigreturn),
	/* Opening to read, or with O_PATH: nothing can be written. */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 4),
	ARGUMENT(2),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PARSER_OPEN_TEXT, 1, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PARSER_OPEN_PATH, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

#ifdef __SANITIZE_ADDRESS__ /* whose run-time library does what it likes */
#define REFUSE (SECCOMP_RET_ERRNO | ENOSYS)
#else
#define REFUSE SECCOMP_RET_KILL_PROCESS
#endif
/* Nothing is opened; memory is added, and what was given is mapped. */
static const struct sock_filter files_filter[] = {
	CHECK_MACHINE,
	ALLOW(recvmsg),
	ALLOW(sendmsg),
	ALLOW(close),
	ALLOW(exit_group),
	ALLOW(rt_sigreturn),
	ALLOW(rt_sigaction), /* the guard against a lost page: elf/elf_guard.c */
	ALLOW(munmap),
	ALLOW(mremap),
	ALLOW(brk),
	ALLOW(madvise),
	ALLOW(lseek),
	ALLOW(pread64),
	ALLOW(fstat),
	ALLOW(fstatfs),
	ALLOW(futex),
	ALLOW(sysinfo), /* qsort() asks how much memory there is */
	/* fstat() of some C libraries. */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_newfstatat, 0, 3),
	ARGUMENT(3),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AT_EMPTY_PATH, 4, 0),
	BPF_STMT(BPF_RET | BPF_K, REFUSE),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
	ARGUMENT(2),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	BPF_STMT(BPF_RET | BPF_K, REFUSE),
};

/* perf_event_open(2) of a CPU: no process, no group, closed at exec. */
static const struct sock_filter events_filter[] = {
	CHECK_MACHINE,
	ALLOW(recvfrom),
	ALLOW(sendmsg),
	ALLOW(close),
	ALLOW(exit_group),
	ALLOW(rt_sigreturn),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 6),
	ARGUMENT(1),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)-1, 0, 4),
	ARGUMENT(3),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)-1, 0, 2),
	ARGUMENT(4),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PERF_FLAG_FD_CLOEXEC, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

#define LIST(array) (array), ARRAY_SIZE(array)

/* What a kind of child keeps. */
static const struct sandbox {
	uint64_t capabilities; /* where they are permitted */
	const struct limit *limit;
	size_t limit_count;
	const struct sock_filter *filter;
	size_t filter_count;
} sandbox_table[] = {
	/* CAP_CHECKPOINT_RESTORE is for /proc/PID/map_files, whose directory is the owner's. */
	[PARSER_SANDBOX_MEMORY] = {CAPABILITY_BIT(CAP_SYS_PTRACE) |
					   CAPABILITY_BIT(CAP_DAC_READ_SEARCH) |
					   CAPABILITY_BIT(CAP_CHECKPOINT_RESTORE),
				   LIST(memory_limits), LIST(memory_filter)},
	[PARSER_SANDBOX_FILES] = {0, LIST(files_limits), LIST(files_filter)},
	[PARSER_SANDBOX_EVENTS] = {CAPABILITY_BIT(CAP_SYS_ADMIN) | CAPABILITY_BIT(CAP_PERFMON),
				   LIST(memory_limits), LIST(events_filter)},
};

static int limit_all(const struct sandbox *sandbox)
{
	for (size_t i = 0; i < sandbox->limit_count; i++) {
		const struct rlimit limit = {sandbox->limit[i].most, sandbox->limit[i].most};

		if (setrlimit(sandbox->limit[i].resource, &limit))
			return -errno;
	}
	return 0;
}

int parser_sandbox_enter(enum parser_sandbox which)
{
	const struct sandbox *sandbox = &sandbox_table[which];
	int err;

	/* A terminal's Ctrl-C and a service's stop or reload reach the child as well; it ends with
	 * the agent, whose last requests it still answers. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_DUMPABLE, 0) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	err = capabilities_keep(sandbox->capabilities, 0);
	if (!err)
		err = limit_all(sandbox);
	return err ? err : call_filter_enter(sandbox->filter, sandbox->filter_count);
}
