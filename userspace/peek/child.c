/* SPDX-License-Identifier: BSD-2-Clause */
#include "peek/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "child/worker.h"

#define STACK_BYTES 65536U

/* ---- memory ---- */

static int read_by_id(const struct peek_request *request, uint8_t *memory)
{
	struct iovec here = {.iov_base = memory}, there[PROCESS_PIECES_MAX];
	ssize_t got;

	for (uint32_t i = 0; i < request->count; i++) {
		const struct peek_piece *piece = &request->piece[i];

		there[i] = (struct iovec){.iov_base = (void *)(uintptr_t)piece->address,
					  .iov_len = piece->size};
		here.iov_len += piece->size;
	}
	got = process_vm_readv(request->tid, &here, 1, there, request->count, 0);
	if (got < 0)
		return -errno;
	return (size_t)got == here.iov_len ? 0 : -EFAULT;
}

static int open_text(const char *path)
{
	const int fd = openat(AT_FDCWD, path, CHILD_OPEN_TEXT);

	return fd < 0 ? -errno : fd;
}

static int open_proc(pid_t tid, const char *name)
{
	char path[80];

	snprintf(path, sizeof(path), "/proc/%d/%s", tid, name);
	return open_text(path);
}

static int read_by_file(const struct peek_request *request, uint8_t *memory)
{
	OWNED_FD int fd = open_proc(request->tid, "mem");
	int err = fd < 0 ? fd : 0;

	for (uint32_t i = 0; i < request->count && !err; i++) {
		const struct peek_piece *piece = &request->piece[i];

		if (piece->address > INT64_MAX)
			return -EFAULT;
		err = pread_full(fd, memory, piece->size, (off_t)piece->address);
		memory += piece->size;
	}
	return err == -EIO || err == -ENODATA ? -EFAULT : err;
}

static int read_memory(const struct peek_request *request, uint8_t *memory)
{
	int err = read_by_id(request, memory);

	return err == -EPERM || err == -ENOSYS ? read_by_file(request, memory) : err;
}

/* ---- mappings ---- */

/* The maps that are being read: a text that goes on must be that of the same opening. */
static struct {
	pid_t tid; /* 0: none */
	int fd;
	uint64_t at; /* what was read of it, bytes */
} maps;

static int open_maps(pid_t tid)
{
	if (maps.tid)
		close(maps.fd);
	maps.tid = 0;
	maps.fd = open_proc(tid, "maps");
	if (maps.fd < 0)
		return maps.fd;
	maps.tid = tid;
	maps.at = 0;
	return 0;
}

static int read_maps(const struct peek_request *request, uint8_t *memory, uint32_t *ret_size)
{
	const struct peek_piece *piece = &request->piece[0];
	uint32_t size = 0;
	int err = piece->address ? 0 : open_maps(request->tid);

	if (!err && (maps.tid != request->tid || maps.at != piece->address))
		err = -EINVAL;
	while (!err && size < piece->size) {
		const ssize_t got =
			pread(maps.fd, memory + size, piece->size - size, (off_t)maps.at);

		if (got < 0)
			err = -errno;
		if (got <= 0)
			break;
		size += (uint32_t)got;
		maps.at += (uint64_t)got;
	}
	*ret_size = size;
	return err;
}

/* ---- texts and directories ---- */

static int read_text(const struct peek_request *request, uint8_t *memory, size_t *ret_size)
{
	const struct peek_piece *piece = &request->piece[0];
	OWNED_FD int fd = -1;

	if (piece->address >= PROCESS_TEXTS)
		return -EINVAL;
	fd = open_proc(request->tid, process_text_name((enum process_text)piece->address));
	if (fd < 0)
		return fd == -ENOENT ? -ESRCH : fd;
	return pread_up_to(fd, memory, piece->size, ret_size);
}

static int list_logs(const struct peek_request *request, uint8_t *memory, size_t *ret_size)
{
	const struct peek_piece *piece = &request->piece[0];
	const bool is_pods = piece->address == PROCESS_LOGS_PODS;
	OWNED_FD int fd =
		open_text(process_log_path(is_pods ? PROCESS_LOGS_PODS : PROCESS_LOGS_CONTAINERS));

	return fd < 0 ? fd : list_up_to(fd, memory, piece->size, ret_size);
}

void peek_child_do(const struct peek_request *request, uint8_t *memory,
		   struct child_reply *ret_reply)
{
	size_t size = 0;

	*ret_reply = (struct child_reply){.serial = request->serial};
	switch ((enum peek_kind)request->kind) {
	case PEEK_MAPS:
		ret_reply->error = read_maps(request, memory, &ret_reply->size);
		return;
	case PEEK_TEXT:
		ret_reply->error = read_text(request, memory, &size);
		break;
	case PEEK_LOGS:
		ret_reply->error = list_logs(request, memory, &size);
		break;
	default:
		ret_reply->error = read_memory(request, memory);
	}
	ret_reply->size = (uint32_t)size;
}

/* ---- messages ---- */

static bool serve(void *memory)
{
	struct peek_request request = {0};
	struct child_reply reply;
	struct iovec part = {.iov_base = &request, .iov_len = sizeof(request)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	const ssize_t size = recvmsg(CHILD_SOCKET_FD, &message, 0);

	if (size < 0 && errno == EINTR)
		return true;
	if (size <= 0 || !peek_request_is_sound(&request, (size_t)size))
		return false;
	peek_child_do(&request, memory, &reply);
	return child_answer(&reply, -1);
}

/* The sandbox lets no memory be added, which the stack's growth is. */
static void grow_stack(void)
{
	volatile uint8_t room[STACK_BYTES];

	for (size_t i = 0; i < sizeof(room); i += 1024)
		room[i] = 0;
}

_Noreturn void peek_child_main(void)
{
	void *memory = mmap(NULL, PEEK_MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			    CHILD_MEMORY_FD, 0);

	if (memory == MAP_FAILED)
		_exit(1);
	grow_stack();
	child_run(CHILD_MEMORY, serve, memory);
}
