/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides what a client sees, as docs/design/live.md does on the live socket, whatever way it
 * came. */
#ifndef SERVE_ACCESS_H
#define SERVE_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
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

#endif
