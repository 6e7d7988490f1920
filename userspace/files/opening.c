/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/opening.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/safe_file.h"
#include "base/task.h"
#include "discover/mapping_set.h"
#include "files/vouch.h"

/* ---- as whom ---- */

/* Some file systems answer only whoever has mounted them, or not root of another machine: FUSE
 * (fuse_allow_current_process() wants all ids), NFS with root_squash.  Capabilities stay: KEEPCAPS
 * keeps the permitted ones. */
static int act_as(uid_t uid, gid_t gid)
{
	const bool is_back = !uid;

	if (is_back && syscall(SYS_setresuid, uid, uid, uid))
		return -errno;
	if (syscall(SYS_setresgid, gid, gid, gid))
		return -errno;
	if (!is_back && syscall(SYS_setresuid, uid, uid, uid))
		return -errno;
	return capabilities_raise();
}

/* Whoever cannot go back is not root any more: another child is started. */
static void act_as_before(uid_t uid, gid_t gid)
{
	if (act_as(uid, gid))
		_exit(1);
}

/* Returns whether to try again as the task's user, which is so from then on. */
static bool may_act_as_owner(const struct opening_request *request, int err)
{
	struct stat owner;
	char path[32];

	if ((err != -EACCES && err != -EPERM) || geteuid())
		return false;
	snprintf(path, sizeof(path), "/proc/%d", request->tid);
	if (stat(path, &owner) || !owner.st_uid)
		return false;
	if (!act_as(owner.st_uid, owner.st_gid))
		return true;
	act_as_before(0, 0);
	return false;
}

/* ---- files of mappings ---- */

/* Whoever closes a file of FUSE asks its program: here first, and then in the child that parses. */
static void try_to_close(int fd, const struct file_identity *identity)
{
	const int other = identity->is_fuse || identity->is_layered ? dup(fd) : -1;

	if (other >= 0)
		close(other);
}

static int open_looked_at(int path_fd, const struct file_key *wanted, struct opened_file *opened)
{
	OWNED_FD int fd = -1;
	int err = root_file_open_seen(path_fd, &fd);

	if (!err)
		err = file_identity_read(fd, &opened->identity);
	if (err)
		return err;
	if (!file_key_is_of_mapping(&opened->identity.key, wanted))
		return -ESTALE;
	opened->is_of_mapping = file_identity_is_of(fd, &opened->identity, wanted);
	try_to_close(fd, &opened->identity);
	opened->fd = TAKE_FD(fd);
	return 0;
}

static int open_map_file(const struct opening_request *request, struct opened_file *opened)
{
	OWNED_FD int path_fd = -1;
	char path[80];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, request->tid,
		 request->start, request->end);
	path_fd = open(path, O_PATH | O_CLOEXEC);
	return path_fd < 0 ? -errno : open_looked_at(path_fd, &request->key, opened);
}

static int open_below(const char *root, const struct opening_request *request,
		      struct opened_file *opened)
{
	OWNED_FD int path_fd = -1;
	int err = root_file_look(root, request->path, ROOT_FILE_LINKS, &path_fd);

	return err ? err : open_looked_at(path_fd, &request->key, opened);
}

static int open_mapped_once(const struct opening_request *request, struct opened_file *opened)
{
	int map_files_err = open_map_file(request, opened);
	char root[32];
	int err;

	/* When it is not a regular file, the name leads to nothing better. */
	if (!map_files_err || map_files_err == -EINVAL || request->walks_no_path)
		return map_files_err;
	snprintf(root, sizeof(root), "/proc/%d/root", request->tid);
	err = open_below(root, request, opened);
	/* In our own root the same name does not prove that it is the same file. */
	if (err == -ENOENT && request->key.inode)
		err = open_below("/proc/self/root", request, opened);
	return err == -ENOENT && map_files_err == -ESTALE ? -ESTALE : err;
}

static int open_mapped(const struct opening_request *request, struct opened_file *opened)
{
	int err = open_mapped_once(request, opened);

	if (!may_act_as_owner(request, err))
		return err;
	err = open_mapped_once(request, opened);
	act_as_before(0, 0);
	return err;
}

/* ---- perf maps ---- */

/* Returns whether reading files of this type can have side effects, block, or show what is nobody's
 * file. */
static bool is_special(long type)
{
	static const long special[] = {
		PROC_SUPER_MAGIC, SYSFS_MAGIC,	      TRACEFS_MAGIC,	   DEBUGFS_MAGIC,
		BPF_FS_MAGIC,	  CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, SECURITYFS_MAGIC,
		SELINUX_MAGIC,	  PSTOREFS_MAGIC,     EFIVARFS_MAGIC,	   FUSE_SUPER_MAGIC,
	};

	for (size_t i = 0; i < ARRAY_SIZE(special); i++)
		if (type == special[i])
			return true;
	return false;
}

static enum opening_refusal find_refusal(int path_fd, const struct stat *status, uint32_t uid)
{
	struct statfs system;

	if (status->st_uid != uid)
		return OPENING_OF_ANOTHER;
	if (status->st_mode & S_IWOTH)
		return OPENING_WRITABLE;
	if (status->st_nlink != 1)
		return OPENING_HAS_NAMES;
	if (fstatfs(path_fd, &system) || is_special((long)system.f_type))
		return OPENING_PSEUDO;
	return OPENING_NOT_REFUSED;
}

