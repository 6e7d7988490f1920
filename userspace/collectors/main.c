/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof-fetch: gets profiles over the network for `pyprof --from URL`, which starts it, as git
 * starts what speaks to other machines.  It has the libraries of the network, and pyprof does not.
 *
 * Settings come by descriptor 3 (settings.h).  Standard output has lines: "progress DONE WANTED"
 * and "note TEXT", and at the end one of "directory PATH", "file PATH", "none TEXT" or "error
 * TEXT".  What lies at PATH is there until standard input ends, and is then removed: also when
 * pyprof is killed. */
#include <curl/curl.h>
#include <errno.h>
#include <libgen.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/utf8.h"
#include "child/sandbox.h"
#include "collectors/collector.h"
#include "collectors/session.h"
#include "version.h"

#define SETTINGS_FD 3
#define EXIT_USAGE 2
#define NODE_IDLE_S 300U
/* A profile of the next hour comes when the hour is over. */
#define PROFILE_IDLE_S 3900U

static int finish(const char *word, const char *text)
{
	char clean[FETCH_WHY_BYTES * UTF8_CLEAN_MAX_GROWTH + 1];
	size_t size = strlen(text);

	if (size > FETCH_WHY_BYTES)
		size = FETCH_WHY_BYTES;
	clean[utf8_clean(text, size, clean)] = '\0';
	printf("%s %s\n", word, clean);
	fflush(stdout);
	return !strcmp(word, "error") ? EXIT_USAGE : EXIT_SUCCESS;
}

/* ---- the end ---- */

static sigset_t end_signals(void)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	return ends;
}

/* Waits for the end of pyprof, or a signal, and removes what is left. */
static void *follow_reader(void *context)
{
	struct place *place = context;
	const sigset_t ends = end_signals();
	struct pollfd source[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.events = POLLIN}};
	char byte;

	source[1].fd = signalfd(-1, &ends, SFD_CLOEXEC);
	while (poll(source, 2, -1) <= 0 || (!source[1].revents && read(STDIN_FILENO, &byte, 1) > 0))
		continue;
	place_remove(place);
	_exit(EXIT_SUCCESS);
}

/* ---- rights ---- */

static int confine(const struct fetch_settings *settings, const struct place *place)
{
	/* The directory, as a token may be replaced by renaming another file over it. */
	OWNED_MEM char *token = settings->as.token_file ? strdup(settings->as.token_file) : NULL;
	const char *const read[] = {token ? dirname(token) : NULL, settings->as.ca,
				    settings->as.cert, settings->as.key};
	struct sandbox_paths paths = {.count = 0};
	int err = sandbox_add(&paths, place_path(place), true);

	for (size_t i = 0; !err && i < ARRAY_SIZE(read); i++)
		err = sandbox_add(&paths, read[i], false);
	if (!err)
		err = sandbox_add_network(&paths);
	return err ? err : sandbox_enter(CHILD_FETCH, &paths, NULL);
}

/* ---- one run ---- */

static int fetch(struct session *session)
{
	const struct collector *collector = collector_get(session->address->collector);

	if (!collector->fetch)
		return session_complain(session, "profiles can only be sent to a collector of %s",
					collector_name(session->address->collector));
	return collector->fetch(session);
}

static int tell(const struct session *session, int err)
{
	char path[FETCH_WHY_BYTES];

	if (err == -ENOMEM)
		return finish("error", "no memory");
	if (err)
		return finish(session->is_missing ? "none" : "error", session->why);
	if (collector_get(session->address->collector)->gives_files)
		return finish("directory", place_path(session->place));
	snprintf(path, sizeof(path), "%s/" FETCH_PROFILE_NAME, place_path(session->place));
	return finish("file", path);
}

static int run(const struct fetch_settings *settings, const struct fetch_address *address,
	       struct place *place)
{
	const struct http_client_options options = {
		.as = &settings->as,
		.idle_s = collector_get(address->collector)->is_slow ? PROFILE_IDLE_S : NODE_IDLE_S,
		.keeps_connections = true};
	OWNED(http_client) struct http_client *client = NULL;
	struct session session = {
		.settings = settings, .address = address, .place = place, .lines = stdout};
	pthread_t follower;
	int err;

	if (pthread_create(&follower, NULL, follow_reader, place))
		return finish("error", "cannot start a thread");
	err = curl_global_init(CURL_GLOBAL_DEFAULT) ? -ENOMEM : 0;
	if (!err)
		err = http_client_new(&options, &client);
	session.client = client;
	if (!err)
		err = fetch(&session);
	err = tell(&session, err);
	if (!err)
		pthread_join(follower, NULL);
	return err;
}

int main(int argc, char **argv)
{
	CLEANUP(fetch_settings_release) struct fetch_settings settings = {0};
	CLEANUP(fetch_address_release) struct fetch_address address = {0};
	OWNED(place) struct place *place = NULL;
	const sigset_t ends = end_signals();
	OWNED_FILE FILE *file = NULL;
	char why[CONFIG_WHY_BYTES] = "no memory";
	int err;

	if (argc == 2 && !strcmp(argv[1], "--version")) {
		printf("pyprof-fetch " PYPROFD_VERSION "\n");
		return EXIT_SUCCESS;
	}
	file = argc == 1 ? fdopen(SETTINGS_FD, "re") : NULL;
	if (!file) {
		fprintf(stderr, "pyprof-fetch: pyprof starts this program: pyprof report --from "
				"http://NODE:4041\n");
		return EXIT_USAGE;
	}
	signal(SIGPIPE, SIG_IGN);
	(void)pthread_sigmask(SIG_BLOCK, &ends, NULL);
	err = fetch_settings_read(file, &settings, why);
	if (!err)
		err = fetch_address_parse(settings.url, &address, why);
	if (err)
		return finish("error", why);
	err = place_new(&place);
	if (!err)
		err = confine(&settings, place);
	if (!err)
		return run(&settings, &address, place);
	snprintf(why, sizeof(why), "cannot keep profiles below $TMPDIR or /tmp: %s",
		 strerror(-err));
	return finish("error", why);
}
