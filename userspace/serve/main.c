/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprofd-serve: profiles over HTTP, and to collectors. */
#include <argp.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/who_answers.h"
#include "child/sandbox.h"
#include "child/spawn.h"
#include "collectors/push.h"
#include "collectors/queue.h"
#include "config/config.h"
#include "config/secret.h"
#include "live/listener.h"
#include "live/request.h"
#include "serve/http.h"
#include "serve/peer.h"
#include "version.h"

/* ---- what it is told: by its command line and by the configuration file ---- */

/* Release with serve_options_release(). */
struct serve_options {
	struct config *config; /* owned; all texts below are its own, or argv's */
	pid_t parent;	       /* who started it, and takes it along; 0: nobody */
	bool has_http;
	struct config_http http; /* with has_http */
	const char *store, *live;
	const char *state; /* where pushing keeps how far it has come; NULL: not given */
	const char *host[CONFIG_HOSTS_MAX]; /* names that Host may say; in host_text */
	char *host_text;		    /* owned; NULL: none */
	size_t host_count;
};

#define OPTION_HTTP 0x1000 /* + enum config_http_key */
enum {
	OPTION_STORE = 0x2000,
	OPTION_LIVE,
	OPTION_CONFIG,
	OPTION_SET,
	OPTION_STATE,
	OPTION_PARENT,
	OPTION_SETTINGS
};

static const struct argp_option option_rows[] = {
	{.doc = "Where it serves:", .group = 1},
	{"listen", OPTION_HTTP + CONFIG_HTTP_LISTEN, "ADDRESS", 0,
	 "ADDRESS:PORT, :PORT for every address, or unix:/PATH; default: 127.0.0.1:4041", 1},
	{"host", OPTION_HTTP + CONFIG_HTTP_HOST, "NAME", 0,
	 "A name by which clients reach this server; may be repeated.  Addresses and localhost "
	 "need none",
	 1},
	{.doc = "Who sees everything, beside root; other users see their own processes:",
	 .group = 2},
	{"token-file", OPTION_HTTP + CONFIG_HTTP_TOKEN_FILE, "FILE", 0,
	 "Who shows the token in this file", 2},
	{"cert", OPTION_HTTP + CONFIG_HTTP_CERT, "FILE", 0, "Serve TLS with this certificate (PEM)",
	 2},
	{"key", OPTION_HTTP + CONFIG_HTTP_KEY, "FILE", 0, "Its private key (PEM)", 2},
	{"client-ca", OPTION_HTTP + CONFIG_HTTP_CLIENT_CA, "FILE", 0,
	 "Who shows a certificate of this authority (PEM)", 2},
	{.doc = "What it serves:", .group = 3},
	{"store", OPTION_STORE, "DIR", 0, "Where pyprofd writes; default: /var/lib/pyprofd", 3},
	{"live", OPTION_LIVE, "PATH", 0, "Where pyprofd answers; default: " LIVE_SOCKET_DEFAULT, 3},
	{"state", OPTION_STATE, "DIR", 0,
	 "Where it notes what [push] has sent; default: $STATE_DIRECTORY, else "
	 "/var/lib/pyprofd-serve",
	 3},
	{.doc = "The configuration:", .group = 4},
	{"config", OPTION_CONFIG, "FILE", 0,
	 "pyprofd's file: [http], [push], and path and live of the store; the command line goes "
	 "before it",
	 4},
	{"set", OPTION_SET, "SECTION.KEY=VALUE", 0, "As if it stood in that file; may be repeated",
	 4},
	{"with-parent", OPTION_PARENT, "PID", OPTION_HIDDEN, "End when this process ends", 4},
	{"settings-fd", OPTION_SETTINGS, "FD", OPTION_HIDDEN, "What that process configures", 4},
	{0},
};

static const char doc[] =
	"Serves profiles over HTTP, of what runs now and of the store, and pushes the store to\n"
	"collectors: to each [push NAME] of the configuration."
	"\vExamples:\n"
	"  pyprofd-serve\n"
	"  curl 'http://127.0.0.1:4041/debug/pprof/profile?seconds=10&pid=1234' > cpu.pb.gz\n"
	"  go tool pprof http://127.0.0.1:4041/debug/pprof/profile\n"
	"  pyprofd-serve --listen :4041 --token-file /etc/pyprofd/token --cert c.pem --key k.pem\n";

/* Of the service; it may be missing. */
#define CONFIG_DEFAULT "/etc/pyprofd/pyprofd.conf"

