/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's end of the live socket: clients, their requests and replies.  Everything is bounded:
 * the number of clients, the length and time of a request, the time that a client takes to read.
 * Never waits.  One thread. */
#ifndef LIVE_SERVER_H
#define LIVE_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "live/request.h"

#define LIVE_CLIENTS_MAX 24U
#define LIVE_CLIENTS_OF_USERS_MAX 16U /* of all but root: the other places are root's */
#define LIVE_CLIENTS_OF_UID_MAX 4U    /* root excepted */
/* How many connections of others than root are accepted: 64 at once, then 1,000 a second, which
 * take 2 % of a CPU. */
#define LIVE_CONNECTS_AT_ONCE 64U
#define LIVE_CONNECTS_PER_S 1000U
#define LIVE_REST_NS 20000000ULL      /* between looks at who is above that or slow to ask */
#define LIVE_REQUEST_NS 2000000000ULL /* until the whole request has arrived */
#define LIVE_WAIT_NS 60000000000ULL   /* until work on the request begins */
#define LIVE_IDLE_NS 10000000000ULL   /* a client that reads nothing of its reply is closed */

/* Returns whether a user may see a process's stacks, as the kernel's PTRACE_MODE_READ: root may;
 * others where the process's real, effective and saved uid are theirs, it has no capabilities and
 * is dumpable, so that they own /proc/PID.  False when it is gone. */
bool live_may_see(uid_t uid, uint32_t tgid);

struct live_server;
/* Binds the path; a socket that nobody serves any more is replaced.  Creates the socket's directory
 * when only that is missing.  Binds PATH.root too (LIVE_ROOT_SUFFIX), where only root may connect,
 * so that root does not queue with everybody.  "fd:3": creates no socket, but serves the one client
 * connected there.  Returns 0; -EADDRINUSE: somebody serves it; -ENAMETOOLONG; -errno. */
int live_server_open(const char *path, struct live_server **ret_server);
/* Lets a user beside root see everything, and take root's places: the one that pyprofd-serve runs
 * as. */
void live_server_trust(struct live_server *server, uid_t uid);
/* Closes the server and removes the path. */
void live_server_close(struct live_server *server);

/* Returns a descriptor that is readable when there is something to serve. */
int live_server_fd(const struct live_server *server);
/* Accepts, reads and sends, and closes clients that are late: call it now and then for these
 * too. */
void live_server_serve(struct live_server *server, uint64_t now_ns);

/* What clients were refused, since the start. */
struct live_server_facts {
	uint64_t turned_away; /* connections of users who had all their places, or found none */
	uid_t turned_uid;     /* the last of those users */
	uint64_t replaced;    /* clients that made room for a user with fewer */
	uint64_t rests;	      /* times that connections had to wait for the budget */
};
void live_server_facts(const struct live_server *server, struct live_server_facts *ret_facts);

/* A client whose request has arrived. */
struct live_job {
	uint64_t number; /* of the connection; never 0 */
	uid_t uid;	 /* what this user may see is answered; 0: everything */
	uid_t who;	 /* answers for that user, and so for what it costs */
	struct live_request request;
};
/* Selects requests by kind. */
struct live_choice {
	enum live_verb verb;
	bool root_only; /* only those that see everything */
	/* Whether one for whom this one answers may be taken now; NULL: all may. */
	bool (*may_take)(void *context, uid_t who);
	void *context;
};
/* Takes the request that has waited longest.  Returns false when there is none. */
bool live_server_next(struct live_server *server, struct live_choice choice,
		      struct live_job *ret_job);
/* Returns whether the client is still connected. */
bool live_server_waits(const struct live_server *server, uint64_t number);
/* Sends a reply and takes ownership of the text (heap), even when the client is gone. */
void live_server_reply(struct live_server *server, uint64_t number, char *text, size_t size,
		       uint64_t now_ns);
/* Sends a part of a reply that has no end, and takes ownership of the text (heap).  A client that
 * has not read the part before does not get this one; a client that reads nothing for LIVE_IDLE_NS
 * is closed. */
void live_server_push(struct live_server *server, uint64_t number, char *text, size_t size,
		      uint64_t now_ns);
/* Sends an `error` record for a request. */
void live_server_refuse(struct live_server *server, uint64_t number, int err, const char *why,
			uint64_t now_ns);

#endif
