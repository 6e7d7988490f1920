/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/merge_child.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "child/sandbox.h"
#include "store/merge_store.h"

/* Waits where the agent has not read what was told before: it does so once a window. */
static void tell(const struct store_file *first, enum merge_what what, int err)
{
	struct merge_message message = {
		.start_ms = first->start_ms, .err = err, .what = (uint32_t)what};

	memcpy(message.kind, first->kind, sizeof(first->kind));
	if (send(CHILD_STORE_SOCKET_FD, &message, sizeof(message), MSG_NOSIGNAL) < 0 &&
	    errno != EINTR)
		_exit(0); /* the agent has ended */
}

static void begins(void *context, const struct store_file *first)
{
	(void)context;
	tell(first, MERGE_BEGINS, 0);
}

static void done(void *context, const struct store_file *first, int err)
{
	(void)context;
	tell(first, MERGE_DONE, err);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / NS_PER_MS;
}

/* Takes what the agent has said.  Returns false when it has closed the socket. */
static bool listen_to_agent(struct merge_refused *refused)
{
	struct merge_message message;

	for (;;) {
		const ssize_t size = recv(CHILD_STORE_SOCKET_FD, &message, sizeof(message),
					  MSG_DONTWAIT | MSG_TRUNC);

		if (size < 0)
			return errno == EAGAIN || errno == EINTR;
		if (size != (ssize_t)sizeof(message) || message.what != MERGE_LEAVE_ALONE ||
		    !memchr(message.kind, '\0', sizeof(message.kind)))
			return false;
		merge_refuse(refused, message.kind, message.start_ms);
	}
}

_Noreturn void merge_child_main(void)
{
	static struct merge_refused refused;
	const struct merge_pass pass = {.begins = begins, .done = done, .refused = &refused};
	struct pollfd agent = {.fd = CHILD_STORE_SOCKET_FD, .events = POLLIN};

	if (fchdir(CHILD_STORE_FD) || sandbox_begin(CHILD_STORE))
		_exit(1);
	while (listen_to_agent(&refused)) {
		(void)merge_store(".", now_ms(), &pass); /* what fails is tried again */
		(void)poll(&agent, 1, MERGE_EVERY_MS);
	}
	_exit(0);
}
