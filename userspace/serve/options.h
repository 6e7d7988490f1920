/* SPDX-License-Identifier: BSD-2-Clause */
/* What pyprofd-serve is told: by its command line and by the configuration file. */
#ifndef SERVE_OPTIONS_H
#define SERVE_OPTIONS_H

#include <stdbool.h>
#include <sys/types.h>

#include "config/config.h"

/* Release with serve_options_release(). */
struct serve_options {
	struct config *config; /* owned; all texts below are its own, or argv's */
	pid_t parent; /* who started it, and takes it along; 0: nobody */
	bool has_http;
	struct config_http http; /* with has_http */
	const char *store, *live;
	const char *state; /* where pushing keeps how far it has come; NULL: not given */
	const char *host[CONFIG_HOSTS_MAX]; /* names that Host may say; in host_text */
	char *host_text; /* owned; NULL: none */
	size_t host_count;
};

/* Parses argv; --help, --version and what is no option end the program.  Returns 0; -EINVAL and one
 * line in `why`; -ENOMEM. */
int serve_options_parse(int argc, char **argv, char why[CONFIG_WHY_BYTES],
			struct serve_options *ret_options);
void serve_options_release(struct serve_options *options);

#endif
