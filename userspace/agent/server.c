/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "child/worker.h"
#include "config/config.h"
#include "options/options.h"

#define NAME "pyprofd-serve"
#define WORDS_MAX 8U
#define STATE_FOLDER "push" /* in the store, which passes it over */
#define END_NS (2 * NS_PER_SEC)
#define END_STEP_NS (10 * NS_PER_MS)

struct server {
	char program[CHILD_PROGRAM_BYTES];
	char *word[WORDS_MAX + 1]; /* owned; argv */
	size_t word_count;
	int settings_fd; /* owned: of config_hand_over(); -1: nothing is to be served */
	struct child child;
	bool was_asked_to_end;
	uint64_t kill_after_ns; /* of one that was asked to end */
};

/* ---- what it is told ---- */

__attribute__((format(printf, 2, 3))) static int add_word(struct server *server, const char *format,
							  ...)
{
	va_list args;
	int size;

	if (server->word_count == WORDS_MAX)
		return -E2BIG;
	va_start(args, format);
	size = vasprintf(&server->word[server->word_count], format, args);
	va_end(args);
	if (size < 0) {
		server->word[server->word_count] = NULL;
		return -ENOMEM;
	}
	server->word_count++;
	return 0;
}

static int make_words(struct server *server, const struct options *options)
{
	int err = add_word(server, "%s", NAME);

	if (!err)
		err = add_word(server, "--with-parent=%d", getpid());
	if (!err)
		err = add_word(server, "--settings-fd=%d", CHILD_SETTINGS_FD);
	if (!err && options->live)
		err = add_word(server, "--live=%s", options->live);
	if (!err)
		err = add_word(server, "--store=%s", options->output);
	/* Its default would be the service manager's folder of this program: the store itself. */
	if (!err && getenv("STATE_DIRECTORY"))
		err = add_word(server, "--state=%s/" STATE_FOLDER, options->output);
	return err;
}

/* Writes what is to be served into a file in memory: argv is everybody's, and has no secrets. */
static int write_settings(const struct config *config, int *ret_fd)
{
	OWNED_FD int fd = memfd_create("settings", MFD_CLOEXEC | MFD_ALLOW_SEALING), copy = -1;
	OWNED_FILE FILE *file = NULL;

	copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	file = copy < 0 ? NULL : fdopen(copy, "we");
	if (!file)
		return -errno;
	copy = -1; /* the file's */
	if (config_hand_over(config, file) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK))
		return -EIO;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int server_new(const struct options *options, const char *program, struct server **ret_server)
{
	OWNED(server) struct server *server = NULL;
	int err;

	if (options->no_serve || !options->config ||
	    options->output_kind != OPTIONS_OUTPUT_DIRECTORY)
		return 0;
	server = calloc(1, sizeof(*server));
	if (!server)
		return -ENOMEM;
	server->settings_fd = -1;
	child_init(&server->child, CHILD_SERVER);
	if (program)
		snprintf(server->program, sizeof(server->program), "%s", program);
	else
		child_find_program(NAME, server->program);
	err = make_words(server, options);
	if (!err && config_serves(options->config))
		err = write_settings(options->config, &server->settings_fd);
	if (err)
		return err;
	*ret_server = TAKE(server);
	return 0;
}

/* ---- the child ---- */

/* Waits for its end, but not for long: it may wait for a disk that does not answer, and ends behind
 * this program. */
static void await_end(struct child *child)
{
	const struct timespec step = {.tv_nsec = END_STEP_NS};
	const uint64_t until_ns = mono_ns() + END_NS;

	while (!child_has_ended(child, NULL) && mono_ns() < until_ns)
		nanosleep(&step, NULL);
	child_release(child);
}

void server_free(struct server *server)
{
	if (!server)
		return;
	if (server->child.pid) {
		kill(server->child.pid, SIGTERM);
		await_end(&server->child);
	}
	for (size_t i = 0; i < server->word_count; i++)
		free(server->word[i]);
	close_owned_fd(&server->settings_fd);
	free(server);
}

static void tell_end(const struct server *server, int status, uint64_t now_ns)
{
	const unsigned long long rest_s = (server->child.start_after_ns - now_ns) / NS_PER_SEC;

	if (WIFEXITED(status) && (WEXITSTATUS(status) == CHILD_EXIT_NOT_FOUND ||
				  WEXITSTATUS(status) == CHILD_EXIT_NOT_RUN))
		log_warn("cannot start '%s' for [http] and [push]: is it installed?  It is tried "
			 "again in %llu s",
			 server->program, rest_s);
	else
		log_warn(NAME " has ended (%s %d) and is started again in %llu s",
			 WIFSIGNALED(status) ? "signal" : "exit status",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), rest_s);
}

static void reap(struct server *server, uint64_t now_ns)
{
	int status;

	if (!child_has_ended(&server->child, &status))
		return;
	if (server->was_asked_to_end) {
		server->was_asked_to_end = false;
		return;
	}
	child_rest(&server->child, now_ns);
	tell_end(server, status, now_ns);
}

static void start(struct server *server, uint64_t now_ns)
{
	int err = child_start(&server->child,
			      &(struct child_start){.program = server->program,
						    .argv = server->word,
						    .fd = &server->settings_fd},
			      now_ns);

	if (!err)
		return;
	child_rest(&server->child, now_ns);
	log_warn_errno(err, "cannot start " NAME "; it is tried again in %llu s",
		       (unsigned long long)(server->child.start_after_ns - now_ns) / NS_PER_SEC);
}

void server_turn(struct server *server, uint64_t now_ns)
{
	if (!server)
		return;
	reap(server, now_ns);
	if (server->was_asked_to_end && now_ns >= server->kill_after_ns)
		child_kill(&server->child);
	if (server->settings_fd >= 0 && child_is_due(&server->child, now_ns))
		start(server, now_ns);
}

void server_follow(struct server *server, const struct config *config, uint64_t now_ns)
{
	OWNED_FD int fd = -1;
	int err = config_serves(config) ? write_settings(config, &fd) : 0;

	if (err) {
		log_warn_errno(err, NAME " goes on with the old [http] and [push]");
		return;
	}
	log_info("[http] or [push] has changed: " NAME " %s", fd < 0 ? "ends" : "begins anew");
	close_owned_fd(&server->settings_fd);
	server->settings_fd = TAKE_FD(fd);
	child_forgive(&server->child);
	if (!server->child.pid)
		return;
	kill(server->child.pid, SIGTERM);
	server->was_asked_to_end = true;
	server->kill_after_ns = now_ns + END_NS;
}
