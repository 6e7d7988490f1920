/* SPDX-License-Identifier: BSD-2-Clause */
#include "options/host_check.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/io.h"
#include "child/perf_opener.h"

#define SMALL_FILE_BYTES 65536U
#define BTF_MAX_BYTES (64U << 20)

const struct host_paths host_paths_real = {
	.proc = "/proc",
	.btf = "/sys/kernel/btf/vmlinux",
	.lockdown = "/sys/kernel/security/lockdown",
	.cgroup = "/sys/fs/cgroup",
};

struct host {
	const struct host_paths *paths;
	const struct options *options;
	char *why;
	size_t why_size;
};

/* Writes the line for the user; returns err. */
__attribute__((format(printf, 3, 4))) static int because(const struct host *host, int err,
							 const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(host->why, host->why_size, format, args);
	va_end(args);
	return err;
}

static int read_proc(const struct host *host, const char *name, char **ret_text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", host->paths->proc, name);
	return read_file(path, SMALL_FILE_BYTES, ret_text, NULL);
}

/* Returns the text after "Name:\t" in a /proc/PID/status, or NULL. */
static const char *status_field(const char *status, const char *name)
{
	size_t size = strlen(name);

	for (const char *line = status; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, size) && line[size] == ':')
			return line + size + 1 + strspn(line + size + 1, "\t ");
	}
	return NULL;
}

/* Some kernels state an older version than what they can do (RHEL 8): the newest helper of 5.10
 * decides. */
static bool btf_has_name(const char *path, const char *name)
{
	OWNED_MEM char *btf = NULL;
	size_t size;

	if (read_file(path, BTF_MAX_BYTES, &btf, &size))
		return false;
	return memmem(btf, size, name, strlen(name) + 1);
}

static int check_kernel(const struct host *host)
{
	struct utsname name = {0};
	const char *release = host->paths->release;
	unsigned int major, minor;

	if (!release) {
		uname(&name);
		release = name.release;
	}
	if (sscanf(release, "%u.%u", &major, &minor) != 2)
		return because(host, -ENOSYS, "cannot read the kernel's version from '%s'",
			       release);
	if (major > 5 || (major == 5 && minor >= 10))
		return 0;
	if (btf_has_name(host->paths->btf, "BPF_FUNC_copy_from_user"))
		return 0;
	return because(host, -ENOSYS, "kernel %s is too old: pyprofd needs Linux 5.10 or later",
		       release);
}

static int check_btf(const struct host *host)
{
	if (!access(host->paths->btf, R_OK))
		return 0;
	return because(
		host, -ENOENT,
		"the kernel has no BTF (%s: %s): boot one built with CONFIG_DEBUG_INFO_BTF=y",
		host->paths->btf, strerror(errno));
}

static int check_lockdown(const struct host *host)
{
	OWNED_MEM char *text = NULL;

	/* Most kernels have no such file: not locked down. */
	if (read_file(host->paths->lockdown, SMALL_FILE_BYTES, &text, NULL))
		return 0;
	if (!strstr(text, "[confidentiality]"))
		return 0;
	return because(
		host, -EPERM,
		"the kernel is locked down (%s: confidentiality): BPF may not read memory; boot "
		"with lockdown=integrity or none",
		host->paths->lockdown);
}

struct capability {
	const char *name;
	unsigned int bit;
	unsigned int substitute; /* another capability that suffices */
	bool kernel_only;	 /* needed for kernel frames only */
};

/* capabilities(7).  /proc/PID/map_files: CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN (5.9).  Addresses
 * in /proc/kallsyms: CAP_SYSLOG alone. */
static const struct capability capability_table[] = {
	{"CAP_BPF", CAP_BPF, CAP_SYS_ADMIN, false},
	{"CAP_PERFMON", CAP_PERFMON, CAP_SYS_ADMIN, false},
	{"CAP_SYS_PTRACE", CAP_SYS_PTRACE, CAP_SYS_PTRACE, false},
	{"CAP_SYSLOG", CAP_SYSLOG, CAP_SYSLOG, true},
	{"CAP_DAC_READ_SEARCH", CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE, false},
	{"CAP_CHECKPOINT_RESTORE", CAP_CHECKPOINT_RESTORE, CAP_SYS_ADMIN, false},
};

