/* SPDX-License-Identifier: BSD-2-Clause */
#include "child/loop.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "child/sandbox.h"

bool child_answer(const struct child_reply *reply, int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = (void *)reply, .iov_len = sizeof(*reply)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
						  .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	return sendmsg(CHILD_SOCKET_FD, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(*reply);
}

_Noreturn void child_run(enum child_kind kind, bool (*serve)(void *context), void *context)
{
	static const struct child_reply hello = {.serial = CHILD_HELLO};

	if (sandbox_begin(kind))
		_exit(1);
	for (bool goes_on = child_answer(&hello, -1); goes_on;)
		goes_on = serve(context);
	_exit(0);
}
