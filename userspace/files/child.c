/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/serve.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "child/worker.h"
#include "elf/elf_image.h"
#include "files/opening.h"

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
	brought->count = 0;
}

/* Receives a message with its descriptors.  Returns its size, or below 0. */
static ssize_t receive(int socket, void *data, size_t bytes, int flags, struct brought *brought)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(WORKER_FDS_MAX * sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = data, .iov_len = bytes};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	const ssize_t size = recvmsg(socket, &message, flags | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *header = size > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
		return size;
	brought->count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(brought->fd, CMSG_DATA(header), brought->count * sizeof(int));
	return size;
}

/* Takes what the child that opens files has sent for a request.  What came before is for one that
 * was never put, because the child before this one had ended. */
static bool take_handed(const struct foreign_request *request, struct brought *brought)
{
	struct opening_handed handed;

	if (!request->handed || !request->files)
		return true;
	while (receive(CHILD_PEER_FD, &handed, sizeof(handed), MSG_DONTWAIT, brought) ==
	       (ssize_t)sizeof(handed)) {
		if (handed.number == request->handed)
			return handed.files == request->files;
		brought_release(brought);
	}
	return true; /* without them it is not in its slot */
}

static bool serve(void *server)
{
	CLEANUP(brought_release) struct brought brought = {.count = 0};
	union {
		struct foreign_request request;
		uint8_t bytes[FOREIGN_REQUEST_MAX_BYTES];
	} room = {0};
	struct foreign_files files;
	struct child_reply reply;
	const ssize_t size = receive(CHILD_SOCKET_FD, &room, sizeof(room), 0, &brought);

	if (size < 0 && errno == EINTR)
		return true;
	if ((size_t)size > sizeof(room) || /* a negative one, too */
	    !foreign_request_is_sound(&room.request, (size_t)size) ||
	    !take_handed(&room.request, &brought))
		return false;
	if (room.request.handed && !brought.count)
		room.request.files = 0;
	if (!foreign_files_sort(&room.request, brought.fd, brought.count, &files))
		return false;
	foreign_serve(server, &room.request, &files, &reply);
	/* Before the answer: closing asks a file system, too, and whoever it is has to be
	 * blamed. */
	brought_release(&brought);
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
