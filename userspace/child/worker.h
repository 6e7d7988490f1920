/* SPDX-License-Identifier: BSD-2-Clause */
/* Children: how one is kept at work; how the agent asks a worker, its own program under another
 * name, which takes requests over a socket and puts what it finds into memory that both map; and
 * the worker's own end.  A worker that is late or ends is replaced, so whatever it does costs the
 * agent one deadline.  One thread. */
#ifndef CHILD_WORKER_H
#define CHILD_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/cleanup.h"
#include "child/children.h"
#include "child/spawn.h"

/* ---- a child that is kept at work ---- */

/* Its row of child/children.h says when another one may be started. */
struct child {
	enum child_kind kind;
	pid_t pid;	 /* 0: there is none */
	clockid_t clock; /* its CPU time */
	bool is_killed;
	uint64_t started_ns;	 /* CLOCK_MONOTONIC, as all times */
	uint64_t start_after_ns; /* another one may be started then */
	uint64_t rest_ns;	 /* the next pause */
};

/* There is no child yet. */
void child_init(struct child *child, enum child_kind kind);
/* Returns whether there is none, and one may be started now. */
bool child_is_due(const struct child *child, uint64_t now_ns);
/* Starts one where there is none.  Returns 0 or -errno, as child_spawn(). */
int child_start(struct child *child, const struct child_start *start, uint64_t now_ns);
/* Kills it; it ends when what it waits for lets it. */
void child_kill(struct child *child);
/* Returns whether there was one, which has ended and is reaped: its wait status. */
bool child_has_ended(struct child *child, int *ret_status);
/* Kills it, and does not wait for its end. */
void child_release(struct child *child);
/* Has the next one started after the row's pause: the last one could not be started, or has ended
 * or failed by itself. */
void child_rest(struct child *child, uint64_t now_ns);
/* ... after its longest pause: what keeps the child from working does not change soon. */
void child_rest_long(struct child *child, uint64_t now_ns);
/* Begins anew with the shortest pause, which is over. */
void child_forgive(struct child *child);
/* The CPU time of the one there is. */
uint64_t child_cpu_ns(const struct child *child);

/* ---- one that takes requests ---- */

#define WORKER_FDS_MAX 6U	      /* that go to a child with a request */
#define WORKER_RUNNING_MAX 4U	      /* so often a child that has no CPU is awaited once more */
#define WORKER_STUCK_MAX 4U	      /* children that were killed and have not ended */
#define WORKER_STUCK_OF_USER_MAX 2U   /* ... at what one user other than root has */
#define WORKER_STUCK_NS 1000000000ULL /* a child that takes longer to end is counted */
#define WORKER_START_NS 5000000000ULL /* a child that is not ready by then is replaced */
#define WORKER_HELLO_NS 100000000ULL  /* awaited when a request comes to a new child */

#define CHILD_HELLO 0U		   /* a serial that no request has */
#define CHILD_LOWEST_ERROR (-4095) /* MAX_ERRNO */

/* What a child says to a request, and with CHILD_HELLO when it is ready. */
struct child_reply {
	uint32_t serial; /* of the request */
	int32_t error;	 /* 0 or -errno */
	uint32_t size;	 /* of what it has written, where the request leaves that open */
	uint32_t padding;
};

/* Returns whether a message is the reply to a request of a child with that much shared memory. */
static inline bool child_reply_is_sound(const struct child_reply *reply, size_t size,
					uint32_t serial, size_t memory_bytes)
{
	return size == sizeof(*reply) && reply->serial == serial && reply->error <= 0 &&
	       reply->error >= CHILD_LOWEST_ERROR && reply->size <= memory_bytes;
}

struct worker_kind {
	enum child_kind kind;
	size_t memory_bytes; /* shared; 0: none */
	/* Its own CPU time counts as being late, because it computes what others have written; that
	 * of a child that only waits does not. */
	bool is_computing;
};

struct worker_stats {
	uint64_t starts; /* of children */
	uint64_t cpu_ns; /* of all children */
	uint64_t stuck;	 /* killed, and not ended WORKER_STUCK_NS later */
};

struct worker;
/* program: what children are, "/proc/self/exe" for the agent's own.  peer: a socket that each of
 * them gets as CHILD_PEER_FD, -1: none.  Starts the first one, if that can be done.  kind and peer
 * are borrowed.  Returns 0 or -ENOMEM. */
int worker_new(const struct worker_kind *kind, const char *program, int peer,
	       struct worker **ret_worker);
/* Waits until the child is ready, WORKER_START_NS at most.  Returns whether it is. */
bool worker_await(struct worker *worker);
/* Ends the child. */
void worker_free(struct worker *worker);
DEFINE_OWNED(struct worker, worker)

