/* SPDX-License-Identifier: BSD-2-Clause */
#include "parser/child_loop.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

bool child_answer(const struct parser_reply *reply, int fd)
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
	return sendmsg(PARSER_SOCKET_FD, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(*reply);
}

_Noreturn void child_run(const struct child *child, void *context)
{
	static const struct parser_reply hello = {.serial = PARSER_HELLO};

	(void)prctl(PR_SET_NAME, child->name); /* else it is "exe", as it was started */
	(void)syscall(SYS_close_range, child->last_fd + 1, ~0U, 0);
	if (parser_sandbox_enter(child->sandbox))
		_exit(1);
	for (bool goes_on = child_answer(&hello, -1); goes_on;)
		goes_on = child->serve(context);
	_exit(0);
}
