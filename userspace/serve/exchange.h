/* SPDX-License-Identifier: BSD-2-Clause */
/* One request and its answer, without a socket: which request it is, who may ask it, and all
 * answers that take no work. */
#ifndef SERVE_EXCHANGE_H
#define SERVE_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "serve/answer.h"
#include "serve/metrics.h"
#include "serve/request.h"

/* ---- who asks ---- */

/* Decides what a client sees, as docs/design/live.md does on the live socket, whatever way it
 * came. */

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

#define EXCHANGE_PARAMETERS_MAX 32U
#define EXCHANGE_COOKIE "pyprofd_session"

/* What a client has sent; everything is from anybody, and borrowed. */
struct exchange_ask {
	const char *method, *path;
	const char *host;	   /* NULL: no such header */
	const char *authorization; /* as host */
	const char *cookie;	   /* value of EXCHANGE_COOKIE; NULL: none */
	struct exchange_parameter {
		const char *name, *value; /* decoded; value NULL: none */
	} parameter[EXCHANGE_PARAMETERS_MAX];
	size_t parameter_count; /* more than EXCHANGE_PARAMETERS_MAX: too many */
	bool has_body;
	struct access_client client; /* its token is found here */
};

struct exchange_rules {
	const char *token;		 /* NULL: none */
	const struct sessions *sessions; /* what a cookie may name; NULL: none */
	const char *const *name;	 /* beside addresses, what Host may say */
	size_t name_count;
};

enum exchange_step {
	EXCHANGE_ANSWER,   /* the answer is there */
	EXCHANGE_REDIRECT, /* to the path, with a session as a cookie */
	EXCHANGE_WORK,	   /* a worker makes it, by its endpoint */
};

/* Returns whether it matters who asks for this path: finding out costs what others have sockets
 * open, where the kernel cannot be asked for one (peer.h). */
bool exchange_needs_client(const char *path);
/* Decides what is to be done.  Fills in the request and whose view it is, or the answer.  Counts
 * what is refused. */
enum exchange_step exchange_begin(const struct exchange_ask *ask,
				  const struct exchange_rules *rules, uint64_t now_ms,
				  struct counts *counts, struct request *ret_request,
				  struct answer_view *ret_view, struct answer *ret_answer);

#endif