struct parsing {
	struct serve_options *options;
	char *why;
};

/* What is wrong is in `why`.  Returns 0 or -errno. */
static int note(const struct parsing *parsing, enum config_kind kind, size_t key, const char *text)
{
	const struct config_value given = {.text = text, .source = CONFIG_FROM_OPTION};

	return config_note(parsing->options->config, kind, key, &given, parsing->why);
}

static int read_file_of(const struct parsing *parsing, const char *path)
{
	int err = config_read(parsing->options->config, path, parsing->why);

	return err == -ENOENT && !strcmp(path, CONFIG_DEFAULT) ? 0 : err;
}

static int take_over(const struct parsing *parsing, const char *text)
{
	OWNED_FILE FILE *file = fdopen((int)strtol(text, NULL, 10), "re");

	if (!file) {
		snprintf(parsing->why, CONFIG_WHY_BYTES, "--settings-fd %.20s: %s", text,
			 strerror(errno));
		return -EINVAL;
	}
	rewind(file); /* the one before this child has read it, too */
	return config_take_over(parsing->options->config, file, parsing->why);
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
	struct parsing *parsing = state->input;
	struct config *config = parsing->options->config;

	if (key >= OPTION_HTTP && key < OPTION_HTTP + CONFIG_HTTP_KEY_COUNT)
		return -note(parsing, CONFIG_HTTP, (size_t)(key - OPTION_HTTP), text);
	switch (key) {
	case OPTION_STORE:
		return -note(parsing, CONFIG_STORE, CONFIG_STORE_PATH, text);
	case OPTION_LIVE:
		return -note(parsing, CONFIG_CAPTURE, CONFIG_CAPTURE_LIVE, text);
	case OPTION_STATE:
		parsing->options->state = text;
		return 0;
	case OPTION_PARENT:
		parsing->options->parent = (pid_t)strtol(text, NULL, 10);
		return 0;
	case OPTION_CONFIG:
		return -read_file_of(parsing, text);
	case OPTION_SETTINGS:
		return -take_over(parsing, text);
	case OPTION_SET:
		return -config_set(config, text, parsing->why);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Without [http] its defaults hold, unless there is a [push] to be there for, or pyprofd has
 * started this program: what it was not told to open it leaves closed. */
static int take_http(const struct parsing *parsing)
{
	struct serve_options *served = parsing->options;
	struct config_push push;
	int err = config_http(served->config, &served->http, parsing->why);

	if (err == -ENOENT && !served->parent &&
	    config_push(served->config, 0, &push, parsing->why) == -ENOENT) {
		size_t count;
		const struct config_key *key = config_keys(CONFIG_HTTP, &count);

		err = note(parsing, CONFIG_HTTP, CONFIG_HTTP_LISTEN,
			   key[CONFIG_HTTP_LISTEN].fallback);
		if (!err)
			err = config_http(served->config, &served->http, parsing->why);
	}
	if (err && err != -ENOENT)
		return err;
	served->has_http = !err;
	return 0;
}

/* Makes the list of names.  Returns 0 or -ENOMEM. */
static int take_hosts(struct serve_options *served)
{
	const char *item, *list;
	size_t size;

	if (!served->has_http || !served->http.host.text)
		return 0;
	list = served->host_text = strdup(served->http.host.text);
	if (!list)
		return -ENOMEM;
	/* config_http() has counted them. */
	while (served->host_count < CONFIG_HOSTS_MAX &&
	       config_next_item(&list, ',', &item, &size)) {
		served->host[served->host_count++] = item;
		served->host_text[item + size - served->host_text] = '\0';
	}
	return 0;
}

static int parse_all(struct parsing *parsing, int argc, char **argv)
{
	static const struct argp argp = {
		.options = option_rows, .parser = parse_option, .doc = doc};
	struct serve_options *served = parsing->options;
	struct config_value live;
	error_t error = argp_parse(&argp, argc, argv, 0, NULL, parsing);
	int err;

	if (error)
		return -error;
	err = take_http(parsing);
	if (!err)
		err = take_hosts(served);
	if (err)
		return err;
	live = config_get(served->config, CONFIG_CAPTURE, CONFIG_CAPTURE_LIVE);
	served->live = live.text ? live.text : LIVE_SOCKET_DEFAULT;
	served->store = config_get(served->config, CONFIG_STORE, CONFIG_STORE_PATH).text;
	return 0;
}

static void serve_options_release(struct serve_options *served)
{
	config_free(served->config);
	free(served->host_text);
	*served = (struct serve_options){0};
}

/* Parses argv; --help, --version and what is no option end the program.  Returns 0; -EINVAL and one
 * line in `why`; -ENOMEM. */
static int serve_options_parse(int argc, char **argv, char why[CONFIG_WHY_BYTES],
			       struct serve_options *ret_options)
{
	struct serve_options served = {0};
	struct parsing parsing = {.options = &served, .why = why};
	int err = config_new(&served.config);

	argp_program_version = "pyprofd-serve " PYPROFD_VERSION;
	argp_err_exit_status = 2;
	if (!err)
		err = parse_all(&parsing, argc, argv);
	if (err) {
		serve_options_release(&served);
		return err;
	}
	*ret_options = served;
	return 0;
}

/* ---- memory ---- */

/* How much memory pyprofd-serve may take, of which each part has a bound of its own: so it answers
 * 503, where it would else be killed.  MemoryMax= of its unit is above that by the files of live
 * windows, which lie in memory where /tmp does, and by the program's text and tables
 * (tests/lint/check_unit.sh). */
#define MEMORY_STACK_BYTES (8U << 20) /* of a thread, at most */
#define MEMORY_THREADS (HTTP_WATCHES_MAX + HTTP_MERGES_MAX + 1)
#define MEMORY_TLS_BYTES (40U << 10) /* of a connection's session, beside its request */
/* The program, and what it knows of files (query/file_totals.h). */
#define MEMORY_OWN_BYTES (32U << 20)

/* Of data and stacks.  One sink may read a file of the store meanwhile; what more than that at
 * once want is refused as it comes. */
#define MEMORY_DATA_MAX_BYTES (1728ULL << 20)
_Static_assert(HTTP_MERGES_MAX *(uint64_t)ANSWER_STORED_MAX_BYTES +
			       HTTP_WATCHES_MAX * (uint64_t)ANSWER_LIVE_MAX_BYTES +
			       HTTP_ANSWERS_MAX_BYTES +
			       HTTP_CONNECTIONS_MAX *
				       (uint64_t)(HTTP_CONNECTION_BYTES + MEMORY_TLS_BYTES) +
			       PUSH_MEMORY_MAX + MEMORY_THREADS * (uint64_t)MEMORY_STACK_BYTES +
			       MEMORY_OWN_BYTES <=
		       MEMORY_DATA_MAX_BYTES,
	       "everything at once fits");

/* ---- the socket where clients connect ---- */

/* Removes the path of a unix socket when the server ends, however that ends.  The server itself may
 * not: Landlock leaves it no file to remove, and a right to remove this one would be one to remove
 * all that lies beside it, in /run for instance.  So a process of its own, that waits for the
 * server's end and holds no capability, does it. */

/* Release with socket_keeper_end(). */
struct socket_keeper {
	int fd; /* of a pipe; closed: the path goes; -1: there is no keeper */
	pid_t pid;
};
#define SOCKET_KEEPER_NONE {.fd = -1}

/* The server's end is the end of the pipe. */
static int keep(void *context)
{
	struct live_listener *listener = context;
	char byte;

	/* It has the server's memory, with its secrets. */
	if (sandbox_begin(CHILD_SOCKET))
		_exit(1);
	listener->fd = -1;
	while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
		;
	live_listener_close(listener);
	_exit(0);
}

/* Starts it for an open listener.  Call it before threads are started.  Returns 0 or -errno. */
static int socket_keeper_start(const struct live_listener *listener,
			       struct socket_keeper *ret_keeper)
{
	struct live_listener kept = *listener;
	OWNED_FD int reader = -1, writer = -1;
	int ends[2], err;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	reader = ends[0];
	writer = ends[1];
	err = child_spawn(CHILD_SOCKET,
			  &(struct child_start){.fd = &reader, .prepare = keep, .context = &kept},
			  &pid);
	if (!err)
		*ret_keeper = (struct socket_keeper){.fd = TAKE_FD(writer), .pid = pid};
	return err;
}

/* Has the path removed, if it is still this listener's, and waits for that. */
static void socket_keeper_end(struct socket_keeper *keeper)
{
	if (keeper->fd < 0)
		return;
	close_owned_fd(&keeper->fd);
	while (waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*keeper = (struct socket_keeper)SOCKET_KEEPER_NONE;
}

#define BACKLOG 1024
#define UNIX_MODE 0666

static int listen_unix(const char *path, int *ret_fd, struct socket_keeper *ret_keeper)
{
	struct live_listener listener = {.fd = -1};
	int err = live_listener_open(path, UNIX_MODE, &listener);

	if (!err)
		err = socket_keeper_start(&listener, ret_keeper);
	if (err) {
		live_listener_close(&listener);
		return err;
	}
	*ret_fd = listener.fd;
	return 0;
}

static int make_address(const struct config_address *address, struct sockaddr_storage *ret_room,
			socklen_t *ret_size)
{
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(address->port)};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(address->port)};

	if (inet_pton(AF_INET, address->host, &four.sin_addr) == 1) {
		memcpy(ret_room, &four, sizeof(four));
		*ret_size = sizeof(four);
		return 0;
	}
	if (inet_pton(AF_INET6, address->host, &six.sin6_addr) != 1)
		return -EINVAL;
	memcpy(ret_room, &six, sizeof(six));
	*ret_size = sizeof(six);
	return 0;
}

/* A neighbour's server at [::1] would get what clients send to "localhost", the token too: that
 * address is taken as well, and as nobody listens there, clients go on to 127.0.0.1.  *fd stays as
 * it is where that cannot be. */
static void hold_six(const struct config_address *address, int *fd)
{
	const struct sockaddr_in6 six = {.sin6_family = AF_INET6,
					 .sin6_port = htons(address->port),
					 .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	OWNED_FD int held = -1;

	if (address->is_unix || strncmp(address->host, "127.", 4) != 0)
		return;
	held = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
	if (held >= 0 && !bind(held, (const struct sockaddr *)&six, sizeof(six)))
		*fd = TAKE_FD(held);
	else if (held >= 0 && errno == EADDRINUSE)
		fprintf(stderr,
			"pyprofd-serve: [::1]:%u is another program's: say 127.0.0.1 in place of "
			"localhost, or that one gets the token\n",
			address->port);
}

/* Binds the address and listens, without waiting in accept(2).  A unix socket may be connected to
 * by everybody: what a client sees is decided by who it is; its path is removed by the keeper,
 * which is started where there is one to remove.  Returns 0; -EADDRINUSE; -EEXIST: the path is no
 * socket; -errno. */
static int listen_at(const struct config_address *address, int *ret_fd,
		     struct socket_keeper *ret_keeper)
{
	const int yes = 1;
	struct sockaddr_storage room = {0};
	socklen_t size;
	int err;

	if (address->is_unix)
		return listen_unix(address->host, ret_fd, ret_keeper);
	err = make_address(address, &room, &size);
	if (err)
		return err;
	OWNED_FD int fd =
		socket(room.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
	    bind(fd, (const struct sockaddr *)&room, size) || listen(fd, BACKLOG))
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* ---- its own rights and bounds ---- */

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
	size_t size = 0;
	int err = path ? read_file(path, FILE_MAX_BYTES, ret_text, &size) : 0;

	if (!path || size)
		return 0;
	snprintf(why, CONFIG_WHY_BYTES, "cannot read '%s': %s", path,
		 err ? strerror(-err) : "it is empty");
	return -EINVAL;
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
	const struct who_ranges *ranges;

	if (err)
		return err;
	raise_files();
	bound_memory();
	tzset(); /* reads its file while it may */
	(void)who_answers_follow(&ranges); /* so does this */
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
	CLEANUP(push_folders_release) struct push_folders folders = {0};
	struct sandbox_paths paths = {.count = 0};
	int err;

	why[0] = '\0';
	err = push_paths(options->config, state, &paths, &folders, why);
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
	const char *state = push_state(options->state);
	OWNED(push) struct push *push = NULL;
	OWNED(http) struct http *http = NULL;
	CLEANUP(socket_keeper_end) struct socket_keeper keeper = SOCKET_KEEPER_NONE;
	OWNED_FD int listener = -1, six = -1, signals = catch_signals();
	char why[CONFIG_WHY_BYTES] = "no memory";
	struct http_settings settings;
	bool has_landlock = false;
	int err;

	if (prepare(options, &secrets, &listener, &keeper, why) ||
	    confine(options, state, &has_landlock, why) || start_push(options, state, why, &push))
		return complain(why);
	settings = (struct http_settings){.listen_fd = listener,
					  .rules = {.token = secrets.token,
						    .name = options->host,
						    .name_count = options->host_count},
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
		hold_six(&options->http.address, &six);
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
