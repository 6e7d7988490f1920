/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles of other machines: pyprof-fetch, a program of its own, gets them into a temporary
 * directory, where they are read like all others (docs/design/serve.md). */
#ifndef QUERY_REMOTE_H
#define QUERY_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "query/watcher.h"

#define REMOTE_NAME_BYTES 512U

struct remote_ask {
	const char *url;
	const char *const *set; /* "KEY=VALUE" of --from-set */
	unsigned int set_count;
	const char *kind, *sample_type; /* NULL: not given */
	uint64_t since_ms, until_ms;	/* since 1970; 0: not given */
	const struct watcher *watcher;	/* hears of progress and notes */
};

struct remote;

/* Writes a URL as it may be shown: a user with a password, and what
 * follows the '?' of a plain http:// URL, may be secret.
 * Clean it for where it is shown. */
void remote_name(const char *url, char ret_name[REMOTE_NAME_BYTES]);

/* Starts pyprof-fetch and waits until everything has come.  Returns 0; -ENOENT: there are no such
 * profiles; -EINVAL; each with a line in why, without the URL. */
int remote_fetch(const struct remote_ask *ask, char why[WHY_BYTES], struct remote **ret_remote);
/* Removes what was fetched. */
void remote_free(struct remote *remote);
DEFINE_OWNED(struct remote, remote)

/* Returns the path of a file or of a directory of profiles. */
const char *remote_path(const struct remote *remote);

#endif
