/* SPDX-License-Identifier: BSD-2-Clause */
/* The options that the verbs share which ask pyprofd, as an argp child. */
#ifndef READER_LIVE_OPTIONS_H
#define READER_LIVE_OPTIONS_H

#include <argp.h>
#include <stdbool.h>

#include "live/client.h"
#include "live/request.h"

struct live_options {
	struct live_request request;
	const char *socket; /* NULL: the default */
	bool no_color;
};

/* argp_parse() of a verb: its own options and these.  At ARGP_KEY_INIT its parser gives the struct
 * live_options as child_inputs[0].  doc: static, with the examples. */
error_t live_options_parse(const struct argp_option *options, argp_parser_t parser, const char *doc,
			   int argc, char **argv, void *input);

/* Prints why there was no whole answer: an error of the module that read it, and for -EREMOTEIO what was
 * said.  Returns the exit code. */
int live_explain(const struct live_client *client, int err, const char *why);

#endif
