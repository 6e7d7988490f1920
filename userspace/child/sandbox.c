/* SPDX-License-Identifier: BSD-2-Clause */
#include "child/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/task.h"

#ifdef __x86_64__
#define OUR_ARCH AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000U /* <asm/unistd.h>: __X32_SYSCALL_BIT */
#else
#define OUR_ARCH AUDIT_ARCH_AARCH64
#define X32_BIT 0x80000000U
#endif

#define NOBODY 65534
/* Every GPU's driver opens this one first. */
#define CONTROL_DEVICE "/dev/nvidiactl"
#define LOWEST_NICE 19
#define IOPRIO_WHO_PROCESS 1 /* <linux/ioprio.h> is newer than what it names */
#define IOPRIO_IDLE (3 << 13)

/* ---- who it is ---- */

/* Not SCHED_IDLE: where the CPUs are busy all day nothing would be done. */
static void step_back(void)
{
	(void)setpriority(PRIO_PROCESS, 0, LOWEST_NICE);
	(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE);
}

static void ignore_signals(void)
{
	static const int all[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGXFSZ};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		(void)signal(all[i], SIG_IGN);
}

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

static int become(uid_t uid, gid_t gid)
{
	return setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid) ? -errno
											  : 0;
}

/* A process that is root's could write to root's files without any capability. */
static int become_user(enum child_user user)
{
	struct stat directory;

	if (user == CHILD_USER_SAME)
		return 0;
	if (user == CHILD_USER_NOBODY) {
		/* Without a terminal: a process that has one can type into it (TIOCSTI). */
		(void)setsid();
		return geteuid() ? 0 : become(NOBODY, devices_group());
	}
	/* The store's owner made the directory, and can be another one than runs pyprofd. */
	if (stat(".", &directory))
		return -errno;
	return geteuid() || !directory.st_uid ? 0 : become(directory.st_uid, directory.st_gid);
}

static int limit_all(const struct child_row *row)
{
	for (size_t i = 0; i < row->limit_count; i++) {
		const struct rlimit limit = {row->limit[i].most, row->limit[i].most};

#ifdef __SANITIZE_ADDRESS__ /* its shadow memory counts */
		if (row->limit[i].resource == RLIMIT_DATA)
			continue;
#endif
		if (setrlimit((__rlimit_resource_t)row->limit[i].resource, &limit))
			return -errno;
	}
	return 0;
}

/* ---- files: Landlock ---- */

#define READ_FILES LANDLOCK_ACCESS_FS_READ_FILE
#define READ_TREE (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITE_TREE                                                                                 \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |                            \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE)

int sandbox_add(struct sandbox_paths *paths, const char *path, bool may_write)
{
	if (!path)
		return 0;
	if (paths->count == SANDBOX_PATHS_MAX)
		return -E2BIG;
	paths->path[paths->count++] = (struct sandbox_path){path, may_write};
	return 0;
}

int sandbox_add_network(struct sandbox_paths *paths)
{
	static const char *const always[] = {"/etc/resolv.conf",
					     "/run/systemd/resolve",
					     "/etc/hosts",
					     "/etc/nsswitch.conf",
					     "/etc/host.conf",
					     "/etc/gai.conf",
					     "/etc/services",
					     "/etc/ld.so.cache",
					     "/lib",
					     "/lib64",
					     "/usr/lib",
					     "/usr/lib64",
					     "/etc/ssl",
					     "/etc/pki",
					     "/usr/share/ca-certificates",
					     "/usr/local/share/ca-certificates",
					     "/dev/urandom"};
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(always); i++)
		err = sandbox_add(paths, always[i], false);
	return err;
}

/* Allows something below a path; one that is not there, or no device, needs no right. */
static int allow(int rules, const char *path, uint64_t rights, bool is_device)
{
	OWNED_FD int fd = open(path, O_PATH | O_CLOEXEC);
	const struct landlock_path_beneath_attr beneath = {.allowed_access = rights,
							   .parent_fd = fd};
	struct stat stat;

	if (fd < 0 || (is_device && (fstat(fd, &stat) || !S_ISCHR(stat.st_mode))))
		return 0;
	return syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0)
		       ? -errno
		       : 0;
}

/* A directory of devices has the rights of MIG, which we need not. */
static int allow_devices(int rules, const struct child_path *path)
{
	glob_t found = {.gl_pathc = 0};
	int err = 0;

	if (!glob(path->path, 0, NULL, &found))
		for (size_t i = 0; !err && i < found.gl_pathc; i++)
			err = allow(rules, found.gl_pathv[i], path->rights, true);
	globfree(&found);
	return err;
}

static int allow_of_row(int rules, const struct child_path *path)
{
	const char *temporary = getenv("TMPDIR");

	switch (path->kind) {
	case CHILD_PATH_DEVICES:
		return allow_devices(rules, path);
	case CHILD_PATH_TEMPORARY:
		return allow(rules, temporary && temporary[0] ? temporary : "/tmp", path->rights,
			     false);
	default:
		return allow(rules, path->path, path->rights, false);
	}
}

/* Allows a file or a directory; rights of directories are none of a file's. */
static int allow_more(int rules, const struct sandbox_path *path)
{
	uint64_t rights = READ_TREE;
	struct stat status;

	if (stat(path->path, &status))
		return 0;
	if (!S_ISDIR(status.st_mode))
		rights = READ_FILES;
	else if (path->may_write)
		rights |= WRITE_TREE;
	return allow(rules, path->path, rights, false);
}

/* Returns 0; -ENOSYS, -EOPNOTSUPP: the kernel has no Landlock; -EPERM also: a filter of system
 * calls refuses it; -errno. */
