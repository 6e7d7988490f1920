/* SPDX-License-Identifier: BSD-2-Clause */
#include "child/children.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/landlock.h>
#include <linux/nsfs.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/task.h"

#define MIB (1ULL << 20)

/* ---- limits ---- */

/* Of the children that add no memory. */
static const struct child_limit memory_limits[] = {
	{RLIMIT_FSIZE, 0}, {RLIMIT_CORE, 0}, {RLIMIT_NPROC, 0}, {RLIMIT_AS, 0}, {RLIMIT_NOFILE, 8},
};
/* As many files may be open as pyprofd may have; texts of /proc are read whole. */
static const struct child_limit opener_limits[] = {
	{RLIMIT_FSIZE, 0},
	{RLIMIT_CORE, 0},
	{RLIMIT_NPROC, 0},
	{RLIMIT_DATA, 64 * MIB},
};
/* Mapped files are not bounded: RLIMIT_AS would count them.  .gnu_debugdata unpacks to 64 MiB; its
 * buffer may be copied as it grows, by a decoder that takes 34 MiB more. */
static const struct child_limit files_limits[] = {
	{RLIMIT_FSIZE, 0},   {RLIMIT_CORE, 0},	       {RLIMIT_NPROC, 0},
	{RLIMIT_NOFILE, 16}, {RLIMIT_DATA, 256 * MIB},
};
/* Windows of five minutes take some 40 MiB; the reader's own bound is 1 GiB (pprof/profile_read.h),
 * which is more than a profiler should take of a machine. */
static const struct child_limit store_limits[] = {
	{RLIMIT_CORE, 0},	   {RLIMIT_NPROC, 0},	     {RLIMIT_NOFILE, 64},
	{RLIMIT_FSIZE, 256 * MIB}, {RLIMIT_DATA, 512 * MIB},
};
/* NVML has some files of each GPU. */
static const struct child_limit gauges_limits[] = {
	{RLIMIT_CORE, 0},
	{RLIMIT_FSIZE, 0},
	{RLIMIT_NOFILE, 1024},
	{RLIMIT_DATA, 256 * MIB},
};

/* ---- system calls ---- */

