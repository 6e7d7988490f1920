/* SPDX-License-Identifier: BSD-2-Clause */
/* Serves HTTP, over TLS where there is a certificate.  One thread of libmicrohttpd takes requests
 * and sends answers; it never waits and never reads a profile: workers do.
 *
 * Everything is bounded: connections, the time and size of a request, the time to read an answer,
 * work at once, bytes of answers in memory.  A client that is late is closed, so that slow ones
 * hold nobody up. */
#ifndef SERVE_HTTP_H
#define SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "collectors/push.h"
#include "serve/exchange.h"
#include "serve/peer.h"

#define HTTP_CONNECTIONS_MAX 2048U
#define HTTP_CONNECTION_BYTES 8192U /* of a request's line and headers */
/* Until a request has come, from when the connection was made or its last answer was read; when
 * three quarters of the places are taken, or of what one user could have of them (places.h), a
 * tenth of it. */
#define HTTP_REQUEST_NS 10000000000ULL
#define HTTP_CROWDED(places) ((places) * 3 / 4)
#define HTTP_READER_NS 120000000000ULL /* until an answer is read */
#define HTTP_WATCHES_MAX 8U	       /* live profiles and /metrics at once; no more wait */
#define HTTP_MERGES_MAX 2U	       /* profiles of the store at once */
#define HTTP_MERGES_WAITING 14U
/* Of all bodies that are being sent.  A user may have as much of it as is still free. */
#define HTTP_ANSWERS_MAX_BYTES (256ULL << 20)

struct http_settings {
	int listen_fd;		     /* borrowed; listening */
	struct exchange_rules rules; /* but for the sessions */
	enum peer_source peers;	     /* where it is looked up whose a connection is */
	/* PEM; NULL: no TLS.  With client_ca a client that shows a certificate of that authority
	 * sees everything, and one without needs what it needs otherwise. */
	const char *cert, *key, *client_ca;
	struct answer_sources sources; /* all borrowed */
	struct push *push;	       /* whose metrics are served, too; borrowed; NULL: none */
};

struct http;
/* Starts the thread.  settings: borrowed until http_close().  Returns 0; -ENOMEM; -EINVAL:
 * certificate and key do not go together; -errno. */
int http_open(const struct http_settings *settings, struct http **ret_http);
/* Closes all connections; work that goes on is waited for, and ends early. */
void http_close(struct http *http);
static inline void http_free(struct http *http)
{
	http_close(http);
}
DEFINE_OWNED(struct http, http)
/* Closes clients that are late.  Call it about once a second, from any thread. */
void http_sweep(struct http *http, uint64_t now_ns);

#endif
