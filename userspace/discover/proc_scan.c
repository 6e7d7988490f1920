/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/proc_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"
#include "base/who_answers.h"

/* ---- /proc/PID/cgroup ---- */

#define ID_DIGITS (CONTAINER_ID_BYTES - 1U)
#define SCOPE ".scope"
#define LOWER_CASE "abcdefghijklmnopqrstuvwxyz"
#define LOWER_HEX "0123456789abcdef"

static bool is_all(const char *text, size_t size, const char *accept)
{
	for (size_t i = 0; i < size; i++)
		if (!text[i] || !strchr(accept, text[i]))
			return false;
	return true;
}

static bool is_runtime_prefix(const char *text, size_t size)
{
	static const char monitor[] = "conmon-";
	const size_t monitor_size = sizeof(monitor) - 1;

	if (!size || text[size - 1] == ':')
		return true;
	if (text[size - 1] != '-' || !is_all(text, size, LOWER_CASE "-"))
		return false;
	return size < monitor_size ||
	       memcmp(text + size - monitor_size, monitor, monitor_size) != 0;
}

static bool component_id(const char *text, size_t size, char ret_id[CONTAINER_ID_BYTES])
{
	const size_t scope = sizeof(SCOPE) - 1;
	const char *id;

	if (size > scope && !memcmp(text + size - scope, SCOPE, scope))
		size -= scope;
	if (size < ID_DIGITS)
		return false;
	id = text + size - ID_DIGITS;
	if (!is_all(id, ID_DIGITS, LOWER_HEX) || !is_runtime_prefix(text, size - ID_DIGITS))
		return false;
	memcpy(ret_id, id, ID_DIGITS);
	ret_id[ID_DIGITS] = '\0';
	return true;
}

bool cgroup_is_user_manager(const char *part, size_t size)
{
	static const char prefix[] = "user@", suffix[] = ".service";
	const size_t tail = sizeof(suffix) - 1;

	return size > sizeof(prefix) && !memcmp(part, prefix, sizeof(prefix) - 1) && size > tail &&
	       !memcmp(part + size - tail, suffix, tail);
}

size_t cgroup_of_root(const char *path)
{
	static const char slice[] = "user.slice";
	const char *part = path;

	while (*part) {
		const size_t size = strcspn(part, "/");
		const bool is_of_user = cgroup_is_user_manager(part, size) ||
					(size == sizeof(slice) - 1 && !memcmp(part, slice, size));

		part += size + (part[size] == '/');
		if (is_of_user)
			break;
	}
	return (size_t)(part - path);
}

int container_id_find(const char *cgroup, char ret_id[CONTAINER_ID_BYTES])
{
	const char *end = cgroup + cgroup_of_root(cgroup);

	while (end > cgroup) {
		const char *slash = memrchr(cgroup, '/', (size_t)(end - cgroup));
		const char *first = slash ? slash + 1 : cgroup;

		if (component_id(first, (size_t)(end - first), ret_id))
			return 0;
		end = slash ? slash : cgroup;
	}
	return -ENOENT;
}

enum line_rank { RANK_NONE, RANK_ROOT, RANK_OTHER, RANK_PIDS, RANK_SYSTEMD, RANK_V2, RANK_ID = 16 };

static bool has_controller(const char *list, size_t size, const char *name)
{
	const size_t name_size = strlen(name);

	while (size) {
		const char *comma = memchr(list, ',', size);
		size_t one = comma ? (size_t)(comma - list) : size;

		if (one == name_size && !memcmp(list, name, one))
			return true;
		list += one + (comma ? 1 : 0);
		size -= one + (comma ? 1 : 0);
	}
	return false;
}

