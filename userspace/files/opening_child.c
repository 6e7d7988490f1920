/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "child/worker.h"
#include "files/opening.h"

/* Nobody reads where the other child has ended: it does not wait. */
static int send_handed(const struct opening_outcome *outcome)
{
	const size_t count = (size_t)__builtin_popcount(outcome->handed.files);

	if (!outcome->handed.files ||
	    child_send(CHILD_PEER_FD, &outcome->handed, sizeof(outcome->handed), outcome->hand_fd,
		       count, MSG_DONTWAIT))
		return 0;
	return -EAGAIN;
}

static bool serve(void *memory)
{
	CLEANUP(opening_outcome_release) struct opening_outcome outcome = {
		.debug = DEBUG_FILES_NONE};
	struct opening_request request = {0};
	struct iovec part = {.iov_base = &request, .iov_len = sizeof(request)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	const ssize_t size = recvmsg(CHILD_SOCKET_FD, &message, MSG_TRUNC);

	if (size < 0 && errno == EINTR)
		return true;
	if (size <= 0 || !opening_request_is_sound(&request, (size_t)size))
		return false;
	opening_serve(&request, memory, &outcome);
	if (!outcome.reply.error)
		outcome.reply.error = send_handed(&outcome);
	/* Before the answer: closing asks a file system, too, and whoever it is has to be
	 * blamed. */
	opening_outcome_release(&outcome);
	outcome.debug = DEBUG_FILES_NONE;
	return child_answer(&outcome.reply, outcome.give_fd);
}

_Noreturn void opening_child_main(void)
{
	void *memory = mmap(NULL, OPENING_MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			    CHILD_MEMORY_FD, 0);

	if (memory == MAP_FAILED)
		_exit(1);
	/* For act_as(). */
	(void)setgroups(0, NULL);
	(void)prctl(PR_SET_KEEPCAPS, 1);
	child_run(CHILD_OPENER, serve, memory);
}
