/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprofd-serve: profiles over HTTP, and to collectors. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "child/sandbox.h"
#include "config/secret.h"
#include "serve/http.h"
#include "serve/listen.h"
#include "serve/memory.h"
#include "serve/options.h"
#include "serve/peer.h"
#include "serve/pushing.h"

#define SWEEP_MS 1000
#define FILE_MAX_BYTES (1U << 20) /* of a certificate, with those above it */
#define END_SECONDS 5U
#define SPARE_FILES 256U /* descriptors beside those of connections */
#define EXIT_USAGE 2

static int complain(const char *text)
{
	fprintf(stderr, "pyprofd-serve: %s\n", text);
	return EXIT_USAGE;
}

/* The texts of files, which are read before the files can no longer be opened. */
struct secrets {
	char *token, *cert, *key, *client_ca; /* owned; NULL: none */
};

static void wipe(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

static void secrets_release(struct secrets *secrets)
{
	wipe(secrets->token);
	wipe(secrets->key);
	free(secrets->cert);
	free(secrets->client_ca);
}

/* Reads a PEM file.  Returns 0, also when none is named; -EINVAL with a line in why. */
static int read_pem(const char *path, char **ret_text, char why[CONFIG_WHY_BYTES])
{
	OWNED_FILE FILE *file = path ? fopen(path, "re") : NULL;
	OWNED_MEM char *text = NULL;
	size_t size;

	if (!path)
		return 0;
	text = file ? calloc(1, FILE_MAX_BYTES + 1) : NULL;
	size = text ? fread(text, 1, FILE_MAX_BYTES, file) : 0;
	if (!size || ferror(file)) {
		snprintf(why, CONFIG_WHY_BYTES, "cannot read '%s': %s", path,
			 errno ? strerror(errno) : "it is empty");
		return -EINVAL;
	}
	*ret_text = TAKE(text);
	return 0;
}

static int read_secrets(const struct config_http *http, struct secrets *secrets,
			char why[CONFIG_WHY_BYTES])
{
	const char *path = http->token_file.text;
	int err = path ? config_read_token(path, geteuid(), &secrets->token, why) : 0;

	if (!err && http->key.text)
		err = config_check_secret(http->key.text, geteuid(), why);
	if (!err)
		err = read_pem(http->key.text, &secrets->key, why);
	if (!err)
		err = read_pem(http->cert.text, &secrets->cert, why);
	return err ? err : read_pem(http->client_ca.text, &secrets->client_ca, why);
}

/* Ends with the process that has started it, however that ends.  Its priority is its own: what it
 * does is not urgent.  Returns whether that process is still there. */
static bool follow_parent(pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	(void)setpriority(PRIO_PROCESS, 0, 0);
	return getppid() == parent;
}

/* Makes room for all connections that are served at once. */
static void raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = HTTP_CONNECTIONS_MAX + SPARE_FILES;
	if (limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* What is beyond is refused, and nothing is killed.  Sanitizers keep more memory than that. */
static void bound_memory(void)
{
#ifndef __SANITIZE_ADDRESS__
	const struct rlimit most = {MEMORY_DATA_MAX_BYTES, MEMORY_DATA_MAX_BYTES};

	(void)setrlimit(RLIMIT_DATA, &most);
#endif
}

static void end_at_last(int signal)
{
	(void)signal;
	_exit(EXIT_SUCCESS);
}

/* Serves until a signal comes: a stop, or the end of who has started this program.  What then works
 * on has END_SECONDS: it may wait for a disk.  http: NULL: it only pushes. */
static void serve(struct http *http, int signals)
{
	struct pollfd source = {.fd = signals, .events = POLLIN};

	while (poll(&source, 1, SWEEP_MS) == 0 || !source.revents)
		if (http)
			http_sweep(http, mono_ns());
	signal(SIGALRM, end_at_last);
	alarm(END_SECONDS);
}

/* Blocks the signals that end the program, for all threads.  A client that has gone is none. */
static int catch_signals(void)
{
	sigset_t wanted;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGINT);
	sigaddset(&wanted, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &wanted, NULL))
		return -errno;
	return signalfd(-1, &wanted, SFD_CLOEXEC);
}

static void tell_start(const struct serve_options *options, bool has_landlock)
{
	const char *scheme = options->http.cert.text ? "https" : "http";
	const struct config_address *address = &options->http.address;
	const bool is_six = strchr(address->host, ':');

	if (address->is_unix)
		fprintf(stderr, "pyprofd-serve: serves at unix:%s", address->host);
	else
		fprintf(stderr, "pyprofd-serve: serves at %s://%s%s%s:%u/", scheme,
			is_six ? "[" : "", address->host, is_six ? "]" : "", address->port);
	fprintf(stderr, "%s\n", has_landlock ? "" : " (without Landlock: this kernel has none)");
}

/* Who asks over TCP on loopback is looked up. */
static enum peer_source find_peers(const struct serve_options *options)
{
	if (!options->has_http || options->http.address.is_unix)
		return PEER_SOCK_DIAG;
	return peer_find_source();
}

