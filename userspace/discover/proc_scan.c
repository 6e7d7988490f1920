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

int container_id_find(const char *cgroup, char ret_id[CONTAINER_ID_BYTES])
{
	const char *end = cgroup + strlen(cgroup);

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
	const char *end = text + size;
	int best_rank = RANK_NONE;

	for (const char *line = text, *next; line < end; line = next) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const char *line_end = newline ? newline : end;
		int rank = rank_line(line, (size_t)(line_end - line), &container);

		next = newline ? newline + 1 : end;
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
		return process->uid;
	owner = namespace_owner(process->id.tgid);
	if (owner)
		return owner;
	/* Anybody may start a set-user-ID program. */
	return status.uid ? status.uid : status.real_uid;
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

static bool take_number(const char **at, const char *end, uint64_t *ret_number)
{
	const char *first = *at;
	uint64_t number = 0;

	for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
		unsigned digit = (unsigned)(**at - '0');

		if (number > (UINT64_MAX - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*ret_number = number;
	return *at > first;
}

static bool take_u32(const char **at, const char *end, uint32_t *ret_number)
{
	uint64_t number;

	if (!take_number(at, end, &number) || number > UINT32_MAX)
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

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

static bool take_field(int field, const char *value, const char *end, struct stat_fields *fields)
{
	switch (field) {
	case STAT_STATE:
		fields->state = *value;
		return true;
	case STAT_PPID:
		return take_number(&value, end, &fields->ppid);
	case STAT_FLAGS:
		return take_number(&value, end, &fields->flags);
	case STAT_UTIME:
		return take_number(&value, end, &fields->user_ticks);
	case STAT_STIME:
		return take_number(&value, end, &fields->system_ticks);
	case STAT_THREADS:
		return take_number(&value, end, &fields->threads);
	case STAT_STARTTIME:
		return take_number(&value, end, &fields->start_ticks);
	default:
		return true;
	}
}

static bool take_fields(const char *at, const char *end, struct stat_fields *fields)
{
	for (int field = STAT_STATE; field <= STAT_STARTTIME; field++) {
		if (end - at < 2 || *at != ' ' || !take_field(field, at + 1, end, fields))
			return false;
		at = memchr(at + 1, ' ', (size_t)(end - at - 1));
		if (!at)
			at = end;
	}
	return true;
}

int proc_stat_parse(const char *text, size_t size, uint64_t ticks_per_sec, uint64_t boot_offset_ns,
		    struct proc_stat *ret_stat)
{
	const char *at = text, *end = text + size;
	/* comm may contain anything, even parentheses and spaces. */
	const char *open = memchr(text, '(', size), *close = memrchr(text, ')', size);
	struct stat_fields fields = {0};
	struct proc_stat stat = {0};
	uint64_t started_ns;

	if (!take_u32(&at, end, &stat.pid) || !open || !close || close < open)
		return -EBADMSG;
	if (!take_fields(close + 1, end, &fields) || fields.ppid > UINT32_MAX)
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

/* Returns the text after "KEY:\t" of a line, or NULL. */
static const char *value_of(const char *line, const char *end, const char *key)
{
	const size_t size = strlen(key);

	if ((size_t)(end - line) <= size || memcmp(line, key, size) != 0)
		return NULL;
	for (line += size; line < end && (*line == '\t' || *line == ' '); line++)
		;
	return line;
}

/* Reads the nth number (from 0), or the last one when there are fewer. */
static bool nth_number(const char *at, const char *end, unsigned nth, uint32_t *ret_number)
{
	if (!take_u32(&at, end, ret_number))
		return false;
	for (; nth && at < end && (*at == '\t' || *at == ' '); nth--) {
		at++;
		if (!take_u32(&at, end, ret_number))
			return false;
	}
	return at == end || *at == '\t' || *at == ' ';
}

/* Adds the number of either line. */
static void take_switches(const char *line, const char *end, struct proc_status *status)
{
	const char *value = value_of(line, end, "voluntary_ctxt_switches:");
	uint64_t switches;

	if (!value)
		value = value_of(line, end, "nonvoluntary_ctxt_switches:");
	if (value && take_number(&value, end, &switches))
		status->switches += switches;
}

int proc_status_parse(const char *text, size_t size, struct proc_status *ret_status)
{
	struct proc_status status = {0};
	const char *end = text + size, *next;
	bool has_tgid = false, has_ppid = false, has_uid = false, has_inner = false;

	for (const char *line = text; line < end; line = next) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const char *line_end = newline ? newline : end;
		const char *value;

		next = newline ? newline + 1 : end;
		value = value_of(line, line_end, "Tgid:");
		if (value)
			has_tgid = nth_number(value, line_end, 0, &status.tgid);
		value = value_of(line, line_end, "PPid:");
		if (value)
			has_ppid = nth_number(value, line_end, 0, &status.ppid);
		value = value_of(line, line_end, "Uid:");
		if (value) /* real, effective, saved, file system */
			has_uid = nth_number(value, line_end, 0, &status.real_uid) &&
				  nth_number(value, line_end, 1, &status.uid);
		value = value_of(line, line_end, "NSpid:");
		if (value)
			has_inner = nth_number(value, line_end, UINT32_MAX, &status.inner_pid);
		value = value_of(line, line_end, "State:");
		if (value && value < line_end) {
			status.is_runnable = *value == 'R';
			status.has_ended = memchr("ZXx", *value, 3);
		}
		take_switches(line, line_end, &status);
	}
	if (!has_tgid || !has_ppid || !has_uid)
		return -EBADMSG;
	if (!has_inner) /* no CONFIG_PID_NS */
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

int proc_status_read(uint32_t pid, struct proc_status *ret_status)
{
	OWNED_MEM char *text = NULL;
	size_t size;
	int err;

	err = read_proc(pid, "status", STATUS_MAX_BYTES, &text, &size);
	if (err)
		return err;
	return proc_status_parse(text, size, ret_status);
}

int thread_status_read(uint32_t tgid, uint32_t tid, struct proc_status *ret_status)
{
	OWNED_MEM char *text = NULL;
	char name[32];
	size_t size;
	int err;

	snprintf(name, sizeof(name), "task/%u/status", tid);
	err = read_proc(tgid, name, STATUS_MAX_BYTES, &text, &size);
	if (err)
		return err;
	return proc_status_parse(text, size, ret_status);
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
		const char *at = item->d_name, *end = at + strlen(at);
		struct proc_stat stat;
		uint32_t pid;
		int err;

		if (!take_u32(&at, end, &pid) || at != end)
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

static int read_comm(const char *path, char ret_comm[PP_COMM_BYTES])
{
	OWNED_MEM char *text = NULL;
	size_t size;
	int err;

	err = read_file(path, STAT_MAX_BYTES, &text, &size);
	if (err)
		return err == -ENOENT ? -ESRCH : err;
	if (size && text[size - 1] == '\n')
		size--;
	copy_comm(text, size, ret_comm);
	return 0;
}

int thread_comm_read(uint32_t tgid, uint32_t tid, char ret_comm[PP_COMM_BYTES])
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", tgid, tid);
	return read_comm(path, ret_comm);
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
