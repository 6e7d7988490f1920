/* SPDX-License-Identifier: BSD-2-Clause */
#include "gauges/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <linux/landlock.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/call_filter.h"
#include "base/capabilities.h"
#include "base/cleanup.h"
#include "gauges/child.h"

#define NOBODY 65534
/* Every GPU's driver opens this one first. */
#define CONTROL_DEVICE "/dev/nvidiactl"
#define DEVICES "/dev/nvidia*"
#define WSL_DEVICE "/dev/dxg"
#define DATA_MAX_BYTES (256ULL << 20)
#define FILES_MAX 1024U /* NVML has some of each GPU */
#define LOWEST_NICE 19

/* Device files are everybody's as a rule; an administrator may have given them to a group. */
static gid_t devices_group(void)
{
	struct stat device;
	const mode_t group = S_IRGRP | S_IWGRP, others = S_IROTH | S_IWOTH;

	if (stat(CONTROL_DEVICE, &device) || (device.st_mode & others) == others ||
	    (device.st_mode & group) != group || !device.st_gid)
		return NOBODY;
	return device.st_gid;
}

/* A process that is root's could write to root's files without any capability. */
static int become_nobody(void)
{
	const gid_t group = devices_group();

	if (geteuid())
		return 0;
	if (setgroups(0, NULL) || setresgid(group, group, group) ||
	    setresuid(NOBODY, NOBODY, NOBODY))
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
		{RLIMIT_FSIZE, 0},
		{RLIMIT_NOFILE, FILES_MAX},
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

/* Writing, making, removing and running files; reading them is not among it. */
#define HANDLED                                                                                    \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |                              \
	 LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |                          \
	 LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |                              \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |                              \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |                            \
	 LANDLOCK_ACCESS_FS_MAKE_SYM)

static int allow_writing(int rules, const char *path)
{
	OWNED_FD int fd = open(path, O_PATH | O_CLOEXEC);
	const struct landlock_path_beneath_attr beneath = {
		.allowed_access = LANDLOCK_ACCESS_FS_WRITE_FILE, .parent_fd = fd};
	struct stat stat;

	/* A device may have gone.  A directory of them has the rights of MIG, which we need not. */
	if (fd < 0 || fstat(fd, &stat) || !S_ISCHR(stat.st_mode))
		return 0;
	return syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0)
		       ? -errno
		       : 0;
}

/* Returns 0, also where the kernel has no Landlock or a filter of system calls refuses it;
 * -errno. */
static int keep_to_devices(void)
{
	const struct landlock_ruleset_attr handled = {.handled_access_fs = HANDLED};
	OWNED_FD int rules =
		(int)syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);
	glob_t found = {.gl_pathc = 0};
	int err;

	if (rules < 0)
		return errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM ? 0 : -errno;
	err = allow_writing(rules, WSL_DEVICE);
	if (!glob(DEVICES, 0, NULL, &found))
		for (size_t i = 0; !err && i < found.gl_pathc; i++)
			err = allow_writing(rules, found.gl_pathv[i]);
	globfree(&found);
	if (!err && syscall(SYS_landlock_restrict_self, rules, 0))
		err = -errno;
	return err;
}

#ifdef __x86_64__ /* others have the newer forms alone */
#define ALLOW_OLDER                                                                                \
	ALLOW(open), ALLOW(stat), ALLOW(lstat), ALLOW(access), ALLOW(readlink), ALLOW(poll),       \
		ALLOW(getrlimit), ALLOW(arch_prctl),
#else
#define ALLOW_OLDER
#endif

#define REFUSE BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS)

/* What a library calls that looks at files and devices.  Others are as if the kernel had none such,
 * and not the child's end: which ones a driver's library tries is its own affair. */
static const struct sock_filter filter[] = {
	CHECK_MACHINE,
	ALLOW(read),
	ALLOW(readv),
	ALLOW(pread64),
	ALLOW(lseek),
	ALLOW(openat),
	ALLOW_OLDER ALLOW(close),
	ALLOW(fstat),
	ALLOW(fstatfs),
	ALLOW(statfs),
	ALLOW(newfstatat),
	ALLOW(statx),
	ALLOW(faccessat),
	ALLOW(faccessat2),
	ALLOW(readlinkat),
	ALLOW(getdents64),
	ALLOW(getcwd),
	ALLOW(fcntl),
	ALLOW(ioctl),
	ALLOW(mmap),
	ALLOW(munmap),
	ALLOW(mprotect),
	ALLOW(mremap),
	ALLOW(madvise),
	ALLOW(brk),
	ALLOW(futex),
	ALLOW(ppoll),
	ALLOW(nanosleep),
	ALLOW(clock_nanosleep),
	ALLOW(clock_gettime),
	ALLOW(clock_getres),
	ALLOW(gettimeofday),
	ALLOW(restart_syscall),
	ALLOW(getpid),
	ALLOW(getppid),
	ALLOW(gettid),
	ALLOW(getuid),
	ALLOW(geteuid),
	ALLOW(getgid),
	ALLOW(getegid),
	ALLOW(uname),
	ALLOW(sysinfo),
	ALLOW(getrandom),
	ALLOW(getcpu),
	ALLOW(sched_yield),
	ALLOW(sched_getaffinity),
	ALLOW(eventfd2),
	ALLOW(set_robust_list),
	ALLOW(rseq),
	ALLOW(rt_sigaction),
	ALLOW(rt_sigprocmask),
	ALLOW(rt_sigreturn),
	ALLOW(sigaltstack),
	ALLOW(exit),
	ALLOW(exit_group),
	/* Threads, but no processes.  clone3(), whose flags lie in memory, is refused: the C
	 * library then uses clone(). */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
	ARGUMENT(0),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	REFUSE,
	/* Writes into the pipe; where there is no Landlock, files could else be written. */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 4),
	ARGUMENT(0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, GAUGES_PIPE_FD, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	REFUSE,
	/* Reads limits, and sets none. */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 0, 4),
	ARGUMENT(2),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	REFUSE,
	REFUSE,
};

int gauges_sandbox_enter(void)
{
	int err;

	/* The agent's end is the child's. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	/* Without a terminal: who has one can type into it (TIOCSTI). */
	(void)setsid();
	(void)setpriority(PRIO_PROCESS, 0, LOWEST_NICE);
	err = become_nobody();
	if (!err)
		err = capabilities_keep(0, 0);
	/* After the change of user, which takes it back. */
	if (!err && (prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_DUMPABLE, 0) ||
		     prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))
		err = -errno;
	if (!err)
		err = keep_to_devices();
	if (!err)
		err = limit();
	return err ? err : call_filter_enter(filter, ARRAY_SIZE(filter));
}