static int enter_landlock(const struct child_row *row, const struct sandbox_paths *more)
{
	const struct landlock_ruleset_attr denied = {.handled_access_fs = row->files_denied};
	OWNED_FD int rules = (int)syscall(SYS_landlock_create_ruleset, &denied, sizeof(denied), 0);
	int err = 0;

	if (rules < 0)
		return -errno;
	for (size_t i = 0; !err && i < row->path_count; i++)
		err = allow_of_row(rules, &row->path[i]);
	for (size_t i = 0; !err && more && i < more->count; i++)
		err = allow_more(rules, &more->path[i]);
	if (!err && syscall(SYS_landlock_restrict_self, rules, 0))
		err = -errno;
	return err;
}

static int keep_to_files(const struct child_row *row, const struct sandbox_paths *more,
			 bool *ret_has_landlock)
{
	int err = row->files_denied ? enter_landlock(row, more) : -ENOSYS;

	if (ret_has_landlock && (!err || err == -ENOSYS || err == -EOPNOTSUPP))
		*ret_has_landlock = !err;
	/* A child with a filter of system calls is bound by that. */
	return err == -ENOSYS || err == -EOPNOTSUPP || (err == -EPERM && row->call) ? 0 : err;
}

/* ---- system calls: seccomp(2) ---- */

#define FILTER_MAX 512U

struct filter {
	struct sock_filter step[FILTER_MAX];
	unsigned short count;
};

static void add_step(struct filter *filter, struct sock_filter step)
{
	if (filter->count < FILTER_MAX)
		filter->step[filter->count] = step;
	filter->count++;
}

static void load(struct filter *filter, size_t offset)
{
	add_step(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* Goes over so many steps, where the value is, or has, that one, or is not, or has not. */
static void jump(struct filter *filter, uint16_t how, uint32_t value, size_t if_true,
		 size_t if_false)
{
	add_step(filter, (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | how | BPF_K), value,
						      (uint8_t)if_true, (uint8_t)if_false));
}

static void end_with(struct filter *filter, uint32_t action)
{
	add_step(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

static void check_machine(struct filter *filter)
{
	load(filter, offsetof(struct seccomp_data, arch));
	jump(filter, BPF_JEQ, OUR_ARCH, 1, 0);
	end_with(filter, SECCOMP_RET_KILL_PROCESS);
	load(filter, offsetof(struct seccomp_data, nr));
	jump(filter, BPF_JSET, X32_BIT, 0, 1);
	end_with(filter, SECCOMP_RET_KILL_PROCESS);
}

static size_t count_checks(const struct call_rule *rule)
{
	size_t count = 0;

	while (count < CALL_CHECKS_MAX && rule->check[count].test != CALL_ANY)
		count++;
	return count;
}

/* Each check has two steps; one that fails goes behind the rule, which loads the number anew. */
static void add_rule(struct filter *filter, const struct call_rule *rule)
{
	const size_t count = count_checks(rule);

	if (rule->number == CALL_NONE)
		return;
	jump(filter, BPF_JEQ, rule->number, 0, 2 * count + 1 + (count ? 1 : 0));
	for (size_t i = 0; i < count; i++) {
		const struct call_check *check = &rule->check[i];
		const size_t behind = 2 * (count - i - 1) + 1;
		const bool wants = check->test != CALL_LACKS;

		load(filter,
		     offsetof(struct seccomp_data, args) + check->argument * sizeof(uint64_t));
		jump(filter, check->test == CALL_EQUALS ? BPF_JEQ : BPF_JSET, check->value,
		     wants ? 0 : behind, wants ? behind : 0);
	}
	end_with(filter, rule->kills ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ALLOW);
	if (count)
		load(filter, offsetof(struct seccomp_data, nr));
}

static int filter_calls(const struct child_row *row)
{
	struct filter filter = {.count = 0};
	struct sock_fprog program = {.filter = filter.step};

	if (!row->call)
		return 0;
	check_machine(&filter);
	for (size_t i = 0; i < row->call_count; i++)
		add_rule(&filter, &row->call[i]);
	end_with(&filter,
		 row->is_killed_by_others ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | ENOSYS);
	if (filter.count > FILTER_MAX)
		return -E2BIG;
	program.len = filter.count;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

/* ---- all of it ---- */

int sandbox_enter(enum child_kind kind, const struct sandbox_paths *more, bool *ret_has_landlock)
{
	const struct child_row *row = child_row(kind);
	int err;

	if (row->ignores_signals)
		ignore_signals();
	if (row->steps_back)
		step_back();
	err = become_user(row->user);
	/* After the change of user, which takes the first two back. */
	if (!err && ((row->death_signal && prctl(PR_SET_PDEATHSIG, row->death_signal)) ||
		     prctl(PR_SET_DUMPABLE, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))
		err = -errno;
	/* While it may still look up paths. */
	if (!err)
		err = keep_to_files(row, more, ret_has_landlock);
	if (!err)
		err = capabilities_keep(row->capabilities, 0);
	if (!err)
		err = limit_all(row);
	return err ? err : filter_calls(row);
}

int sandbox_begin(enum child_kind kind)
{
	const struct child_row *row = child_row(kind);
	int last = STDERR_FILENO;

	/* Else it is "exe", as it was started. */
	(void)prctl(PR_SET_NAME, row->name);
	for (size_t i = 0; i < row->fd_count; i++)
		if (row->fd[i].number > last)
			last = row->fd[i].number;
	(void)syscall(SYS_close_range, last + 1, ~0U, 0);
	return sandbox_enter(kind, NULL, NULL);
}
