/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/server.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "config/config.h"
#include "options/options.h"

#define NAME "pyprofd-serve"
#define PROGRAM_BYTES 4096U
#define WORDS_MAX (16U + CONFIG_HTTP_KEY_COUNT)
#define RESTART_MIN_NS NS_PER_SEC
#define RESTART_MAX_NS (60 * NS_PER_SEC)
#define STEADY_NS (60 * NS_PER_SEC) /* who ran so long begins anew with the shortest rest */
#define END_NS (2 * NS_PER_SEC)
#define END_STEP_NS (10 * NS_PER_MS)

extern char **environ;

struct server {
	char program[PROGRAM_BYTES];
	char *word[WORDS_MAX + 1]; /* owned; argv */
	size_t word_count;
	pid_t pid; /* 0: none */
	uint64_t started_ns, start_after_ns, rest_ns;
	bool is_ended_by_us; /* it is to start again, and no rest is due */
};

/* ---- its command line ---- */

/* Finds the program beside this one, or else in PATH. */
static void find_program(char program[PROGRAM_BYTES])
{
	ssize_t size = readlink("/proc/self/exe", program, PROGRAM_BYTES - sizeof(NAME) - 1);
	char *slash;

	program[size > 0 ? size : 0] = '\0';
	slash = strrchr(program, '/');
	if (slash) {
		memcpy(slash + 1, NAME, sizeof(NAME));
		if (!access(program, X_OK))
			return;
	}
	memcpy(program, NAME, sizeof(NAME));
}

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

/* Hands on what --set gives: the child reads the file itself. */
static int add_set(struct server *server, const struct config *config)
{
	size_t count;
	const struct config_key *key = config_keys(CONFIG_HTTP, &count);
	int err = 0;

	for (size_t i = 0; !err && i < count; i++) {
		struct config_value value = config_get(config, CONFIG_HTTP, i);

		if (value.text && value.source == CONFIG_FROM_SET)
			err = add_word(server, "--set=http.%s=%s", key[i].name, value.text);
	}
	return err;
}

static int make_words(struct server *server, const struct options *options)
{
	const char *file = config_path(options->config);
	int err = add_word(server, "%s", NAME);

	if (!err)
		err = add_word(server, "--with-parent=%d", getpid());
	if (!err && file)
		err = add_word(server, "--config=%s", file);
	if (!err)
		err = add_set(server, options->config);
	if (!err && options->live)
		err = add_word(server, "--live=%s", options->live);
	if (!err)
		err = add_word(server, "--store=%s", options->output);
	return err;
}

static bool is_wanted(const struct options *options)
{
	char why[CONFIG_WHY_BYTES];
	struct config_http http;
	struct config_push push;

	return !options->no_serve && options->config &&
	       options->output_kind == OPTIONS_OUTPUT_DIRECTORY &&
	       (!config_http(options->config, &http, why) ||
		!config_push(options->config, 0, &push, why));
}

int server_new(const struct options *options, const char *program, struct server **ret_server)
{
	OWNED(server) struct server *server = NULL;
	int err;

	if (!is_wanted(options))
		return 0;
	server = calloc(1, sizeof(*server));
	if (!server)
		return -ENOMEM;
	server->rest_ns = RESTART_MIN_NS;
	if (program)
		snprintf(server->program, sizeof(server->program), "%s", program);
	else
		find_program(server->program);
	err = make_words(server, options);
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
		if (!has_ended_within(server->pid, END_NS)) {
			kill(server->pid, SIGKILL);
			waitpid(server->pid, NULL, 0);
		}
	}
	for (size_t i = 0; i < server->word_count; i++)
		free(server->word[i]);
	free(server);
}

static void reap(struct server *server, uint64_t now_ns)
{
	int status;

	if (!server->pid || waitpid(server->pid, &status, WNOHANG) != server->pid)
		return;
	server->pid = 0;
	if (server->is_ended_by_us) {
		server->is_ended_by_us = false;
		server->start_after_ns = now_ns;
		return;
	}
	if (now_ns - server->started_ns >= STEADY_NS)
		server->rest_ns = RESTART_MIN_NS;
	server->start_after_ns = now_ns + server->rest_ns;
	log_warn(NAME " has ended (%s %d) and is started again in %llu s",
		 WIFSIGNALED(status) ? "signal" : "exit status",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
		 server->rest_ns / NS_PER_SEC);
	server->rest_ns = 2 * server->rest_ns < RESTART_MAX_NS ? 2 * server->rest_ns
							       : RESTART_MAX_NS;
}

void server_restart(struct server *server)
{
	server->start_after_ns = 0;
	server->rest_ns = RESTART_MIN_NS;
	server->is_ended_by_us = server->pid && !kill(server->pid, SIGTERM);
}

void server_turn(struct server *server, uint64_t now_ns)
{
	int err;

	if (!server)
		return;
	reap(server, now_ns);
	if (server->pid || now_ns < server->start_after_ns)
		return;
	server->started_ns = now_ns;
	err = posix_spawnp(&server->pid, server->program, NULL, NULL, server->word, environ);
	if (!err)
		return;
	server->pid = 0;
	server->start_after_ns = now_ns + RESTART_MAX_NS;
	log_warn("cannot start '%s' for [http] and [push]: %s; it is tried again in %llu s",
		 server->program, strerror(err), RESTART_MAX_NS / NS_PER_SEC);
}