/* Lists the names of missing capabilities, separated by ", "; returns their number. */
static unsigned int list_missing(const struct host *host, uint64_t held, char *list, size_t size)
{
	const struct capability *capability;
	unsigned int count = 0;
	size_t used = 0;

	list[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(capability_table); i++) {
		capability = &capability_table[i];
		if ((held >> capability->bit | held >> capability->substitute) & 1)
			continue;
		if (capability->kernel_only && host->options->no_kernel)
			continue;
		used += (size_t)snprintf(list + used, size - used, "%s%s", count ? ", " : "",
					 capability->name);
		count++;
	}
	return count;
}

static int check_capabilities(const struct host *host)
{
	OWNED_MEM char *status = NULL;
	const char *effective, *uid;
	char list[256];
	uint64_t held;
	int err;

	err = read_proc(host, "self/status", &status);
	if (err)
		return because(host, err, "cannot read %s/self/status: %s", host->paths->proc,
			       strerror(-err));
	effective = status_field(status, "CapEff");
	uid = status_field(status, "Uid");
	if (!effective || !uid)
		return because(host, -EPERM, "%s/self/status does not list the capabilities",
			       host->paths->proc);
	held = strtoull(effective, NULL, 16);
	if (!list_missing(host, held, list, sizeof(list)))
		return 0;
	/* Uid: real, effective, saved, file system. */
	uid += strcspn(uid, "\t ");
	if (strtoul(uid, NULL, 10) == 0)
		return because(
			host, -EPERM,
			"root lacks %s: the container or service that pyprofd runs in must grant "
			"it",
			list);
	return because(host, -EPERM,
		       "not root and lacks %s: run it with sudo, or grant what is missing", list);
}

/* BPF and perf check capabilities in the first user namespace, whatever this one grants. */
static int check_user_namespace(const struct host *host)
{
	OWNED_MEM char *map = NULL;
	unsigned long inside, outside, count;

	if (read_proc(host, "self/uid_map", &map))
		return 0;
	if (sscanf(map, "%lu %lu %lu", &inside, &outside, &count) != 3)
		return 0;
	if (inside == 0 && outside == 0 && count == UINT32_MAX)
		return 0;
	return because(host, -EPERM,
		       "in a user namespace (rootless container): root here may not use BPF; run "
		       "pyprofd on the host");
}

/* The kernel side uses pids of the first pid namespace; in another one /proc shows others. */
#define FIRST_PID_NAMESPACE "pid:[4026531836]" /* PROC_PID_INIT_INO: include/linux/proc_ns.h */

static int check_pid_namespace(const struct host *host)
{
	char path[PATH_MAX], name[64];
	ssize_t size;

	snprintf(path, sizeof(path), "%s/self/ns/pid", host->paths->proc);
	size = readlink(path, name, sizeof(name) - 1);
	if (size < 0)
		return 0;
	name[size] = '\0';
	if (!strcmp(name, FIRST_PID_NAMESPACE))
		return 0;
	return because(
		host, -EPERM,
		"in a pid namespace (%s): the container must see the host's processes: docker run "
		"--pid=host, Kubernetes hostPID: true",
		path);
}

/* Up to 5.10 kernel maps count as locked memory.  This is only a warning, because the limit may
 * suffice. */
static int warn_of_locked_memory(const struct host *host)
{
	OWNED_MEM char *status = NULL;
	struct utsname name = {0};
	unsigned int major, minor;
	const char *effective;
	struct rlimit limit;

	uname(&name);
	if (sscanf(host->paths->release ?: name.release, "%u.%u", &major, &minor) != 2)
		return 0;
	if (major > 5 || minor > 10 || getrlimit(RLIMIT_MEMLOCK, &limit) ||
	    limit.rlim_max == RLIM_INFINITY || read_proc(host, "self/status", &status))
		return 0;
	effective = status_field(status, "CapEff");
	if (!effective || strtoull(effective, NULL, 16) >> CAP_SYS_RESOURCE & 1)
		return 0;
	return because(
		host, 0,
		"without CAP_SYS_RESOURCE kernel %u.%u may refuse the maps (ulimit -l is %llu KiB)",
		major, minor, (unsigned long long)limit.rlim_max >> 10);
}