/* hierarchy-ID:controller-list:cgroup-path */
static int rank_line(const char *line, size_t size, struct container *ret_container)
{
	const char *list = memchr(line, ':', size);
	const char *path = list ? memchr(list + 1, ':', (size_t)(line + size - list - 1)) : NULL;
	size_t list_size, path_size;
	int rank;

	if (!path)
		return RANK_NONE;
	list_size = (size_t)(path - ++list);
	path_size = (size_t)(line + size - ++path);
	if (!path_size || *path != '/' || path_size >= CGROUP_PATH_MAX_BYTES ||
	    memchr(path, '\0', path_size))
		return RANK_NONE;
	memcpy(ret_container->cgroup, path, path_size);
	ret_container->cgroup[path_size] = '\0';
	ret_container->id[0] = '\0';
	if (!list_size)
		rank = RANK_V2;
	else if (has_controller(list, list_size, "name=systemd"))
		rank = RANK_SYSTEMD;
	else
		rank = has_controller(list, list_size, "pids") ? RANK_PIDS : RANK_OTHER;
	if (!container_id_find(ret_container->cgroup, ret_container->id))
		return rank + RANK_ID;
	return path_size == 1 ? RANK_ROOT : rank;
}

void container_parse(const char *text, size_t size, struct container *ret_container)
{
	struct container best = {0}, container;
	struct cursor rest = {text, text + size}, line;
	int best_rank = RANK_NONE;

	while (cursor_line(&rest, &line)) {
		int rank = rank_line(line.at, (size_t)(line.end - line.at), &container);

		if (rank > best_rank) {
			best_rank = rank;
			best = container;
		}
	}
	*ret_container = best;
}

/* The user who answers for what a process takes from tables that all share.  No state. */

#define NAMESPACES_MAX 33U /* user_namespaces(7): they nest 32 deep */

/* Returns the owner of the outermost user namespace that somebody else than root owns; 0: none. */
static uint32_t namespace_owner(uint32_t tgid)
{
	uint32_t owner = 0;
	char path[32];
	int inner;

	snprintf(path, sizeof(path), "/proc/%u/ns/user", tgid);
	inner = open(path, O_RDONLY | O_CLOEXEC);
	for (unsigned int i = 0; i < NAMESPACES_MAX && inner >= 0; i++) {
		OWNED_FD int fd = inner;
		uid_t uid;

		if (!ioctl(fd, NS_GET_OWNER_UID, &uid) && uid)
			owner = uid;
		inner = ioctl(fd, NS_GET_PARENT);
	}
	if (inner >= 0)
		close(inner);
	return owner;
}

uint32_t process_user(const struct process *process)
{
	struct proc_status status;
	uint32_t owner;

	if (process->is_user_known)
		return process->user;
	if (proc_status_read(process->id.tgid, &status) || status.tgid != process->id.tgid)
		return who_answers(process->uid);
	owner = namespace_owner(process->id.tgid);
	if (owner)
		return who_answers(owner);
	/* Anybody may start a set-user-ID program. */
	return who_answers(status.uid ? status.uid : status.real_uid);
}

uint32_t process_user_kept(struct process *process)
{
	process->user = process_user(process);
	process->is_user_known = true;
	return process->user;
}

#define STAT_MAX_BYTES 4096U
#define STATUS_MAX_BYTES (256U << 10) /* Groups and Cpus_allowed can be long */
#define CGROUP_MAX_BYTES (128U << 10)
#define PF_KTHREAD 0x00200000U /* include/linux/sched.h */
/* Covers rounding to ticks, and the time between a process's start and its fork event. */
#define START_SLACK_NS (30 * NS_PER_MS)

/* Numbers of proc_pid_stat(5). */
enum stat_field {
	STAT_STATE = 3,
	STAT_PPID = 4,
	STAT_FLAGS = 9,
	STAT_UTIME = 14,
	STAT_STIME = 15,
	STAT_THREADS = 20,
	STAT_STARTTIME = 22,
};

static void copy_comm(const char *text, size_t size, char comm[PP_COMM_BYTES])
{
	size_t used = size < PP_COMM_BYTES ? size : PP_COMM_BYTES - 1;

	memset(comm, 0, PP_COMM_BYTES);
	memcpy(comm, text, used);
}

