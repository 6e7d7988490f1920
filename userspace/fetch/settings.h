/* SPDX-License-Identifier: BSD-2-Clause */
/* What pyprof-fetch is to get, and as whom: lines that pyprof hands over in a file in memory, since
 * argv is everybody's.  They come from whoever typed the command, and are checked. */
#ifndef FETCH_SETTINGS_H
#define FETCH_SETTINGS_H

#include <stdint.h>
#include <stdio.h>

#include "config/config.h"
#include "store/store_names.h"

#define FETCH_HEADERS_MAX 32U
#define FETCH_TYPE_BYTES 64U

/* Texts are owned; NULL: not given.  Release with fetch_settings_release(). */
struct fetch_settings {
	char *url;
	char kind[STORE_KIND_CHARS];	    /* "": the default */
	char sample_type[FETCH_TYPE_BYTES]; /* "": the kind's default */
	uint64_t since_ms, until_ms;	    /* since 1970; 0: not given */
	char *token_file, *user, *ca, *cert, *key, *proxy, *tenant;
	char *header[FETCH_HEADERS_MAX]; /* "Name: value" */
	size_t header_count;
};

/* Reads "NAME=VALUE" lines: url, kind, sample-type, since-ms, until-ms, and set=KEY=VALUE for what
 * the user gave by --from-set: token-file, user, ca, cert, key, proxy, header and tenant, as in
 * [push].  Returns 0; -EINVAL, and in why what is wrong, in one line; -ENOMEM. */
int fetch_settings_read(FILE *file, struct fetch_settings *settings, char why[CONFIG_WHY_BYTES]);
void fetch_settings_release(struct fetch_settings *settings);

#endif
