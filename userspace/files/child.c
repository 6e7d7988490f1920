/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/serve.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "child/worker.h"
#include "elf/elf_image.h"

#define SORTED_BYTES 4096U /* more than qsort() keeps on the stack */

/* The descriptors that came with a request. */
struct brought {
	int fd[WORKER_FDS_MAX]; /* owned */
	size_t count;
};

static void brought_release(struct brought *brought)
{
	for (size_t i = 0; i < brought->count; i++)
		close(brought->fd[i]);
}

static void take_descriptors(struct msghdr *message, struct brought *brought)
{
	const struct cmsghdr *header = CMSG_FIRSTHDR(message);

	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
		return;
	brought->count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(brought->fd, CMSG_DATA(header), brought->count * sizeof(int));
}

static bool serve(void *server)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(WORKER_FDS_MAX * sizeof(int))];
	} control = {0};
	CLEANUP(brought_release) struct brought brought = {.count = 0};
	union {
		struct foreign_request request;
		uint8_t bytes[FOREIGN_REQUEST_MAX_BYTES];
	} room = {0};
	struct foreign_files files;
	struct child_reply reply;
	struct iovec part = {.iov_base = &room, .iov_len = sizeof(room)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	const ssize_t size = recvmsg(CHILD_SOCKET_FD, &message, MSG_TRUNC | MSG_CMSG_CLOEXEC);

	if (size < 0 && errno == EINTR)
		return true;
	if (size > 0)
		take_descriptors(&message, &brought);
	if ((size_t)size > sizeof(room) || /* a negative one, too */
	    !foreign_request_is_sound(&room.request, (size_t)size) ||
	    !foreign_files_sort(&room.request, brought.fd, brought.count, &files))
		return false;
	foreign_serve(server, &room.request, &files, &reply);
	return child_answer(&reply, -1);
}

static int compare_bytes(const void *a, const void *b)
{
	return *(const uint8_t *)a - *(const uint8_t *)b;
}

/* What a C library does at its first use, and may need other system calls for. */
static void warm_up(void)
{
	uint8_t *bytes = calloc(1, SORTED_BYTES);

	if (bytes)
		qsort(bytes, SORTED_BYTES, 1, compare_bytes);
	free(bytes);
}

_Noreturn void foreign_child_main(void)
{
	struct foreign_server server = {.memory = mmap(NULL, FOREIGN_MEMORY_BYTES,
						       PROT_READ | PROT_WRITE, MAP_SHARED,
						       CHILD_MEMORY_FD, 0)};

	if (server.memory == MAP_FAILED || elf_guard_install())
		_exit(1);
	warm_up();
	child_run(CHILD_FILES, serve, &server);
}