static uint64_t ticks_to_ns(uint64_t ticks, uint64_t ticks_per_sec)
{
	uint64_t seconds = ticks / ticks_per_sec;

	if (seconds > UINT64_MAX / NS_PER_SEC - 1)
		return 0;
	return seconds * NS_PER_SEC + ticks % ticks_per_sec * NS_PER_SEC / ticks_per_sec;
}

/* The fields after the name that we use. */
struct stat_fields {
	char state;
	uint64_t ppid, flags, user_ticks, system_ticks, threads, start_ticks;
};

static bool take_field(int field, struct cursor value, struct stat_fields *fields)
{
	switch (field) {
	case STAT_STATE:
		fields->state = *value.at;
		return true;
	case STAT_PPID:
		return cursor_number(&value, 10, &fields->ppid);
	case STAT_FLAGS:
		return cursor_number(&value, 10, &fields->flags);
	case STAT_UTIME:
		return cursor_number(&value, 10, &fields->user_ticks);
	case STAT_STIME:
		return cursor_number(&value, 10, &fields->system_ticks);
	case STAT_THREADS:
		return cursor_number(&value, 10, &fields->threads);
	case STAT_STARTTIME:
		return cursor_number(&value, 10, &fields->start_ticks);
	default:
		return true;
	}
}

static bool take_fields(struct cursor rest, struct stat_fields *fields)
{
	for (int field = STAT_STATE; field <= STAT_STARTTIME; field++) {
		if (!cursor_char(&rest, ' ') || rest.at == rest.end ||
		    !take_field(field, rest, fields))
			return false;
		while (rest.at < rest.end && *rest.at != ' ')
			rest.at++;
	}
	return true;
}

int proc_stat_parse(const char *text, size_t size, uint64_t ticks_per_sec, uint64_t boot_offset_ns,
		    struct proc_stat *ret_stat)
{
	struct cursor rest = {text, text + size};
	/* comm may contain anything, even parentheses and spaces. */
	const char *open = memchr(text, '(', size), *close = memrchr(text, ')', size);
	struct stat_fields fields = {0};
	struct proc_stat stat = {0};
	uint64_t started_ns;

	if (!cursor_u32(&rest, &stat.pid) || !open || !close || close < open)
		return -EBADMSG;
	rest.at = close + 1;
	if (!take_fields(rest, &fields) || fields.ppid > UINT32_MAX)
		return -EBADMSG;
	copy_comm(open + 1, (size_t)(close - open - 1), stat.comm);
	stat.ppid = (uint32_t)fields.ppid;
	/* The state is that of the main thread, which may end before the others. */
	stat.is_zombie = strchr("ZXx", fields.state) && fields.threads <= 1;
	stat.is_kernel_thread = fields.flags & PF_KTHREAD;
	started_ns = ticks_to_ns(fields.start_ticks, ticks_per_sec); /* since boot */
	stat.start_ns = started_ns > boot_offset_ns ? started_ns - boot_offset_ns : 0;
	stat.cpu_ns = ticks_to_ns(fields.user_ticks, ticks_per_sec) +
		      ticks_to_ns(fields.system_ticks, ticks_per_sec);
	*ret_stat = stat;
	return 0;
}

static bool take_blank(struct cursor *text)
{
	return cursor_char(text, '\t') || cursor_char(text, ' ');
}

/* Finds the text after "KEY:\t" of a line. */
static bool value_of(struct cursor line, const char *key, struct cursor *ret_value)
{
	*ret_value = line;
	if (!cursor_text(ret_value, key) || ret_value->at == ret_value->end)
		return false;
	while (take_blank(ret_value))
		;
	return true;
}

/* Reads the nth number (from 0), or the last one when there are fewer. */
static bool nth_number(struct cursor value, unsigned int nth, uint32_t *ret_number)
{
	if (!cursor_u32(&value, ret_number))
		return false;
	for (; nth && take_blank(&value); nth--)
		if (!cursor_u32(&value, ret_number))
			return false;
	return value.at == value.end || take_blank(&value);
}

