/* SPDX-License-Identifier: BSD-2-Clause */
/* A child of the agent: its own program under another name, which takes requests over a socket and
 * puts what it finds into memory that both map.  A child that is late or ends is replaced, so
 * whatever it does costs the agent one deadline.  One thread. */
#ifndef CHILD_WORKER_H
#define CHILD_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "child/children.h"

#define WORKER_FDS_MAX 6U	      /* that go to a child with a request */
#define WORKER_RUNNING_MAX 4U	      /* so often a child that has no CPU is awaited once more */
#define WORKER_STUCK_MAX 4U	      /* children that were killed and have not ended */
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
};

struct worker;
/* program: what children are, "/proc/self/exe" for the agent's own.  Starts the first one, if that
 * can be done.  kind is borrowed.  Returns 0 or -ENOMEM. */
int worker_new(const struct worker_kind *kind, const char *program, struct worker **ret_worker);
/* Waits until the child is ready, WORKER_START_NS at most.  Returns whether it is. */
bool worker_await(struct worker *worker);
/* Ends the child. */
void worker_free(struct worker *worker);
DEFINE_OWNED(struct worker, worker)

struct worker_request {
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
 * two children in a row have ended at the request; -ETIMEDOUT: no child is to be had now. */
int worker_ask(struct worker *worker, const struct worker_request *request,
	       struct worker_answer *ret_answer);
/* The shared memory as it is now: the child may write to it at any time. */
const uint8_t *worker_memory(const struct worker *worker);
/* Overwrites the first bytes of it, so that what an answer brought does not stay. */
void worker_wipe(struct worker *worker, size_t bytes);
void worker_get_stats(const struct worker *worker, struct worker_stats *ret_stats);

#endif