static bool is_as_seen(const struct file_identity *now, const struct opening_seen *seen)
{
	return file_key_equal(&now->key, &seen->key) && now->size == seen->size &&
	       now->modified_ns == seen->modified_ns;
}

/* Looks the file up, checks it, and opens that same file. */
static int open_perf_map(const struct opening_request *request, struct opened_file *opened)
{
	OWNED_FD int path_fd = -1, fd = -1;
	struct stat status;
	char root[32], path[64];
	int err;

	snprintf(root, sizeof(root), "/proc/%d/root", request->tid);
	snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", request->inner_pid);
	err = root_file_look(root, path, ROOT_FILE_NO_LINKS, &path_fd);
	opened->refusal = err == -ELOOP	   ? OPENING_IS_LINK
			  : err == -EINVAL ? OPENING_NOT_REGULAR
					   : OPENING_NOT_REFUSED;
	if (err)
		return opened->refusal ? 0 : err;
	if (fstat(path_fd, &status))
		return -errno;
	opened->refusal = find_refusal(path_fd, &status, request->uid);
	if (opened->refusal)
		return 0;
	if (status.st_mtim.tv_sec < request->started_s)
		return -ENOENT;
	err = root_file_open_seen(path_fd, &fd);
	if (!err)
		err = file_identity_read(fd, &opened->identity);
	if (!err && !is_as_seen(&opened->identity, &request->seen))
		opened->fd = TAKE_FD(fd);
	return err;
}

/* ---- paths ---- */

static int open_path(const struct opening_request *request, struct opened_file *opened)
{
	OWNED_FD int path_fd = -1, fd = -1;
	struct stat status;
	char self[32];
	ssize_t size;
	int err;

	path_fd = open(request->path, O_PATH | O_CLOEXEC);
	if (path_fd < 0)
		return -errno;
	/* Opening a FIFO or a device is not harmless. */
	if (fstat(path_fd, &status))
		return -errno;
	err = S_ISREG(status.st_mode) ? root_file_open_seen(path_fd, &fd) : -EINVAL;
	if (!err)
		err = file_identity_read(fd, &opened->identity);
	if (err)
		return err;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	size = readlink(self, opened->path, sizeof(opened->path) - 1);
	if (size < 0)
		return -errno;
	opened->path[size] = '\0';
	opened->is_executable = (status.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0;
	opened->fd = TAKE_FD(fd);
	return 0;
}

/* ---- handing over ---- */

static void hand_over(const struct opening_request *request, struct opening_outcome *outcome)
{
	struct opening_handed *handed = &outcome->handed;
	size_t count = 0;

	handed->number = request->start;
	if (request->fd_count) {
		handed->files = FOREIGN_FILE_BIT;
		outcome->hand_fd[count++] = request->fd[0];
	}
	if (request->has_debug && !request->walks_no_path)
		debug_files_open(&request->debug, "/", request->path, request->uid,
				 &outcome->debug);
	for (size_t i = 0; i < DEBUG_FILES_MAX; i++) {
		if (outcome->debug.fd[i] < 0)
			continue;
		handed->files |= FOREIGN_FILE_BIT << (1 + i);
		outcome->hand_fd[count++] = outcome->debug.fd[i];
	}
	outcome->reply.size = handed->files;
}

static int close_all(const struct opening_request *request)
{
	for (uint32_t i = 0; i < request->fd_count; i++)
		close(request->fd[i]);
	return 0;
}

/* ---- requests ---- */

void opening_outcome_release(struct opening_outcome *outcome)
{
	debug_files_release(&outcome->debug);
}

static int open_file(const struct opening_request *request, uint8_t *memory, uint32_t *ret_size)
{
	struct opened_file opened = {.fd = -1};
	int err;

	if (request->kind == OPENING_MAPPED)
		err = open_mapped(request, &opened);
	else if (request->kind == OPENING_PERF_MAP)
		err = open_perf_map(request, &opened);
	else
		err = open_path(request, &opened);
	if (err)
		return err;
	*ret_size = sizeof(opened);
	memcpy(memory, &opened, sizeof(opened));
	return 0;
}

void opening_serve(const struct opening_request *request, uint8_t *memory,
		   struct opening_outcome *ret_outcome)
{
	struct child_reply *reply = &ret_outcome->reply;

	*ret_outcome = (struct opening_outcome){
		.reply.serial = request->serial, .give_fd = -1, .debug = DEBUG_FILES_NONE};
	switch ((enum opening_kind)request->kind) {
	case OPENING_HAND:
		hand_over(request, ret_outcome);
		break;
	case OPENING_GIVE:
		if (file_is_vouched_for(request->fd[0], request->tid))
			ret_outcome->give_fd = request->fd[0];
		else
			reply->error = -EREMOTE;
		break;
	case OPENING_COMPARE:
		reply->size = file_is_equal(request->fd[0], request->fd[1], request->start);
		break;
	case OPENING_TEXT:
		reply->error = file_text_check(request->fd[0], &request->identity, request->segment,
					       request->segment_count);
		break;
	case OPENING_CLOSE:
		reply->error = close_all(request);
		break;
	default:
		reply->error = open_file(request, memory, &reply->size);
	}
}