static void tell_peers(enum peer_source peers)
{
	if (peers == PEER_PROC)
		fprintf(stderr,
			"pyprofd-serve: the kernel does not answer sock_diag for TCP: users on "
			"this machine are known from /proc/net/tcp, which takes longer the more "
			"sockets there are: modprobe tcp_diag\n");
}

/* ---- pushing ---- */

static void tell_line(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "pyprofd-serve: %s\n", line);
}

static int start_push(const struct serve_options *options, const char *state,
		      char why[CONFIG_WHY_BYTES], struct push **ret_push)
{
	const struct push_options push = {
		.store = options->store, .state = state, .tell = tell_line};
	int err = push_new(&push, options->config, why, ret_push);

	if (err && !why[0])
		snprintf(why, CONFIG_WHY_BYTES, "cannot push: %s", strerror(-err));
	return err;
}

/* ---- all ---- */

static int open_listener(const struct serve_options *options, int *listener,
			 struct socket_keeper *keeper, char why[CONFIG_WHY_BYTES])
{
	const char *where = options->http.listen.text;
	const bool is_unix = options->http.address.is_unix;
	int err = options->has_http ? listen_at(&options->http.address, listener, keeper) : 0;

	if (err == -EADDRINUSE)
		snprintf(why, CONFIG_WHY_BYTES,
			 "cannot listen at %.200s: a server is there already (ss %s shows which): "
			 "stop it, or give another address (listen= of [http], --listen)",
			 where, is_unix ? "-lxp" : "-ltnp");
	else if (err == -EEXIST)
		snprintf(why, CONFIG_WHY_BYTES,
			 "cannot listen at %.200s: there is something that is no socket: remove it",
			 where);
	else if (err)
		snprintf(why, CONFIG_WHY_BYTES, "cannot listen at %.200s: %s", where,
			 strerror(-err));
	return err;
}

/* Takes what cannot be taken once the files are out of reach.  Returns 0, or a negative error with
 * a line in why. */
static int prepare(const struct serve_options *options, struct secrets *secrets, int *listener,
		   struct socket_keeper *keeper, char why[CONFIG_WHY_BYTES])
{
	int err = options->has_http ? read_secrets(&options->http, secrets, why) : 0;

	if (err)
		return err;
	raise_files();
	bound_memory();
	tzset(); /* reads its file while it may */
	err = open_listener(options, listener, keeper, why);
	if (err)
		return err;
	if (!access(options->store, F_OK))
		return 0;
	err = -errno;
	snprintf(why, CONFIG_WHY_BYTES,
		 "cannot find the store '%.200s': %s: start pyprofd first, or give --store",
		 options->store, strerror(-err));
	return err;
}

/* Gives up what is not needed, and goes on with the files of [push] alone beside the store. */
static int confine(const struct serve_options *options, const char *state, bool *ret_has_landlock,
		   char why[CONFIG_WHY_BYTES])
{
	CLEANUP(pushing_folders_release) struct pushing_folders folders = {0};
	struct sandbox_paths paths = {.count = 0};
	int err;

	why[0] = '\0';
	err = pushing_paths(options->config, state, &paths, &folders, why);
	if (!err)
		err = sandbox_add(&paths, options->store, false);
	if (!err)
		err = sandbox_enter(CHILD_SERVER, &paths, ret_has_landlock);
	if (err && !why[0])
		snprintf(why, CONFIG_WHY_BYTES, "cannot give up rights: %s", strerror(-err));
	return err;
}

static int run(const struct serve_options *options)
{
	CLEANUP(secrets_release) struct secrets secrets = {0};
	const char *state = pushing_state(options->state);
	OWNED(push) struct push *push = NULL;
	OWNED(http) struct http *http = NULL;
	CLEANUP(socket_keeper_end) struct socket_keeper keeper = SOCKET_KEEPER_NONE;
	OWNED_FD int listener = -1, signals = catch_signals();
	char why[CONFIG_WHY_BYTES] = "no memory";
	struct http_settings settings;
	bool has_landlock = false;
	int err;

	if (prepare(options, &secrets, &listener, &keeper, why) ||
	    confine(options, state, &has_landlock, why) || start_push(options, state, why, &push))
		return complain(why);
	settings = (struct http_settings){.listen_fd = listener,
					  .token = secrets.token,
					  .name = options->host,
					  .name_count = options->host_count,
					  .peers = find_peers(options),
					  .cert = secrets.cert,
					  .key = secrets.key,
					  .client_ca = secrets.client_ca,
					  .sources = {options->store, options->live},
					  .push = push};
	err = options->has_http ? http_open(&settings, &http) : 0;
	if (err) {
		snprintf(why, sizeof(why), "cannot serve: %s",
			 err == -EINVAL ? "certificate and key do not go together, or are not PEM"
					: strerror(-err));
		return complain(why);
	}
	if (options->has_http) {
		tell_start(options, has_landlock);
		tell_peers(settings.peers);
	}
	serve(http, signals);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	CLEANUP(serve_options_release) struct serve_options options = {0};
	char why[CONFIG_WHY_BYTES] = "no memory";
	int err = serve_options_parse(argc, argv, why, &options);

	if (err)
		return complain(why);
	if (options.parent && !follow_parent(options.parent))
		return EXIT_SUCCESS;
	return run(&options);
}
