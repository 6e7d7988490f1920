/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/live_options.h"

#include <stdlib.h>
#include <string.h>

#include "query/live_why.h"
#include "reader/complain.h"
#include "reader/verb.h"

enum option_key { KEY_SOCKET = 0x1000 };

static const struct argp_option options[] = {
	{"pid", 'p', "PID[,PID...]", 0, "Only these processes; may be repeated", 8},
	{"socket", KEY_SOCKET, "PATH", 0, "Where pyprofd answers.  Default: " LIVE_SOCKET_DEFAULT,
	 9},
	{0},
};

static void add_pids(struct live_request *request, const char *text, struct argp_state *state)
{
	for (;;) {
		char *end;
		unsigned long pid = strtoul(text, &end, 10);

		if (end == text || !pid || pid > INT32_MAX || (*end && *end != ','))
			argp_error(state, "--pid=%s: not a process", text);
		if (request->pid_count == LIVE_PIDS_MAX)
			argp_error(state, "--pid: more than %u", LIVE_PIDS_MAX);
		request->pid[request->pid_count++] = (uint32_t)pid;
		if (!*end)
			return;
		text = end + 1;
	}
}

static error_t parse(int key, char *text, struct argp_state *state)
{
	struct live_options *live = state->input;

	switch (key) {
	case 'p':
		add_pids(&live->request, text, state);
		return 0;
	case KEY_SOCKET:
		live->socket = text;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

error_t live_options_parse(const struct argp_option *verb_options, argp_parser_t parser,
			   const char *doc, int argc, char **argv, void *input)
{
	static const struct argp live_argp = {.options = options, .parser = parse};
	const struct argp_child children[] = {{&live_argp, 0, NULL, 8}, {0}};
	const struct argp argp = {
		.options = verb_options, .parser = parser, .doc = doc, .children = children};

	return argp_parse(&argp, argc, argv, 0, NULL, input);
}

int live_explain(const struct live_client *client, int err, const char *said)
{
	char text[WHY_BYTES];

	(void)live_why(client, err, said, text);
	return text[0] ? complain("%s", text) : READER_BAD_INPUT;
}
