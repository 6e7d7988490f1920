/* SPDX-License-Identifier: BSD-2-Clause */
#include "child/perf_opener.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/io.h"
#include "base/task.h"
#include "child/worker.h"

#define PARANOID_MAX_BYTES 64U
/* perf_event_open() waits for CPUs that come and go, and for nothing that users do. */
#define OPEN_LIMIT_MS 5000U

struct perf_opener {
	struct worker *worker; /* NULL: the agent opens events itself */
};

static const struct worker_kind child_kind = {.kind = CHILD_EVENTS};

static bool needs_admin(const char *paranoid_path)
{
	OWNED_MEM char *text = NULL;

	return !read_file(paranoid_path, PARANOID_MAX_BYTES, &text, NULL) &&
	       strtol(text, NULL, 10) > PERF_PARANOID_MAX;
}

int perf_opener_new(const char *program, const char *paranoid_path, struct perf_opener **ret_opener)
{
	OWNED(perf_opener) struct perf_opener *opener = calloc(1, sizeof(*opener));
	int err = 0;

	if (!opener)
		return -ENOMEM;
	if (needs_admin(paranoid_path) && capabilities_are_held(CAPABILITY_BIT(CAP_SYS_ADMIN)))
		err = worker_new(&child_kind, program, -1, &opener->worker);
	if (!err)
		*ret_opener = TAKE(opener);
	return err;
}

void perf_opener_free(struct perf_opener *opener)
{
	if (!opener)
		return;
	worker_free(opener->worker);
	free(opener);
}

static int ask(struct worker *worker, const struct perf_event_request *request, int *ret_fd)
{
	CLEANUP(worker_answer_release) struct worker_answer answer = {.fd = -1};
	struct perf_event_request message = *request;
	const struct worker_request sent = {
		.message = &message, .bytes = sizeof(message), .limit_ms = OPEN_LIMIT_MS};
	int err;

	if (!worker_await(worker))
		return -ETIMEDOUT;
	err = worker_ask(worker, &sent, &answer);
	if (!err)
		err = answer.reply.error;
	if (!err && answer.fd < 0)
		err = -EPIPE;
	if (!err)
		*ret_fd = TAKE_FD(answer.fd);
	return err;
}

int perf_opener_open(struct perf_opener *opener, const struct perf_event_request *request,
		     int *ret_fd)
{
	return perf_opener_has_child(opener) ? ask(opener->worker, request, ret_fd)
					     : perf_event_open_here(request, ret_fd);
}

bool perf_opener_has_child(const struct perf_opener *opener)
{
	return opener && opener->worker;
}

/* ---- in the child ---- */

static bool serve(void *context)
{
	struct perf_event_request request = {0};
	struct child_reply reply = {0};
	OWNED_FD int fd = -1;
	const ssize_t size = recv(CHILD_SOCKET_FD, &request, sizeof(request), MSG_TRUNC);

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
	child_run(CHILD_EVENTS, serve, NULL);
}
