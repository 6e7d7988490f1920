/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's end of the live socket: clients, their requests and replies.  All bounded: how many, how
 * long a request is and takes, how long a client reads.  It never waits.  One thread. */
#ifndef LIVE_SERVER_H
#define LIVE_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "live/request.h"

#define LIVE_CLIENTS_MAX 16U
#define LIVE_CLIENTS_OF_UID_MAX 4U /* but root's */
#define LIVE_REQUEST_NS 2000000000ULL /* until the whole request is there */
#define LIVE_WAIT_NS 60000000000ULL   /* until work on it begins */
#define LIVE_IDLE_NS 10000000000ULL   /* a client that takes nothing of its reply */

struct live_server;
/* Binds the path; a socket that nobody serves any more is replaced.  Its folder is made where only
 * that is missing.  "fd:3": no socket of its own, but the client that is connected there, and no other.
 * 0; -EADDRINUSE: somebody serves it; -ENAMETOOLONG; -errno. */
int live_server_open(const char *path, struct live_server **ret_server);
/* Takes the path away. */
void live_server_close(struct live_server *server);

/* Readable when there is something to serve. */
int live_server_fd(const struct live_server *server);
/* Accepts, reads, sends, and closes who is late: also call it now and then for that. */
void live_server_serve(struct live_server *server, uint64_t now_ns);

/* A client whose request is there. */
struct live_job {
	uint64_t number; /* of the connection; never 0 */
	uid_t uid;
	struct live_request request;
};
/* Which of the requests. */
struct live_choice {
	enum live_verb verb;
	bool root_only; /* of root's */
};
/* The one that waits longest, whose turn it is now.  False: there is none. */
bool live_server_next(struct live_server *server, struct live_choice choice,
		      struct live_job *ret_job);
/* Whether the client is still there. */
bool live_server_waits(const struct live_server *server, uint64_t number);
/* Takes the text (heap) over; its client may be gone. */
void live_server_reply(struct live_server *server, uint64_t number, char *text, size_t size,
		       uint64_t now_ns);
/* A part of a reply without an end: takes the text (heap) over.  A client that has not read the part before
 * misses this one, one that reads nothing for LIVE_IDLE_NS is closed. */
void live_server_push(struct live_server *server, uint64_t number, char *text, size_t size,
		      uint64_t now_ns);
/* An `error` for a request. */
void live_server_refuse(struct live_server *server, uint64_t number, int err, const char *why,
			uint64_t now_ns);

#endif
