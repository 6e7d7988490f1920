/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/io.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"

#define READ_CHUNK_BYTES 16384U

int read_file_at(int dir_fd, const char *path, size_t max_bytes, char **ret_text, size_t *ret_size)
{
	OWNED_FD int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	OWNED_MEM char *text = NULL;
	size_t size = 0, capacity = 0;

	if (fd < 0)
		return -errno;
	for (;;) {
		if (size + 1 >= capacity) {
			char *grown;

			capacity = capacity ? capacity * 2 : READ_CHUNK_BYTES;
			grown = realloc(text, capacity);
			if (!grown)
				return -ENOMEM;
			text = grown;
		}
		ssize_t got = read(fd, text + size, capacity - size - 1);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		size += (size_t)got;
		if (size > max_bytes)
			return -EFBIG;
	}
	text[size] = '\0';
	*ret_text = TAKE(text);
	if (ret_size)
		*ret_size = size;
	return 0;
}

int read_file(const char *path, size_t max_bytes, char **ret_text, size_t *ret_size)
{
	return read_file_at(AT_FDCWD, path, max_bytes, ret_text, ret_size);
}

int pread_full(int fd, void *buffer, size_t size, off_t offset)
{
	char *at = buffer;

	while (size) {
		ssize_t got = pread(fd, at, size, offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -ENODATA;
		at += got;
		offset += got;
		size -= (size_t)got;
	}
	return 0;
}

int pread_up_to(int fd, void *buffer, size_t size, size_t *ret_size)
{
	size_t done = 0;
	ssize_t got;

	while ((got = pread(fd, (char *)buffer + done, size - done, (off_t)done)) > 0)
		done += (size_t)got;
	*ret_size = done;
	return got < 0 ? -errno : 0;
}

int list_up_to(int fd, void *buffer, size_t size, size_t *ret_size)
{
	size_t done = 0;
	long got;

	while ((got = syscall(SYS_getdents64, fd, (char *)buffer + done, size - done)) > 0)
		done += (size_t)got;
	*ret_size = done;
	/* EINVAL: the next record does not fit any more. */
	return got < 0 && errno != EINVAL ? -errno : 0;
}

int write_full(int fd, const void *buffer, size_t size)
{
	const char *at = buffer;

	while (size) {
		ssize_t put = write(fd, at, size);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return -errno;
		at += put;
		size -= (size_t)put;
	}
	return 0;
}

int write_file_at(int dir_fd, const char *name, mode_t mode, const void *bytes, size_t size)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	OWNED_FD int fd = openat(dir_fd, name, flags, mode);
	int err;

	if (fd < 0 && errno == EEXIST && !unlinkat(dir_fd, name, 0))
		fd = openat(dir_fd, name, flags, mode); /* left from a crash */
	if (fd < 0)
		return -errno;
	err = write_full(fd, bytes, size);
	if (!err && (fchmod(fd, mode) || fsync(fd)))
		err = -errno;
	if (err)
		unlinkat(dir_fd, name, 0);
	return err;
}

int open_directory_of(const char *path, int flags, const char **ret_name, int *ret_fd)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	OWNED_MEM char *directory = NULL;
	int fd;

	if (!name[0] || !strcmp(name, ".") || !strcmp(name, ".."))
		return path[0] ? -EISDIR : -ENOENT;
	/* Without the last slash, behind which O_NOFOLLOW follows links; the root has no other
	 * name. */
	directory = slash ? strndup(path, slash > path ? (size_t)(slash - path) : 1) : strdup(".");
	if (!directory)
		return -ENOMEM;
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
	if (fd < 0)
		return -errno;
	*ret_name = name;
	*ret_fd = fd;
	return 0;
}

static int process_read_mem_file(pid_t pid, uint64_t address, void *buffer, size_t size)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	OWNED_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	int err = pread_full(fd, buffer, size, (off_t)address);

	return err == -EIO || err == -ENODATA ? -EFAULT : err;
}

/* Returns whether a task has memory: one without (fs/proc/base.c, proc_exe_link()) has no
 * executable. */
static bool has_memory(pid_t pid, pid_t tid)
{
	char path[48], target;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/exe", pid, tid);
	return readlink(path, &target, sizeof(target)) >= 0 || errno == EACCES;
}

int process_live_task(pid_t pid, pid_t *ret_tid)
{
	char path[32];
	OWNED_DIR DIR *dir = NULL;
	const struct dirent *item;

	/* Mostly it is the main thread: one call of readdir() lists a thousand others. */
	if (has_memory(pid, pid)) {
		*ret_tid = pid;
		return 0;
	}
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (item = readdir(dir))) {
		pid_t tid = (pid_t)strtol(item->d_name, NULL, 10);

		if (isdigit((unsigned char)item->d_name[0]) && has_memory(pid, tid)) {
			*ret_tid = tid;
			return 0;
		}
	}
	return -ESRCH;
}

