/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf/child.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "parser/child.h"
#include "parser/protocol.h"
#include "parser/sandbox.h"
#include "perf/event.h"

bool perf_child_is_meant(const char *argv0)
{
	return argv0 && !strcmp(argv0, PERF_ARGV0);
}

/* Returns whether to go on. */
static bool serve(void)
{
	struct perf_event_request request = {0};
	struct parser_reply reply = {0};
	OWNED_FD int fd = -1;
	const ssize_t size = recv(PARSER_SOCKET_FD, &request, sizeof(request), MSG_TRUNC);

	if (size < 0 && errno == EINTR)
		return true;
	if (size != (ssize_t)sizeof(request))
		return false;
	reply.serial = request.serial;
	reply.error = perf_event_open_here(&request, &fd);
	return parser_child_answer(&reply, fd);
}

_Noreturn void perf_child_main(void)
{
	static const struct parser_reply hello = {.serial = PARSER_HELLO};

	(void)prctl(PR_SET_NAME, PERF_ARGV0); /* else it is "exe", as it was started */
	/* What whoever started the agent left open. */
	(void)syscall(SYS_close_range, PARSER_MEMORY_FD, ~0U, 0);
	if (parser_sandbox_enter(PARSER_SANDBOX_EVENTS))
		_exit(1);
	for (bool goes_on = parser_child_answer(&hello, -1); goes_on;)
		goes_on = serve();
	_exit(0);
}
