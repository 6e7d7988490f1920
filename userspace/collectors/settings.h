/* SPDX-License-Identifier: BSD-2-Clause */
/* What pyprof-fetch is to get, and as whom: lines that pyprof hands over in a file in memory, since
 * argv is everybody's.  They come from whoever typed the command, and are checked.  The URL among
 * them (base/collectors.h) names whom to ask, and for which series. */
#ifndef COLLECTORS_SETTINGS_H
#define COLLECTORS_SETTINGS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/collectors.h"
#include "collectors/http_client.h"
#include "config/config.h"
#include "store/store_query.h"

/* ---- settings ---- */

#define FETCH_TYPE_BYTES 64U

/* Texts are owned; NULL: not given.  Release with fetch_settings_release(). */
struct fetch_settings {
	char *url;
	char kind[STORE_KIND_CHARS];	    /* "": the default */
	char sample_type[FETCH_TYPE_BYTES]; /* "": the kind's default */
	uint64_t since_ms, until_ms;	    /* since 1970; 0: not given */
	struct http_identity as;
};

/* Reads "NAME=VALUE" lines: url, kind, sample-type, since-ms, until-ms, and set=KEY=VALUE for what
 * the user gave by --from-set: token-file, user, ca, cert, key, proxy, header and tenant, as in
 * [push].  Returns 0; -EINVAL, and in why what is wrong, in one line; -ENOMEM. */
int fetch_settings_read(FILE *file, struct fetch_settings *settings, char why[CONFIG_WHY_BYTES]);
void fetch_settings_release(struct fetch_settings *settings);

/* ---- the address ---- */

#define FETCH_MATCHERS_MAX 32U

struct fetch_matcher {
	char *name, *value; /* owned; decoded */
};

/* Release with fetch_address_release(). */
struct fetch_address {
	enum collector_id collector;
	char *base; /* owned: http://HOST/PREFIX without a '/' at its end; of a URL: all */
	struct fetch_matcher matcher[FETCH_MATCHERS_MAX]; /* labels that are to be equal */
	size_t matcher_count;
	char *type; /* owned: of the parameter profile_type; NULL: the kind decides */
};

/* Returns 0; -EINVAL, and in why what is wrong, without what may be a secret; -ENOMEM. */
int fetch_address_parse(const char *url, struct fetch_address *ret_address,
			char why[CONFIG_WHY_BYTES]);
void fetch_address_release(struct fetch_address *address);
/* Writes {NAME="VALUE",...}, as Prometheus, Pyroscope and Parca select series, on the heap.
 * Returns 0 or -ENOMEM. */
int fetch_address_selector(const struct fetch_address *address, char **ret_text);

#endif