/* What is one number of a line; the first ones must be there. */
enum status_number { STATUS_TGID, STATUS_PPID, STATUS_REAL_UID, STATUS_UID, STATUS_INNER };
static const struct {
	const char *key;
	unsigned int nth;
	size_t offset; /* in struct proc_status */
} status_numbers[] = {
	[STATUS_TGID] = {"Tgid:", 0, offsetof(struct proc_status, tgid)},
	[STATUS_PPID] = {"PPid:", 0, offsetof(struct proc_status, ppid)},
	/* real, effective, saved, file system */
	[STATUS_REAL_UID] = {"Uid:", 0, offsetof(struct proc_status, real_uid)},
	[STATUS_UID] = {"Uid:", 1, offsetof(struct proc_status, uid)},
	[STATUS_INNER] = {"NSpid:", UINT32_MAX, offsetof(struct proc_status, inner_pid)},
};

static void take_status_line(struct cursor line, struct proc_status *status, unsigned int *has)
{
	struct cursor value;
	uint64_t switches;

	for (unsigned int i = 0; i < ARRAY_SIZE(status_numbers); i++) {
		uint32_t *number = (uint32_t *)((char *)status + status_numbers[i].offset);

		if (!value_of(line, status_numbers[i].key, &value))
			continue;
		*has &= ~(1U << i);
		*has |= (unsigned int)nth_number(value, status_numbers[i].nth, number) << i;
	}
	if (value_of(line, "State:", &value) && value.at < value.end) {
		status->is_runnable = *value.at == 'R';
		status->has_ended = memchr("ZXx", *value.at, 3);
	}
	if ((value_of(line, "voluntary_ctxt_switches:", &value) ||
	     value_of(line, "nonvoluntary_ctxt_switches:", &value)) &&
	    cursor_number(&value, 10, &switches))
		status->switches += switches;
}

int proc_status_parse(const char *text, size_t size, struct proc_status *ret_status)
{
	const unsigned int needed = (1U << STATUS_INNER) - 1;
	struct cursor rest = {text, text + size}, line;
	struct proc_status status = {0};
	unsigned int has = 0;

	while (cursor_line(&rest, &line))
		take_status_line(line, &status, &has);
	if ((has & needed) != needed)
		return -EBADMSG;
	if (!(has >> STATUS_INNER & 1)) /* no CONFIG_PID_NS */
		status.inner_pid = status.tgid;
	*ret_status = status;
	return 0;
}

static int read_proc(uint32_t pid, const char *name, size_t max_bytes, char **ret_text,
		     size_t *ret_size)
{
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	err = read_file(path, max_bytes, ret_text, ret_size);
	return err == -ENOENT ? -ESRCH : err;
}

int proc_stat_read(uint32_t pid, struct proc_stat *ret_stat)
{
	const uint64_t boot_ns = clock_ns(CLOCK_BOOTTIME), now_ns = mono_ns();
	const long ticks = sysconf(_SC_CLK_TCK);
	OWNED_MEM char *text = NULL;
	size_t size;
	int err;

	err = read_proc(pid, "stat", STAT_MAX_BYTES, &text, &size);
	if (err)
		return err;
	return proc_stat_parse(text, size, ticks > 0 ? (uint64_t)ticks : 100,
			       boot_ns > now_ns ? boot_ns - now_ns : 0, ret_stat);
}

static int read_status(uint32_t pid, const char *name, struct proc_status *ret_status)
{
	OWNED_MEM char *text = NULL;
	size_t size;
	int err = read_proc(pid, name, STATUS_MAX_BYTES, &text, &size);

	return err ? err : proc_status_parse(text, size, ret_status);
}

int proc_status_read(uint32_t pid, struct proc_status *ret_status)
{
	return read_status(pid, "status", ret_status);
}

