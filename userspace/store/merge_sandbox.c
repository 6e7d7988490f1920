/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/merge_sandbox.h"

#include <errno.h>
#include <grp.h>
#include <linux/landlock.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/call_filter.h"
#include "base/capabilities.h"
#include "base/cleanup.h"

/* Windows of five minutes take some 40 MiB; the reader's own bound is 1 GiB (pprof/profile_read.h),
 * which is more than a profiler should take of a machine. */
#define DATA_MAX_BYTES (512ULL << 20)
#define FILE_MAX_BYTES (256ULL << 20)
#define FILES_MAX 64U
#define LOWEST_NICE 19
#define IOPRIO_WHO_PROCESS 1 /* <linux/ioprio.h> is newer than what it names */
#define IOPRIO_IDLE (3 << 13)

/* The store's owner made the directory, and can be another one than who runs pyprofd. */
static int become_owner(int directory_fd)
{
	struct stat stat;

	if (fstat(directory_fd, &stat))
		return -errno;
	if (geteuid() || !stat.st_uid)
		return 0;
	if (setgroups(0, NULL) || setresgid(stat.st_gid, stat.st_gid, stat.st_gid) ||
	    setresuid(stat.st_uid, stat.st_uid, stat.st_uid))
		return -errno;
	return 0;
}

static int limit(void)
{
	static const struct {
		int resource;
		rlim_t most;
	} limits[] = {
		{RLIMIT_CORE, 0},
		{RLIMIT_NPROC, 0},
		{RLIMIT_NOFILE, FILES_MAX},
		{RLIMIT_FSIZE, FILE_MAX_BYTES},
#ifndef __SANITIZE_ADDRESS__ /* whose shadow memory counts */
		{RLIMIT_DATA, DATA_MAX_BYTES},
#endif
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		const struct rlimit most = {limits[i].most, limits[i].most};

		if (setrlimit(limits[i].resource, &most))
			return -errno;
	}
	return 0;
}

/* Not SCHED_IDLE: where the CPUs are busy all day nothing would be merged. */
static void step_back(void)
{
	(void)setpriority(PRIO_PROCESS, 0, LOWEST_NICE);
	(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE);
}

/* Everything on files is forbidden but this below the directory. */
#define ALLOWED                                                                                    \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |                              \
	 LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |                             \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE)
#define HANDLED                                                                                    \
	(ALLOWED | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                    \
	 LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |                              \
	 LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |                             \
	 LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)

/* Returns 0, also where the kernel has no Landlock or a filter of system calls refuses it (EPERM);
 * -errno. */
static int keep_to(int directory_fd)
{
	const struct landlock_ruleset_attr rules = {.handled_access_fs = HANDLED};
	const struct landlock_path_beneath_attr below = {.allowed_access = ALLOWED,
							 .parent_fd = directory_fd};
	OWNED_FD int fd = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);

	if (fd < 0)
		return errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM ? 0 : -errno;
	if (syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &below, 0) ||
	    syscall(SYS_landlock_restrict_self, fd, 0))
		return -errno;
	return 0;
}

#ifdef SYS_poll /* of x86; others have ppoll() alone */
#define ALLOW_POLL ALLOW(poll),
#else
#define ALLOW_POLL
#endif

/* Steps for a call that gives memory these rights, in its third argument: not to be run. */
#define ALLOW_DATA(name)                                                                           \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4), ARGUMENT(2),                        \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),                             \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),                               \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* What reads, writes and renames files, memory, and messages to the agent.  Others are as if the
 * kernel had none such, and not the child's end: a later C library may try them, and merging must
 * not stop for that. */
static const struct sock_filter filter[] = {
	CHECK_MACHINE,
	ALLOW(read),
	ALLOW(pread64),
	ALLOW(write),
	ALLOW(writev),
	ALLOW(lseek),
	ALLOW(openat),
	ALLOW(close),
	ALLOW(fstat),
	ALLOW(newfstatat),
	ALLOW(statx),
	ALLOW(faccessat),
	ALLOW(faccessat2),
	ALLOW(getdents64),
	ALLOW(fcntl),
	ALLOW(fchmod),
	ALLOW(fsync),
	ALLOW(fdatasync),
	ALLOW(renameat),
	ALLOW(renameat2),
	ALLOW(unlinkat),
	ALLOW(utimensat),
	ALLOW(recvfrom),
	ALLOW(sendto),
	ALLOW_POLL ALLOW(ppoll),
	ALLOW(restart_syscall),
	ALLOW(clock_gettime),
	ALLOW(gettimeofday),
	ALLOW(getrandom),
	ALLOW(sysinfo), /* qsort() asks how much memory there is */
	ALLOW(futex),
	ALLOW(brk),
	ALLOW(munmap),
	ALLOW(mremap),
	ALLOW(madvise),
	ALLOW(rt_sigaction),
	ALLOW(rt_sigprocmask),
	ALLOW(rt_sigreturn),
	ALLOW(exit_group),
	ALLOW_DATA(mmap),
	ALLOW_DATA(mprotect),
#ifdef __SANITIZE_ADDRESS__ /* its end */
	ALLOW(sigaltstack),
#endif
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
};

int merge_sandbox_enter(int directory_fd)
{
	int err;

	/* A terminal's Ctrl-C and a service's stop or reload reach the child as well; it ends with
	 * the agent. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	step_back();
	err = become_owner(directory_fd);
	if (!err)
		err = capabilities_keep(0, 0);
	/* After the change of user, which takes it back. */
	if (!err && (prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_DUMPABLE, 0) ||
		     prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))
		err = -errno;
	if (!err)
		err = keep_to(directory_fd);
	if (!err)
		err = limit();
	return err ? err : call_filter_enter(filter, ARRAY_SIZE(filter));
}