#define CALL(call) {.name = #call, .number = SYS_##call}
#ifdef __x86_64__ /* others have the newer forms alone */
#define CALL_OLDER(call) CALL(call)
#else
#define CALL_OLDER(call) {.name = #call, .number = CALL_NONE}
#endif
#define CALL_WHEN(call, words, ...)                                                                \
	{.name = #call, .number = SYS_##call, .check = {__VA_ARGS__}, .when = (words)}
#define KILL_WHEN(call, words, ...)                                                                \
	{.name = #call,                                                                            \
	 .number = SYS_##call,                                                                     \
	 .check = {__VA_ARGS__},                                                                   \
	 .when = (words),                                                                          \
	 .kills = true}

/* It would give each call a line. */
/* clang-format off */

static const struct call_rule memory_calls[] = {
	CALL(process_vm_readv), CALL(pread64), CALL(getdents64), CALL(recvmsg), CALL(sendmsg),
	CALL(close), CALL(exit_group), CALL(rt_sigreturn),
	CALL_WHEN(openat, "to read", {CALL_EQUALS, 2, CHILD_OPEN_TEXT}),
};

/* It looks at files, and becomes other users for that. */
static const struct call_rule opener_calls[] = {
	CALL(recvmsg), CALL(sendmsg), CALL(close), CALL(exit_group), CALL(rt_sigreturn),
	CALL_WHEN(openat, "to read",
		  {CALL_LACKS, 2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND}),
	CALL(openat2), CALL(dup), CALL(fstat), CALL(newfstatat), CALL(statx), CALL_OLDER(stat),
	CALL(statfs), CALL(fstatfs), CALL(readlinkat), CALL_OLDER(readlink), CALL(read),
	CALL(pread64), CALL(lseek),
	CALL_WHEN(ioctl, "for a file's generation", {CALL_EQUALS, 1, (uint32_t)FS_IOC_GETVERSION}),
	CALL_WHEN(ioctl, "for a namespace's owner", {CALL_EQUALS, 1, NS_GET_USERNS}),
	CALL(geteuid), CALL(setresuid), CALL(setresgid), CALL(capget), CALL(capset),
	CALL(getrandom), /* malloc() */
	CALL(clock_gettime), CALL(brk), CALL(munmap), CALL(mremap), CALL(madvise), CALL(futex),
	CALL_WHEN(mmap, "of data", {CALL_LACKS, 2, PROT_EXEC}),
};

/* Nothing is opened; memory is added, and what was given is mapped. */
static const struct call_rule files_calls[] = {
	CALL(recvmsg), CALL(sendmsg), CALL(close), CALL(exit_group), CALL(rt_sigreturn),
	CALL(rt_sigaction), /* the guard against a lost page: elf/elf_image.c */
	CALL(munmap), CALL(mremap), CALL(brk), CALL(madvise), CALL(lseek), CALL(pread64),
	CALL(fstat), CALL(fstatfs), CALL(futex),
	CALL(sysinfo), /* qsort() asks how much memory there is */
	/* fstat() of some C libraries. */
	CALL_WHEN(newfstatat, "of a descriptor", {CALL_EQUALS, 3, AT_EMPTY_PATH}),
	CALL_WHEN(mmap, "of data", {CALL_LACKS, 2, PROT_EXEC}),
};
#ifdef __SANITIZE_ADDRESS__ /* its run-time library does what it likes */
#define FILES_ARE_KILLED false
#else
#define FILES_ARE_KILLED true
#endif

static const struct call_rule events_calls[] = {
	CALL(recvfrom), CALL(sendmsg), CALL(close), CALL(exit_group), CALL(rt_sigreturn),
	CALL_WHEN(perf_event_open, "of a CPU: no process, no group, closed at exec",
		  {CALL_EQUALS, 1, (uint32_t)-1}, {CALL_EQUALS, 3, (uint32_t)-1},
		  {CALL_EQUALS, 4, PERF_FLAG_FD_CLOEXEC}),
};

/* What reads, writes and renames files, memory, and messages to the agent.  Others fail, and do not
 * end the child: a later C library may try them, and merging must not stop for that. */
static const struct call_rule store_calls[] = {
	CALL(read), CALL(pread64), CALL(write), CALL(writev), CALL(lseek), CALL(openat),
	CALL(close), CALL(fstat), CALL(newfstatat), CALL(statx), CALL(faccessat), CALL(faccessat2),
	CALL(getdents64), CALL(fcntl), CALL(fchmod), CALL(fsync), CALL(fdatasync), CALL(renameat),
	CALL(renameat2), CALL(unlinkat), CALL(utimensat), CALL(recvfrom), CALL(sendto),
	CALL_OLDER(poll), CALL(ppoll), CALL(restart_syscall), CALL(clock_gettime),
	CALL(gettimeofday), CALL(getrandom),
	CALL(sysinfo), /* qsort() asks how much memory there is */
	CALL(futex), CALL(brk), CALL(munmap), CALL(mremap), CALL(madvise), CALL(rt_sigaction),
	CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(exit_group),
	CALL_WHEN(mmap, "of data", {CALL_LACKS, 2, PROT_EXEC}),
	CALL_WHEN(mprotect, "of data", {CALL_LACKS, 2, PROT_EXEC}),
	KILL_WHEN(mmap, "of code", {CALL_HAS, 2, PROT_EXEC}),
	KILL_WHEN(mprotect, "of code", {CALL_HAS, 2, PROT_EXEC}),
#ifdef __SANITIZE_ADDRESS__ /* its end */
	CALL(sigaltstack),
#endif
};

/* What a library calls that looks at files and devices.  Others fail, and are not the child's end:
 * which ones a driver's library tries is its own affair. */
static const struct call_rule gauges_calls[] = {
	CALL(read), CALL(readv), CALL(pread64), CALL(lseek), CALL(openat), CALL_OLDER(open),
	CALL_OLDER(stat), CALL_OLDER(lstat), CALL_OLDER(access), CALL_OLDER(readlink),
	CALL_OLDER(poll), CALL_OLDER(getrlimit), CALL_OLDER(arch_prctl), CALL(close), CALL(fstat),
	CALL(fstatfs), CALL(statfs), CALL(newfstatat), CALL(statx), CALL(faccessat),
	CALL(faccessat2), CALL(readlinkat), CALL(getdents64), CALL(getcwd), CALL(fcntl),
	CALL(ioctl), CALL(mmap), CALL(munmap), CALL(mprotect), CALL(mremap), CALL(madvise),
	CALL(brk), CALL(futex), CALL(ppoll), CALL(nanosleep), CALL(clock_nanosleep),
	CALL(clock_gettime), CALL(clock_getres), CALL(gettimeofday), CALL(restart_syscall),
	CALL(getpid), CALL(getppid), CALL(gettid), CALL(getuid), CALL(geteuid), CALL(getgid),
	CALL(getegid), CALL(uname), CALL(sysinfo), CALL(getrandom), CALL(getcpu),
	CALL(sched_yield), CALL(sched_getaffinity), CALL(eventfd2), CALL(set_robust_list),
	CALL(rseq), CALL(rt_sigaction), CALL(rt_sigprocmask), CALL(rt_sigreturn),
	CALL(sigaltstack), CALL(exit), CALL(exit_group),
	/* clone3(), whose flags lie in memory, is refused: the C library then uses clone(). */
	CALL_WHEN(clone, "a thread", {CALL_HAS, 0, CLONE_THREAD}),
	/* Where there is no Landlock, files could else be written. */
	CALL_WHEN(write, "into the pipe", {CALL_EQUALS, 0, CHILD_GAUGES_FD}),
	CALL_WHEN(prlimit64, "to read limits", {CALL_EQUALS, 2, 0}),
};

/* clang-format on */

/* ---- files ---- */

/* Everything that the first version of Landlock knows. */
#define ALL_FILES (LANDLOCK_ACCESS_FS_MAKE_SYM * 2 - 1)
#define READ_AND_LIST (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define READ_AND_WRITE (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE)

#define STORE_RIGHTS                                                                               \
	(READ_AND_LIST | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |             \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE)
static const struct child_path store_paths[] = {{.path = ".", .rights = STORE_RIGHTS}};
static const struct child_path gauges_paths[] = {
	{.path = "/dev/nvidia*",
	 .rights = LANDLOCK_ACCESS_FS_WRITE_FILE,
	 .kind = CHILD_PATH_DEVICES},
	{.path = "/dev/dxg", .rights = LANDLOCK_ACCESS_FS_WRITE_FILE, .kind = CHILD_PATH_DEVICES},
};
static const struct child_path network_paths[] = {
	{.path = "/proc", .rights = LANDLOCK_ACCESS_FS_READ_FILE},
	{.path = "/dev/null", .rights = READ_AND_WRITE},
	{.path = "$TMPDIR",
	 .rights = READ_AND_WRITE | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_DIR,
	 .kind = CHILD_PATH_TEMPORARY},
};

/* ---- the table ---- */

#define FDS(...) .fd = {__VA_ARGS__}, .fd_count = ARRAY_SIZE(((struct child_fd[]){__VA_ARGS__}))
#define NO_STDIO                                                                                   \
	{0, NULL}, {1, NULL},                                                                      \
	{                                                                                          \
		2, NULL                                                                            \
	}
#define RESTART(steady_s, first_s, most_s)                                                         \
	.restart = {(steady_s) * NS_PER_SEC, (first_s) * NS_PER_SEC, (most_s) * NS_PER_SEC}
#define LIMITS(list) .limit = (list), .limit_count = ARRAY_SIZE(list)
#define CALLS(list) .call = (list), .call_count = ARRAY_SIZE(list)
#define PATHS(denied, list) .files_denied = (denied), .path = (list), .path_count = ARRAY_SIZE(list)
/* It ends with its starter, also with one that is killed. */
#define OF_STARTER .is_confined = true, .ignores_signals = true, .death_signal = SIGKILL
static const struct child_row rows[CHILD_KINDS] = {
	[CHILD_MEMORY] = {.name = "pyprofd: memory",
			  .why = "reads other processes' memory, mappings and texts below /proc: a "
				 "page that never comes, or a lock that is never released, blocks "
				 "this process alone",
			  FDS({CHILD_SOCKET_FD, "a socket to pyprofd"},
			      {CHILD_MEMORY_FD, "memory that both share"}),
			  RESTART(1, 1, 1),
			  OF_STARTER,
			  .capabilities = CAPABILITY_BIT(CAP_SYS_PTRACE) |
					  CAPABILITY_BIT(CAP_DAC_READ_SEARCH),
			  LIMITS(memory_limits),
			  CALLS(memory_calls),
			  .is_killed_by_others = true},
	/* CAP_CHECKPOINT_RESTORE is for /proc/PID/map_files, whose directory is the owner's;
	 * CAP_SETUID and CAP_SETGID are for files that root may not open. */
	[CHILD_OPENER] =
		{.name = "pyprofd: opener",
		 .why = "opens mapped files, their debug files and perf maps, looks at them and "
			"hands them to the next one: a file system that never answers blocks "
			"this process alone",
		 FDS({CHILD_SOCKET_FD, "a socket to pyprofd"},
		     {CHILD_MEMORY_FD, "memory that both share"},
		     {CHILD_PEER_FD, "a socket to `pyprofd: files`"}),
		 RESTART(1, 1, 1),
		 OF_STARTER,
		 .capabilities = CAPABILITY_BIT(CAP_SYS_PTRACE) |
				 CAPABILITY_BIT(CAP_DAC_READ_SEARCH) |
				 CAPABILITY_BIT(CAP_CHECKPOINT_RESTORE) |
				 CAPABILITY_BIT(CAP_SETUID) | CAPABILITY_BIT(CAP_SETGID),
		 LIMITS(opener_limits),
		 CALLS(opener_calls),
		 .is_killed_by_others = FILES_ARE_KILLED},
	[CHILD_FILES] =
		{.name = "pyprofd: files",
		 .why = "parses mapped files, their debug files, perf maps and code objects: "
			"whatever their bytes do to it, they do to a process that may do "
			"nothing",
		 FDS({CHILD_SOCKET_FD, "a socket to pyprofd"},
		     {CHILD_MEMORY_FD, "memory that both share"},
		     {CHILD_PEER_FD, "a socket to `pyprofd: opener`, over which files come"}),
		 RESTART(1, 1, 1),
		 OF_STARTER,
		 LIMITS(files_limits),
		 CALLS(files_calls),
		 .is_killed_by_others = FILES_ARE_KILLED},
	[CHILD_EVENTS] =
		{.name = "pyprofd: events",
		 .why = "opens perf events of CPUs where kernel.perf_event_paranoid is above "
			"2 and the kernel wants CAP_SYS_ADMIN for it: so pyprofd itself "
			"gives that up",
		 FDS({CHILD_SOCKET_FD, "a socket to pyprofd"}),
		 RESTART(1, 1, 1),
		 OF_STARTER,
		 .capabilities = CAPABILITY_BIT(CAP_SYS_ADMIN) | CAPABILITY_BIT(CAP_PERFMON),
		 LIMITS(memory_limits),
		 CALLS(events_calls),
		 .is_killed_by_others = true},
	[CHILD_STORE] =
		{.name = "pyprofd: store",
		 .why = "merges what is old in a store: it reads files that others may have "
			"written, takes its time, and may wait for a disk",
		 FDS({CHILD_STORE_FD, "the store's directory"},
		     {CHILD_STORE_SOCKET_FD, "a socket to pyprofd"}),
		 RESTART(0, 1, 600),
		 OF_STARTER,
		 .steps_back = true,
		 .user = CHILD_USER_OWNER,
		 PATHS(ALL_FILES, store_paths),
		 LIMITS(store_limits),
		 CALLS(store_calls)},
	[CHILD_GAUGES] =
		{.name = "pyprofd: gauges",
		 .why = "loads NVIDIA's management library: a vendor's code never runs with "
			"pyprofd's rights",
		 FDS(NO_STDIO, {CHILD_GAUGES_FD, "a pipe to pyprofd"}),
		 .has_bare_environment = true,
		 RESTART(60, 1, 600),
		 OF_STARTER,
		 .steps_back = true,
		 .user = CHILD_USER_NOBODY,
		 PATHS(ALL_FILES & ~READ_AND_LIST, gauges_paths),
		 LIMITS(gauges_limits),
		 CALLS(gauges_calls)},
	[CHILD_SERVER] =
		{.name = "pyprofd-serve",
		 .program = "pyprofd-serve",
		 .why = "answers HTTP and sends profiles, where the configuration has [http] "
			"or [push]",
		 FDS({CHILD_SETTINGS_FD, "its settings, a file in memory"}),
		 .is_forked = true,
		 .has_no_signals_blocked = true,
		 RESTART(60, 1, 60),
		 .is_confined = true,
		 PATHS(ALL_FILES, network_paths)},
	[CHILD_SOCKET] =
		{.name = "pyprofd: socket",
		 .why = "removes pyprofd-serve's unix socket when that ends, which may remove "
			"no file itself",
		 FDS({0, "a pipe from pyprofd-serve"}, {1, NULL}, {2, NULL}),
		 .is_forked = true,
		 .is_confined = true,
		 .ignores_signals = true},
	[CHILD_COMMAND] =
		{.name = "COMMAND",
		 .why = "is what `pyprofd -- COMMAND` profiles; it waits before its first "
			"instruction until its process is known",
		 .is_forked = true,
		 .has_no_signals_blocked = true},
	[CHILD_CAPTURE] = {.name = "pyprofd",
			   .program = "pyprofd",
			   .why = "captures for one pyprof of root's, where no pyprofd runs",
			   FDS({2, "a file in memory, for its messages"},
			       {CHILD_CAPTURE_FD, "a socket to pyprof"}),
			   .has_no_signals_blocked = true,
			   .has_own_group = true,
			   .has_hard_memory_limit = true,
			   .death_signal = SIGTERM},
	[CHILD_RECORDING] = {.name = "pyprofd",
			     .program = "pyprofd",
			     .why = "counts calls or lines for `pyprof calls --exact` and `pyprof "
				    "lines --exact`",
			     .has_no_signals_blocked = true,
			     .has_hard_memory_limit = true,
			     .death_signal = SIGTERM},
	[CHILD_FETCH] = {.name = "pyprof-fetch",
			 .program = "pyprof-fetch",
			 .why = "gets profiles of other machines for pyprof",
			 FDS({0, "a pipe from pyprof: it removes what it has when that is closed"},
			     {1, "a pipe to pyprof"},
			     {CHILD_SETTINGS_FD, "what to get, a file in memory"}),
			 .is_confined = true,
			 PATHS(ALL_FILES, network_paths)},
};

const struct child_row *child_row(enum child_kind kind)
{
	return &rows[kind];
}

enum child_kind child_named(const char *argv0)
{
	for (unsigned int kind = 0; argv0 && kind < CHILD_KINDS; kind++)
		if (rows[kind].is_confined && !rows[kind].program && kind != CHILD_SOCKET &&
		    !strcmp(argv0, rows[kind].name))
			return (enum child_kind)kind;
	return CHILD_KINDS;
}
