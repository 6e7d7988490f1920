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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/program.h"
#include "config/config.h"
#include "options/options.h"

#define NAME "pyprofd-serve"
#define WORDS_MAX 8U
#define STATE_FOLDER "push" /* in the store, which passes it over */
#define SETTINGS_FD 3 /* of the child */
#define EXIT_NO_PROGRAM 127 /* as of a shell */
#define RESTART_MIN_NS NS_PER_SEC
#define RESTART_MAX_NS (60 * NS_PER_SEC)
#define STEADY_NS (60 * NS_PER_SEC) /* who ran so long begins anew with the shortest rest */
#define END_NS (2 * NS_PER_SEC)
#define END_STEP_NS (10 * NS_PER_MS)

extern char **environ;

struct server {
	char program[PROGRAM_PATH_BYTES];
	char *word[WORDS_MAX + 1]; /* owned; argv */
	size_t word_count;
	int settings_fd; /* owned: of config_hand_over(); -1: nothing is to be served */
	pid_t pid; /* 0: none */
	bool was_asked_to_end;
	uint64_t started_ns, start_after_ns, rest_ns;
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
		err = add_word(server, "--settings-fd=%d", SETTINGS_FD);
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
	OWNED_FD int low_fd = memfd_create("settings", MFD_CLOEXEC | MFD_ALLOW_SEALING), fd = -1;
	OWNED_FILE FILE *file = NULL;

	/* Above the child's, so that no dup2() closes the other one. */
	fd = low_fd < 0 ? -1 : fcntl(low_fd, F_DUPFD_CLOEXEC, SETTINGS_FD + 1);
	file = fd < 0 ? NULL : fdopen(low_fd, "we");
	if (!file)
		return -errno;
	low_fd = -1; /* the file's */
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
	server->rest_ns = RESTART_MIN_NS;
	if (program)
		snprintf(server->program, sizeof(server->program), "%s", program);
	else
		program_find(NAME, server->program);
	err = make_words(server, options);
	if (!err && config_serves(options->config))
		err = write_settings(options->config, &server->settings_fd);
	if (err)
		return err;
	*ret_server = TAKE(server);
	return 0;
}

/* ---- the child ---- */

/* Waits for its end, but not for long.  Returns whether it has ended. */
static bool has_ended_within(pid_t pid, uint64_t limit_ns)
{
	const struct timespec step = {.tv_nsec = END_STEP_NS};
	const uint64_t until_ns = mono_ns() + limit_ns;

	while (!waitpid(pid, NULL, WNOHANG)) {
		if (mono_ns() >= until_ns)
			return false;
		nanosleep(&step, NULL);
	}
	return true;
}

void server_free(struct server *server)
{
	if (!server)
		return;
	if (server->pid) {
		kill(server->pid, SIGTERM);
		/* It may wait for a disk that does not answer, and ends behind this program. */
		if (!has_ended_within(server->pid, END_NS)) {
			kill(server->pid, SIGKILL);
			waitpid(server->pid, NULL, WNOHANG);
		}
	}
	for (size_t i = 0; i < server->word_count; i++)
		free(server->word[i]);
	close_owned_fd(&server->settings_fd);
	free(server);
}

static void tell_end(const struct server *server, int status)
{
	const unsigned long long rest_s = server->rest_ns / NS_PER_SEC;

	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_PROGRAM)
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

	if (!server->pid || waitpid(server->pid, &status, WNOHANG) != server->pid)
		return;
	server->pid = 0;
	if (server->was_asked_to_end) {
		server->was_asked_to_end = false;
		return;
	}
	if (now_ns - server->started_ns >= STEADY_NS)
		server->rest_ns = RESTART_MIN_NS;
	server->start_after_ns = now_ns + server->rest_ns;
	tell_end(server, status);
	server->rest_ns = 2 * server->rest_ns < RESTART_MAX_NS ? 2 * server->rest_ns
							       : RESTART_MAX_NS;
}

/* Of the child, which shares no memory with this program: that is what lets the loop go on while
 * the disk is asked for the program.  After fork() only what is safe in a signal handler may be
 * called (fork(2)). */
static _Noreturn void become_program(const struct server *server)
{
	if (dup2(server->settings_fd, SETTINGS_FD) == SETTINGS_FD)
		execvpe(server->program, server->word, environ);
	_exit(EXIT_NO_PROGRAM);
}

static void start(struct server *server, uint64_t now_ns)
{
	pid_t pid = fork();

	if (!pid)
		become_program(server);
	server->started_ns = now_ns;
	if (pid > 0) {
		server->pid = pid;
		return;
	}
	server->start_after_ns = now_ns + RESTART_MAX_NS;
	log_warn_errno(-errno, "cannot start " NAME "; it is tried again in %llu s",
		       RESTART_MAX_NS / NS_PER_SEC);
}

void server_turn(struct server *server, uint64_t now_ns)
{
	if (!server)
		return;
	reap(server, now_ns);
	if (server->pid && server->was_asked_to_end && now_ns >= server->kill_after_ns)
		kill(server->pid, SIGKILL);
	if (!server->pid && server->settings_fd >= 0 && now_ns >= server->start_after_ns)
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
	server->start_after_ns = 0;
	server->rest_ns = RESTART_MIN_NS;
	if (!server->pid)
		return;
	kill(server->pid, SIGTERM);
	server->was_asked_to_end = true;
	server->kill_after_ns = now_ns + END_NS;
}
