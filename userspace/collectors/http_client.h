/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends requests over HTTP/1.1 by libcurl, one at a time.  One thread an object; curl_global_init()
 * comes first. */
#ifndef COLLECTORS_HTTP_CLIENT_H
#define COLLECTORS_HTTP_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define HTTP_CLIENT_CONNECT_TIMEOUT_MS 10000L
#define HTTP_CLIENT_FAULT_BYTES 512U

#define HTTP_CLIENT_HEADERS_MAX 32U

/* As whom requests are sent.  Texts are owned; NULL: none.  Release with
 * http_identity_release(). */
struct http_identity {
	/* One of the two: the token, or the file that it is read from anew for each request. */
	char *token_file, *token;
	char *user;	       /* the token is its password; NULL: a bearer token */
	char *ca, *cert, *key; /* PEM files: the authority's; one's own, both or none */
	char *proxy, *tenant;
	char *header[HTTP_CLIENT_HEADERS_MAX]; /* "Name: value" */
	size_t header_count;
};
void http_identity_release(struct http_identity *identity);

struct http_client_options {
	const struct http_identity *as; /* borrowed while the client is there */
	uint32_t timeout_ms;		/* of a request; 0: as long as something comes */
	uint32_t idle_s; /* a server from which, or to which, nothing moves for so long hangs */
	/* Connections are used again.  curl then sends a request once more by itself when one ends
	 * without an answer: for requests that may come twice. */
	bool keeps_connections;
	const atomic_bool *has_to_stop; /* ends a request that waits; NULL: nothing does */
};

struct http_client_request {
	const char *url;
	const char *const *header; /* besides the client's, NULL at the end; NULL: none */
	const void *body;	   /* POST it; NULL: GET */
	size_t size;
	/* Takes the next bytes of the answer's body.  Returns 0; else the request ends with
	 * HTTP_CLIENT_LEFT. */
	int (*take)(void *context, unsigned int status, const void *bytes, size_t size);
	void *context;
};

enum http_client_end {
	HTTP_CLIENT_ANSWERED,
	HTTP_CLIENT_NOT_SENT, /* nothing of the request went out: no connection, no TLS */
	HTTP_CLIENT_CUT_OFF,  /* some of it did, and no whole answer came */
	HTTP_CLIENT_BAD_TLS,  /* a certificate that does not hold: nothing went out */
	HTTP_CLIENT_LEFT,     /* take() ended it */
};

struct http_client_reply {
	enum http_client_end end;
	unsigned int status;	/* of HTTP; 0: none came */
	uint32_t retry_after_s; /* Retry-After, a number or a date; 0: none, or it is over */
	/* One line: why there is no answer, or the status with what the server says; cleaned for a
	 * terminal, and without passwords. */
	char fault[HTTP_CLIENT_FAULT_BYTES];
};

struct http_client;

/* Returns 0 or -ENOMEM. */
int http_client_new(const struct http_client_options *options, struct http_client **ret_client);
void http_client_free(struct http_client *client);
DEFINE_OWNED(struct http_client, http_client)

/* Sends a request.  Redirects are never followed: a token would go where they lead.  Returns 0,
 * whatever the server answers; -EPERM, -EINVAL, -errno: nothing was sent, as the token's file
 * cannot be used, with fault set; -ENOMEM. */
int http_client_send(struct http_client *client, const struct http_client_request *request,
		     struct http_client_reply *ret_reply);

/* Returns whether the file of the token has another text than at the last request. */
bool http_client_has_new_token(struct http_client *client);

#endif