int thread_status_read(uint32_t tgid, uint32_t tid, struct proc_status *ret_status)
{
	char name[32];

	snprintf(name, sizeof(name), "task/%u/status", tid);
	return read_status(tgid, name, ret_status);
}

int proc_scan_step(struct proc_scanning *scanning,
		   int (*callback)(void *context, const struct proc_stat *stat), void *context,
		   const struct slice *slice)
{
	struct dirent *item;

	if (!scanning->dir)
		scanning->dir = opendir("/proc");
	if (!scanning->dir)
		return -errno;
	for (errno = 0; (item = readdir(scanning->dir)); errno = 0) {
		struct cursor name = {item->d_name, item->d_name + strlen(item->d_name)};
		struct proc_stat stat;
		uint32_t pid;
		int err;

		if (!cursor_u32(&name, &pid) || name.at != name.end)
			continue;
		/* The process may go between the listing and the reading. */
		err = proc_stat_read(pid, &stat) ? 0 : callback(context, &stat);
		if (err)
			return err;
		if (slice_is_over(slice))
			return 1;
	}
	return -errno;
}

void proc_scanning_end(struct proc_scanning *scanning)
{
	if (scanning->dir)
		closedir(scanning->dir);
	*scanning = (struct proc_scanning){};
}

int proc_scan(int (*callback)(void *context, const struct proc_stat *stat), void *context)
{
	struct proc_scanning scanning = {};
	int err = proc_scan_step(&scanning, callback, context, NULL);

	proc_scanning_end(&scanning);
	return err;
}

int thread_comm_read(uint32_t tgid, uint32_t tid, char ret_comm[PP_COMM_BYTES])
{
	OWNED_MEM char *text = NULL;
	char name[32];
	size_t size;
	int err;

	snprintf(name, sizeof(name), "task/%u/comm", tid);
	err = read_proc(tgid, name, STAT_MAX_BYTES, &text, &size);
	if (err)
		return err;
	if (size && text[size - 1] == '\n')
		size--;
	copy_comm(text, size, ret_comm);
	return 0;
}

static int read_container(uint32_t pid, struct container *ret_container)
{
	OWNED_MEM char *text = NULL;
	size_t size;
	pid_t tid;
	int err;

	/* In cgroup version 1, a main thread that has ended is shown in "/". */
	if (!process_live_task((pid_t)pid, &tid))
		pid = (uint32_t)tid;
	err = read_proc(pid, "cgroup", CGROUP_MAX_BYTES, &text, &size);
	if (err == -ESRCH && access("/proc/self/cgroup", F_OK) != 0) {
		*ret_container = (struct container){0}; /* no CONFIG_CGROUPS */
		return 0;
	}
	if (err)
		return err;
	container_parse(text, size, ret_container);
	return 0;
}

int process_read_details(struct process_table *table, struct process *process)
{
	const uint32_t tgid = process->id.tgid;
	const char *cgroup, *container_id;
	struct container container;
	struct proc_status status;
	struct proc_stat stat;
	char comm[PP_COMM_BYTES];
	int err;

	err = thread_comm_read(tgid, tgid, comm);
	if (!err)
		err = proc_status_read(tgid, &status);
	if (!err)
		err = read_container(tgid, &container);
	/* This comes last: when the stat is still of the same process, so was all that was read
	 * before. */
	if (!err)
		err = proc_stat_read(tgid, &stat);
	if (err)
		return err;
	if (process->start_ns && stat.start_ns > process->start_ns + START_SLACK_NS)
		return -ESRCH;
	err = process_table_intern(table, container.cgroup, &cgroup);
	if (!err)
		err = process_table_intern(table, container.id, &container_id);
	if (err)
		return err;
	process->moves += process->uid != status.uid || process->cgroup != cgroup;
	process->uid = status.uid;
	process->inner_pid = status.inner_pid;
	if (!process->ppid)
		process->ppid = status.ppid;
	memcpy(process->comm, comm, sizeof(comm));
	process->cgroup = cgroup;
	process->container_id = container_id;
	process->details_read = true;
	return 0;
}