/* Measured on two CPUs: the maps, programs and links take 45, each CPU's events 2 to 4, and what
 * is read and written some more at a time.  As many again are for files that are mapped somewhere
 * (attach/file_descriptors.c).  tests/hostile/faults.py holds it against what a run needs. */
#define FILES_MIN 116U
#define FILES_PER_CPU 8U
/* With less the counters of a window cannot be read. */
#define ADDRESS_SPACE_MIN_MIB 64U

/* A limit that is too low is told here, because later it looks like any other error. */
static int check_limits(const struct host *host)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN); /* -1: not known */
	const unsigned long long files = FILES_MIN + (unsigned long)(cpus + 1) * FILES_PER_CPU;
	struct rlimit limit;

	/* The soft limit is raised to the hard one. */
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_max < files)
		return because(
			host, -EMFILE,
			"pyprofd needs at least %llu open files on this machine and may have "
			"%llu: raise the limit (ulimit -n, LimitNOFILE= in a unit)",
			files, (unsigned long long)limit.rlim_max);
	if (!getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur < (rlim_t)ADDRESS_SPACE_MIN_MIB << 20)
		return because(host, -ENOMEM,
			       "pyprofd needs at least %u MiB of address space and may have %llu: "
			       "raise the limit (ulimit -v, LimitAS= in a unit)",
			       ADDRESS_SPACE_MIN_MIB, (unsigned long long)limit.rlim_cur >> 20);
	return 0;
}

static int check_rate(const struct host *host)
{
	OWNED_MEM char *text = NULL;
	unsigned long limit;

	if (read_proc(host, "sys/kernel/perf_event_max_sample_rate", &text))
		return 0;
	limit = strtoul(text, NULL, 10);
	if (host->options->hz <= limit)
		return 0;
	return because(host, -ERANGE,
		       "--hz %u is above kernel.perf_event_max_sample_rate = %lu: lower it, or run "
		       "'sysctl kernel.perf_event_max_sample_rate=%u'",
		       host->options->hz, limit, host->options->hz);
}

void host_explain_perf(const struct host_paths *paths, int err, char *why, size_t why_size)
{
	const struct host host = {.paths = paths, .why = why, .why_size = why_size};
	OWNED_MEM char *text = NULL;
	long paranoid;

	if (err == -EACCES && !read_proc(&host, "sys/kernel/perf_event_paranoid", &text)) {
		paranoid = strtol(text, NULL, 10);
		if (paranoid > PERF_PARANOID_MAX) {
			because(&host, err,
				"kernel.perf_event_paranoid = %ld: this kernel wants CAP_SYS_ADMIN "
				"for perf "
				"events: grant it, or run 'sysctl kernel.perf_event_paranoid=%d'",
				paranoid, PERF_PARANOID_MAX);
			return;
		}
	}
	because(&host, err, "cannot watch mappings (perf_event_open): %s", strerror(-err));
}

static int check_pid(const struct host *host, pid_t pid)
{
	OWNED_MEM char *status = NULL;
	const char *tgid, *state, *threads;
	char name[32];
	int err;

	snprintf(name, sizeof(name), "%d/status", pid);
	err = read_proc(host, name, &status);
	if (err == -ENOENT || err == -ESRCH)
		return because(host, -ESRCH, "--pid %d: no such process", pid);
	if (err)
		return because(host, err, "--pid %d: %s", pid, strerror(-err));
	/* /proc/TID exists for threads too, although it is not listed. */
	tgid = status_field(status, "Tgid");
	if (tgid && strtol(tgid, NULL, 10) != pid)
		return because(host, -ESRCH, "--pid %d is a thread: give its process, --pid %ld",
			       pid, strtol(tgid, NULL, 10));
	state = status_field(status, "State");
	threads = status_field(status, "Threads");
	/* The state is that of the main thread, which may end before the others. */
	if (state && (*state == 'Z' || *state == 'X') &&
	    (!threads || strtol(threads, NULL, 10) <= 1))
		return because(host, -ESRCH, "--pid %d: this process has ended", pid);
	return 0;
}

