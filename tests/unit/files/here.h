/* SPDX-License-Identifier: BSD-2-Clause */
/* The child that parses files, as a part of the test program: files/client.c's requests are
 * carried out at once. */
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "child/worker.h"
#include "files/serve.h"
#include "server_release.h"

/* What each question takes of the child's CPU time, as it is told. */
static uint64_t here_question_ns;
static unsigned int here_lates; /* so many questions are answered late */

struct worker {
	const struct worker_kind *kind;
	uint64_t cpu_ns;
	struct foreign_server server;
};

int worker_new(const struct worker_kind *kind, const char *program, struct worker **ret_worker)
{
	struct worker *worker = calloc(1, sizeof(*worker));

	(void)program;
	assert_non_null(worker);
	worker->kind = kind;
	worker->server.memory = malloc(kind->memory_bytes);
	assert_non_null(worker->server.memory);
	*ret_worker = worker;
	return 0;
}

bool worker_await(struct worker *worker)
{
	return worker != NULL;
}

void worker_free(struct worker *worker)
{
	if (!worker)
		return;
	server_release(&worker->server);
	free(worker->server.memory);
	free(worker);
}

void worker_answer_release(struct worker_answer *answer)
{
	(void)answer;
}

int worker_ask(struct worker *worker, const struct worker_request *request,
	       struct worker_answer *ret_answer)
{
	struct foreign_files files;

	assert_true(foreign_request_is_sound(request->message, request->bytes));
	assert_true(foreign_files_sort(request->message, request->fd, request->fd_count, &files));
	ret_answer->fd = -1;
	worker->cpu_ns += here_question_ns;
	if (here_lates) {
		here_lates--;
		return -ETIME;
	}
	foreign_serve(&worker->server, request->message, &files, &ret_answer->reply);
	return 0;
}

const uint8_t *worker_memory(const struct worker *worker)
{
	return worker->server.memory;
}

void worker_get_stats(const struct worker *worker, struct worker_stats *ret_stats)
{
	*ret_stats = (struct worker_stats){.starts = 1, .cpu_ns = worker->cpu_ns};
}
