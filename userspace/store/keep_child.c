/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/keep_child.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "store/merge_sandbox.h"

bool keep_child_is_meant(const char *argv0)
{
	return argv0 && !strcmp(argv0, KEEP_ARGV0);
}

_Noreturn void keep_child_main(void)
{
	struct keep_request request;
	struct keep_result result;
	int err;

	(void)prctl(PR_SET_NAME, KEEP_ARGV0); /* else it is "exe", as it was started */
	(void)syscall(SYS_close_range, MERGE_SOCKET_FD + 1, ~0U, 0);
	if (fchdir(MERGE_STORE_FD) || merge_sandbox_enter(MERGE_STORE_FD, MERGE_KEEPS))
		_exit(1);
	if (recv(MERGE_SOCKET_FD, &request, sizeof(request), MSG_TRUNC) != (ssize_t)sizeof(request))
		_exit(0); /* the agent has ended */
	request.name.comm[sizeof(request.name.comm) - 1] = '\0';
	err = keep(MERGE_STORE_FD, &request, &result);
	result.err = err;
	(void)send(MERGE_SOCKET_FD, &result, sizeof(result), MSG_NOSIGNAL);
	_exit(0);
}
