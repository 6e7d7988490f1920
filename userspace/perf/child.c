/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf/child.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "parser/child_loop.h"
#include "perf/event.h"

bool perf_child_is_meant(const char *argv0)
{
	return argv0 && !strcmp(argv0, PERF_ARGV0);
}

static bool serve(void *context)
{
	struct perf_event_request request = {0};
	struct parser_reply reply = {0};
	OWNED_FD int fd = -1;
	const ssize_t size = recv(PARSER_SOCKET_FD, &request, sizeof(request), MSG_TRUNC);

	(void)context;
	if (size < 0 && errno == EINTR)
		return true;
	if (size != (ssize_t)sizeof(request))
		return false;
	reply.serial = request.serial;
	reply.error = perf_event_open_here(&request, &fd);
	return child_answer(&reply, fd);
}

_Noreturn void perf_child_main(void)
{
	static const struct child child = {.name = PERF_ARGV0,
					   .last_fd = PARSER_SOCKET_FD,
					   .sandbox = PARSER_SANDBOX_EVENTS,
					   .serve = serve};

	child_run(&child, NULL);
}
