/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of the verbs that ask a running pyprofd, as an argp child. */
#ifndef READER_LIVE_OPTIONS_H
#define READER_LIVE_OPTIONS_H

#include <argp.h>

#include "live/client.h"
#include "live/request.h"

struct live_options {
	struct live_request request;
	const char *socket; /* NULL: the default */
};

/* Runs argp_parse() for a verb, with its own options and these.  At ARGP_KEY_INIT the verb's parser
 * passes the struct live_options as child_inputs[0].  doc: static, with the examples. */
error_t live_options_parse(const struct argp_option *options, argp_parser_t parser, const char *doc,
			   int argc, char **argv, void *input);

/* Prints why the answer is incomplete: the error of the module that read it, and for -EREMOTEIO
 * what the server said.  Returns the exit code. */
int live_explain(const struct live_client *client, int err, const char *said);

#endif
