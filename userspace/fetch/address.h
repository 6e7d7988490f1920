/* SPDX-License-Identifier: BSD-2-Clause */
/* What a URL of --from names (base/remote_url.h): whom to ask, and for which series. */
#ifndef FETCH_ADDRESS_H
#define FETCH_ADDRESS_H

#include <stddef.h>

#include "base/remote_url.h"
#include "config/config.h"

#define FETCH_MATCHERS_MAX 32U

struct fetch_matcher {
	char *name, *value; /* owned; decoded */
};

/* Release with fetch_address_release(). */
struct fetch_address {
	enum remote_protocol protocol;
	char *base; /* owned: http://HOST/PREFIX without a '/' at its end; of REMOTE_PROFILE: all */
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
