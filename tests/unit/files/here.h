/* SPDX-License-Identifier: BSD-2-Clause */
/* The children that open and parse files, as parts of the test program: files/opener.c's and
 * files/client.c's requests are carried out at once. */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "child/worker.h"
#include "files/opening.h"
#include "files/serve.h"
#include "server_release.h"

/* What each question takes of the child's CPU time, as it is told. */
static uint64_t here_question_ns;
static unsigned int here_lates; /* so many questions to the parser are answered late */
static uint64_t here_openers;	/* so many openers have ended */

struct worker {
	const struct worker_kind *kind;
	uint64_t cpu_ns;
	uint8_t *memory;
	struct foreign_server server;
};

/* What the opener has handed over: copies. */
static struct {
	uint64_t number;
	int fd[1 + DEBUG_FILES_MAX];
	size_t count;
} here_handed;

static void here_drop_handed(void)
{
	for (size_t i = 0; i < here_handed.count; i++)
		close(here_handed.fd[i]);
	here_handed.count = 0;
}

int worker_new(const struct worker_kind *kind, const char *program, int peer,
	       struct worker **ret_worker)
{
	struct worker *worker = calloc(1, sizeof(*worker));

	(void)program;
	assert_non_null(worker);
	assert_true(peer >= 0);
	/* The numbers below are the child's own. */
	while (fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0) < CHILD_PEER_FD)
		;
	worker->kind = kind;
	worker->memory = malloc(kind->memory_bytes);
	worker->server.memory = worker->memory;
	assert_non_null(worker->memory);
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
	here_drop_handed();
	free(worker->memory);
	free(worker);
}

void worker_answer_release(struct worker_answer *answer)
{
	close_owned_fd(&answer->fd);
	answer->fd = -1;
}

static int here_open(struct worker *worker, const struct worker_request *request,
		     struct worker_answer *ret_answer)
{
	CLEANUP(opening_outcome_release) struct opening_outcome outcome;

	assert_true(opening_request_is_sound(request->message, request->bytes));
	opening_serve(request->message, worker->memory, &outcome);
	ret_answer->reply = outcome.reply;
	ret_answer->fd = outcome.give_fd < 0 ? -1 : fcntl(outcome.give_fd, F_DUPFD_CLOEXEC, 0);
	here_drop_handed();
	here_handed.number = outcome.handed.number;
	for (uint32_t files = outcome.handed.files; files; files &= files - 1) {
		const int fd = outcome.hand_fd[here_handed.count];

		here_handed.fd[here_handed.count++] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	}
	return 0;
}

static int here_parse(struct worker *worker, const struct worker_request *request,
		      struct worker_answer *ret_answer)
{
	const struct foreign_request *message = request->message;
	struct foreign_files files;

	assert_true(foreign_request_is_sound(message, request->bytes));
	assert_true(!message->handed || message->handed == here_handed.number);
	assert_true(message->handed
			    ? foreign_files_sort(message, here_handed.fd, here_handed.count, &files)
			    : foreign_files_sort(message, request->fd, request->fd_count, &files));
	ret_answer->fd = -1;
	worker->cpu_ns += here_question_ns;
	if (here_lates) {
		here_lates--;
		return -ETIME;
	}
	foreign_serve(&worker->server, message, &files, &ret_answer->reply);
	here_drop_handed();
	return 0;
}

int worker_ask(struct worker *worker, const struct worker_request *request,
	       struct worker_answer *ret_answer)
{
	return worker->kind->kind == CHILD_OPENER ? here_open(worker, request, ret_answer)
						  : here_parse(worker, request, ret_answer);
}

bool worker_is_held_up(struct worker *worker, const struct worker_blame *blame)
{
	(void)worker, (void)blame;
	return false;
}

const uint8_t *worker_memory(const struct worker *worker)
{
	return worker->memory;
}

uint64_t worker_child(const struct worker *worker)
{
	return 2 + (worker->kind->kind == CHILD_OPENER ? 2 * here_openers : 0);
}

void worker_get_stats(struct worker *worker, struct worker_stats *ret_stats)
{
	*ret_stats = (struct worker_stats){.starts = 1, .cpu_ns = worker->cpu_ns};
}
