/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/options.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live/request.h"
#include "version.h"

#define OPTION_HTTP 0x1000 /* + enum config_http_key */
enum { OPTION_STORE = 0x2000, OPTION_LIVE, OPTION_CONFIG, OPTION_SET, OPTION_STATE,
       OPTION_PARENT, OPTION_SETTINGS };

static const struct argp_option options[] = {
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
	{"cert", OPTION_HTTP + CONFIG_HTTP_CERT, "FILE", 0,
	 "Serve TLS with this certificate (PEM)", 2},
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
static int note(const struct parsing *parsing, enum config_kind kind, size_t key,
		const char *text)
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

static error_t parse(int key, char *text, struct argp_state *state)
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
	static const struct argp argp = {.options = options, .parser = parse, .doc = doc};
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

int serve_options_parse(int argc, char **argv, char why[CONFIG_WHY_BYTES],
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

void serve_options_release(struct serve_options *served)
{
	config_free(served->config);
	free(served->host_text);
	*served = (struct serve_options){0};
}
