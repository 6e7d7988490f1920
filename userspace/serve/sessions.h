/* SPDX-License-Identifier: BSD-2-Clause */
/* What a page's cookie holds in the token's place.  A browser sends the cookies of a host to each
 * of its ports (RFC 6265, section 8.5), so to other users' servers, too: what these learn is of no
 * use to another user, and not for long.  One thread. */
#ifndef SERVE_SESSIONS_H
#define SERVE_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "serve/access.h"

#define SESSIONS_MAX 64U /* the oldest one goes */
#define SESSIONS_LAST_S (12U * 3600U)
#define SESSIONS_ID_BYTES 33U

/* All zeros: there is none. */
struct sessions {
	struct session {
		char id[SESSIONS_ID_BYTES]; /* "": free */
		bool has_uid;
		uid_t uid; /* whose it is */
		uint64_t since_ms;
	} session[SESSIONS_MAX];
};

/* Begins a session of a client that has shown the token.  now_ms: since 1970.  Returns 0 or -errno:
 * the kernel has no random bytes. */
int sessions_begin(struct sessions *sessions, const struct access_client *client, uint64_t now_ms,
		   char ret_id[SESSIONS_ID_BYTES]);
/* Returns whether this client, or where nothing says which user it is another such one, has begun
 * the session not long ago. */
bool sessions_has(const struct sessions *sessions, const char *id,
		  const struct access_client *client, uint64_t now_ms);

#endif