/* What is to blame when a child is late.  As long as a child that was killed for it has not ended,
 * because a file system does not answer (state D), the same is not asked again: neither about what
 * it was, nor about what lies in that place; for two such children, about nothing of the user's;
 * and for all places but one, about nothing of anybody's but root's. */
struct worker_blame {
	uint64_t what;	/* a process or a file; 0: unknown */
	uint64_t place; /* the device of a file system; 0: unknown */
	uid_t user;
};

struct worker_request {
	struct worker_blame blame;
	void *message; /* begins with a uint32_t, which becomes its serial */
	size_t bytes;
	const int *fd; /* borrowed; go to the child */
	size_t fd_count;
	unsigned int limit_ms;
};

/* What a request brought. */
struct worker_answer {
	struct child_reply reply;
	int fd; /* owned; -1: none came */
};
void worker_answer_release(struct worker_answer *answer);

/* Sends a request and awaits its reply.  When the child ends meanwhile, another one is asked.
 * Returns 0: it has answered, perhaps with an error; -ETIME: it was late, and is replaced; -EPIPE:
 * two children in a row have ended at the request; -ETIMEDOUT: no child is to be had now, or what
 * is to blame holds one up. */
int worker_ask(struct worker *worker, const struct worker_request *request,
	       struct worker_answer *ret_answer);
/* Returns whether a child has not ended for what would be to blame again, and so is not asked. */
bool worker_is_held_up(struct worker *worker, const struct worker_blame *blame);
/* The shared memory as it is now: the child may write to it at any time. */
const uint8_t *worker_memory(const struct worker *worker);
/* Overwrites the first bytes of it, so that what an answer brought does not stay. */
void worker_wipe(struct worker *worker, size_t bytes);
/* Returns a number that no other child of it has, nor the time without one. */
uint64_t worker_child(const struct worker *worker);
void worker_get_stats(struct worker *worker, struct worker_stats *ret_stats);

/* What the agent's children have in common: each is this program, started again, and answers
 * requests from CHILD_SOCKET_FD until the agent closes it. */

/* Sends a message with descriptors; flags: of sendmsg(2).  Returns whether all of it was sent. */
bool child_send(int socket, const void *data, size_t bytes, const int *fd, size_t fd_count,
		int flags);
/* Sends a reply, with a descriptor unless it is -1. Returns false when the agent has gone. */
bool child_answer(const struct child_reply *reply, int fd);
/* Begins as that child, says hello, answers requests, and ends the process: what libraries do at an
 * exit needs more system calls than the child has.  serve() receives one request and answers it; it
 * returns false when the agent has gone, or the request is none.  Exit status 1: there is no
 * sandbox. */
_Noreturn void child_run(enum child_kind kind, bool (*serve)(void *context), void *context);

/* ---- late.c: single processes that did not answer in time, and users of several such ----
 *
 * They are left alone for a time.  Root's processes count one by one only: one of them must not
 * cost all others their stacks. */

#define LATE_ALONE_NS 10000000000ULL	  /* a process that was late */
#define LATE_USER_ALONE_NS 60000000000ULL /* a user whose processes were late, other than root */
#define LATE_USER_MAX 4U		  /* so often within LATE_USER_ALONE_NS */
#define LATE_ENTRIES 32U		  /* of each kind; the one that ends first makes room */

struct late_entry {
	uint32_t id;	   /* task, or user */
	uint32_t count;	   /* lates since `since_ns` */
	uint64_t since_ns; /* 0: the entry is free */
	uint64_t until_ns; /* left alone until then */
};

struct late_table {
	struct late_entry task[LATE_ENTRIES], user[LATE_ENTRIES];
	uint64_t users_until_ns;    /* until then some user is left alone */
	uint64_t suspects_until_ns; /* until then some user is suspected */
};

/* Notes a task that was late, and its user: see LATE_ALONE_NS and LATE_USER_MAX. */
void late_table_add(struct late_table *table, pid_t tid, uid_t user, uint64_t now_ns);
bool late_table_has_task(const struct late_table *table, pid_t tid, uint64_t now_ns);
bool late_table_has_user(const struct late_table *table, uid_t user, uint64_t now_ns);
/* Returns whether a process of the user was late within LATE_USER_ALONE_NS. */
bool late_table_suspects(const struct late_table *table, uid_t user, uint64_t now_ns);
/* Returns whether a task, or its user's, is to be left alone now. */
bool late_table_forbids(const struct late_table *table, uint32_t id, uid_t user, uint64_t now_ns);

#endif