uint32_t process_count_threads(pid_t pid)
{
	struct stat status;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return stat(path, &status) ? 0 : (uint32_t)status.st_nlink;
}

static struct {
	const struct process_access *by; /* NULL: by system calls of our own */
	void *context;
} others;

void process_access_by(const struct process_access *access, void *context)
{
	others.by = access;
	others.context = context;
}

static int read_task_pieces(pid_t tid, const struct process_piece *piece, size_t count)
{
	struct iovec here[PROCESS_PIECES_MAX], there[PROCESS_PIECES_MAX];
	ssize_t size = 0, got;
	int err = 0;

	for (size_t i = 0; i < count; i++) {
		here[i] = (struct iovec){.iov_base = piece[i].buffer, .iov_len = piece[i].size};
		there[i] = (struct iovec){.iov_base = (void *)(uintptr_t)piece[i].address,
					  .iov_len = piece[i].size};
		size += (ssize_t)piece[i].size;
	}
	got = process_vm_readv(tid, here, count, there, count, 0);
	if (got == size)
		return 0;
	if (got >= 0)
		return -EFAULT;
	if (errno != EPERM && errno != ENOSYS)
		return -errno;
	for (size_t i = 0; !err && i < count; i++)
		err = process_read_mem_file(tid, piece[i].address, piece[i].buffer, piece[i].size);
	return err;
}

static int read_by(pid_t tid, const struct process_piece *piece, size_t count)
{
	return others.by ? others.by->read(others.context, tid, piece, count)
			 : read_task_pieces(tid, piece, count);
}

int process_read_pieces(pid_t pid, const struct process_piece *piece, size_t count)
{
	pid_t tid;
	int err;

	if (count > PROCESS_PIECES_MAX)
		return -EINVAL;
	err = read_by(pid, piece, count);
	if (err != -ESRCH || process_live_task(pid, &tid) || tid == pid)
		return err;
	return read_by(tid, piece, count);
}

int process_read(pid_t pid, uint64_t address, void *buffer, size_t size)
{
	return process_read_pieces(
		pid, &(struct process_piece){.address = address, .buffer = buffer, .size = size},
		1);
}

int process_read_maps(pid_t tid, size_t max_bytes, char **ret_text, size_t *ret_size)
{
	char path[32];

	if (others.by)
		return others.by->read_maps(others.context, tid, max_bytes, ret_text, ret_size);
	snprintf(path, sizeof(path), "/proc/%d/maps", tid);
	return read_file(path, max_bytes, ret_text, ret_size);
}

const char *process_text_name(enum process_text which)
{
	static const char *const names[] = {[PROCESS_COMMAND_LINE] = "cmdline",
					    [PROCESS_ENVIRONMENT] = "environ",
					    [PROCESS_USERS] = "root/etc/passwd",
					    [PROCESS_SUBORDINATES] = "root/etc/subuid"};

	return names[which];
}

const char *process_log_path(enum process_log_directory which)
{
	return which == PROCESS_LOGS_PODS ? "/var/log/pods" : "/var/log/containers";
}

/* Opens what is to be read whole, and calls `fill` for it. */
static int read_up_to(const char *path, size_t max_bytes,
		      int (*fill)(int fd, void *buffer, size_t size, size_t *ret_size),
		      char **ret_bytes, size_t *ret_size)
{
	OWNED_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	OWNED_MEM char *bytes = NULL;
	size_t size;
	int err;

	if (fd < 0)
		return -errno;
	bytes = malloc(max_bytes + 1);
	if (!bytes)
		return -ENOMEM;
	err = fill(fd, bytes, max_bytes, &size);
	if (err)
		return err;
	bytes[size] = '\0';
	*ret_bytes = TAKE(bytes);
	*ret_size = size;
	return 0;
}

int process_read_text(pid_t tid, enum process_text which, size_t max_bytes, char **ret_text,
		      size_t *ret_size)
{
	char path[48];
	int err;

	if (max_bytes > PROCESS_TEXT_MAX_BYTES)
		return -EINVAL;
	if (others.by)
		return others.by->read_text(others.context, tid, which, max_bytes, ret_text,
					    ret_size);
	snprintf(path, sizeof(path), "/proc/%d/%s", tid, process_text_name(which));
	err = read_up_to(path, max_bytes, pread_up_to, ret_text, ret_size);
	return err == -ENOENT ? -ESRCH : err;
}

int process_list_logs(enum process_log_directory which, char **ret_entries, size_t *ret_size)
{
	if (others.by)
		return others.by->list_logs(others.context, which, ret_entries, ret_size);
	return read_up_to(process_log_path(which), PROCESS_LOGS_MAX_BYTES, list_up_to, ret_entries,
			  ret_size);
}