static int check_pids(const struct host *host)
{
	int err = 0;

	for (size_t i = 0; i < host->options->pid_count && !err; i++)
		err = check_pid(host, host->options->pid[i]);
	return err;
}

static bool is_cgroup(const char *directory)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/cgroup.procs", directory) < PATH_MAX &&
	       !access(path, F_OK);
}

int host_find_cgroup(const struct host_paths *paths, const char *name, char **ret_path)
{
	/* cgroup2 is in the first place when alone, in the second when beside cgroup 1. */
	static const char *const places[] = {"", "/unified"};
	const char *found = name[0] == '/' && is_cgroup(name) ? name : NULL;
	char below[PATH_MAX];

	for (size_t i = 0; !found && i < ARRAY_SIZE(places); i++) {
		snprintf(below, sizeof(below), "%s%s/%s", paths->cgroup, places[i],
			 name + strspn(name, "/"));
		found = is_cgroup(below) ? below : NULL;
	}
	if (!found)
		return -ENOENT;
	*ret_path = strdup(found);
	return *ret_path ? 0 : -ENOMEM;
}

static int check_cgroup(const struct host *host)
{
	const char *name = host->options->cgroup;
	OWNED_MEM char *path = NULL;
	struct stat status;
	int err;

	if (!name)
		return 0;
	err = host_find_cgroup(host->paths, name, &path);
	if (!err)
		return 0;
	if (err == -ENOENT && !stat(name, &status))
		return because(host, -ENOENT,
			       "--cgroup '%s' is not a cgroup: it has no cgroup.procs", name);
	return because(host, err, "--cgroup '%s': not found, neither as it stands nor below %s",
		       name, host->paths->cgroup);
}

/* Returns 0, -ENOENT, or -EACCES: it exists, but cannot be executed. */
static int check_executable(const char *path)
{
	struct stat status;

	if (stat(path, &status))
		return errno == EACCES ? -EACCES : -ENOENT;
	if (!S_ISREG(status.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS))
		return -EACCES;
	return 0;
}

/* Finds the file that execvp() would run.  Heap.  Returns 0, -ENOENT, -EACCES, -ENOMEM. */
static int find_command(const char *name, char **ret_path)
{
	const char *directories = getenv("PATH") ?: "/usr/local/bin:/usr/bin:/bin";
	int err, result = -ENOENT;
	size_t size;

	if (strchr(name, '/')) {
		err = check_executable(name);
		if (err)
			return err;
		*ret_path = strdup(name);
		return *ret_path ? 0 : -ENOMEM;
	}
	for (;; directories++) {
		char path[PATH_MAX];

		size = strcspn(directories, ":");
		/* An empty entry is the current directory. */
		snprintf(path, sizeof(path), "%.*s/%s", size ? (int)size : 1,
			 size ? directories : ".", name);
		err = check_executable(path);
		if (!err) {
			*ret_path = strdup(path);
			return *ret_path ? 0 : -ENOMEM;
		}
		if (err == -EACCES)
			result = -EACCES;
		directories += size;
		if (!*directories)
			return result;
	}
}

static int check_command(const struct host *host)
{
	OWNED_MEM char *path = NULL;
	const char *name;
	int err;

	if (!host->options->command)
		return 0;
	name = host->options->command[0];
	err = find_command(name, &path);
	if (err == -ENOENT)
		return because(host, err, "command '%s' not found%s", name,
			       strchr(name, '/') ? "" : " in PATH");
	if (err)
		return because(host, err, "command '%s' cannot be executed: %s", name,
			       strerror(-err));
	return 0;
}

