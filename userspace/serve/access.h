/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides what a client sees, as docs/design/live.md does on the live socket, whatever way it
 * came. */
#ifndef SERVE_ACCESS_H
#define SERVE_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum access_view {
	ACCESS_NOTHING, /* who it is is not known, or the token is wrong: 401 */
	ACCESS_OWN,	/* the user's own processes, live only */
	ACCESS_ALL,
};

/* What a client has shown. */
struct access_client {
	bool has_uid; /* the kernel says whose connection it is: unix sockets and loopback */
	uid_t uid;
	bool has_certificate; /* one of a client, which was verified */
	const char *token;    /* NULL: none; from anybody */
};

/* token: the server's; NULL: there is none, so that any token is wrong. */
enum access_view access_decide(const struct access_client *client, const char *token);
/* Compares in a time that depends on neither text. */
bool access_token_is(const char *given, const char *token);

/* Returns whether a Host header is a numeric address, "localhost" or one of the names, with a port
 * or without one: a page of another site that has its name resolve to this address is kept out.
 * host: NULL: there is none. */
bool access_host_is_ours(const char *host, const char *const *name, size_t name_count);

/* What a page's cookie holds in the token's place.  A browser sends the cookies of a host to each
 * of its ports (RFC 6265, section 8.5), so to other users' servers, too: what these learn is of no
 * use to another user, and not for long.  One thread. */

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