static int check_writable(const struct host *host, const char *directory)
{
	int err;

	if (!faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS))
		return 0;
	err = -errno;
	if (err == -EROFS)
		return because(host, err, "--output '%s': the file system of '%s' is read-only",
			       host->options->output, directory);
	return because(host, err, "--output '%s': cannot write to '%s': %s", host->options->output,
		       directory, strerror(-err));
}

/* Only the last component of the path is ever created. */
static int check_parent(const struct host *host)
{
	const char *output = host->options->output;
	OWNED_MEM char *copy = strdup(output);
	const char *parent = copy ? dirname(copy) : NULL;
	struct stat status;
	int err;

	if (!parent)
		return because(host, -ENOMEM, "%s", strerror(ENOMEM));
	if (stat(parent, &status)) {
		err = -errno;
		if (err == -ENOENT)
			return because(
				host, err,
				"--output '%s': the directory '%s' does not exist: create it first",
				output, parent);
		return because(host, err, "--output '%s': '%s': %s", output, parent,
			       strerror(-err));
	}
	if (!S_ISDIR(status.st_mode))
		return because(host, -ENOTDIR, "--output '%s': '%s' is not a directory", output,
			       parent);
	return check_writable(host, parent);
}

static int check_standard_output(const struct host *host)
{
	if (!isatty(STDOUT_FILENO))
		return 0;
	return because(
		host, -EINVAL,
		"--output -: a profile is binary and standard output is a terminal: send it to a "
		"file or a pipe");
}

static int check_output(const struct host *host)
{
	const char *output = host->options->output;
	bool wants_directory = host->options->output_kind == OPTIONS_OUTPUT_DIRECTORY;
	struct stat status;

	if (host->options->output_kind == OPTIONS_OUTPUT_NONE)
		return 0;
	if (!strcmp(output, "-"))
		return check_standard_output(host);
	if (stat(output, &status)) {
		if (errno != ENOENT && errno != ENOTDIR)
			return because(host, -errno, "--output '%s': %s", output, strerror(errno));
		return check_parent(host);
	}
	if (wants_directory && !S_ISDIR(status.st_mode))
		return because(host, -ENOTDIR, "--output '%s' is not a directory", output);
	if (wants_directory)
		return check_writable(host, output);
	/* A rename would replace /dev/null by a file. */
	if (!S_ISREG(status.st_mode))
		return because(
			host, -EINVAL,
			"--output '%s' is not a regular file: give a file name, or - for standard "
			"output",
			output);
	return check_parent(host);
}

/* What no option can fix comes first. */
static const struct {
	const char *name;
	int (*run)(const struct host *host);
} checks[] = {
	{"kernel", check_kernel},
	{"BTF", check_btf},
	{"lockdown", check_lockdown},
	{"capabilities", check_capabilities},
	{"user namespace", check_user_namespace},
	{"pid namespace", check_pid_namespace},
	{"limits", check_limits},
	{"rate", check_rate},
	{"pid", check_pids},
	{"cgroup", check_cgroup},
	{"command", check_command},
	{"output", check_output},
	{"locked memory", warn_of_locked_memory},
};

/* Runs one check, which leaves `why` empty when it has nothing to say. */
static int run_check(const struct host *host, size_t index)
{
	int err = checks[index].run(host);

	if (err && !host->why[0])
		return because(host, err, "cannot find out what this host allows: %s",
			       strerror(-err));
	return err;
}

int host_check(const struct host_paths *paths, const struct options *options, char *why,
	       size_t why_size)
{
	const struct host host = {
		.paths = paths, .options = options, .why = why, .why_size = why_size};
	int err = 0;

	why[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(checks) && !err; i++)
		err = run_check(&host, i);
	return err;
}

void host_check_each(const struct host_paths *paths, const struct options *options,
		     void (*tell)(void *context, const char *name, int err, const char *why),
		     void *context)
{
	char why[HOST_WHY_BYTES];
	const struct host host = {
		.paths = paths, .options = options, .why = why, .why_size = sizeof(why)};

	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		int err;

		why[0] = '\0';
		err = run_check(&host, i);
		tell(context, checks[i].name, err, why);
	}
}
