/* SPDX-License-Identifier: BSD-2-Clause */
/* What clients share, with a bound for each user: places of connections, and of work.
 * Thread-safe. */
#ifndef SERVE_PLACES_H
#define SERVE_PLACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "serve/metrics.h"

/* ---- connections ---- */

/* Those that are open, whose they are, and since when each is in its state.  A user may have as
 * many as are still free, and all users together three quarters: the rest is root's.  Beyond that,
 * who comes displaces a connection of the user who has most, or of his own where he has: the oldest
 * that has not asked yet, or else one that reads its answer.  Clients that have shown the token
 * have places of their own. */

enum place_state {
	PLACE_FREE,
	PLACE_ASKS,  /* the request has not come yet */
	PLACE_WAITS, /* for its answer */
	PLACE_READS, /* the answer */
};

struct place;
struct places;
/* counts: borrowed; connections and late clients are counted there. */
int places_new(unsigned int count, struct counts *counts, struct places **ret_places);
void places_free(struct places *places);
DEFINE_OWNED(struct places, places)

#define PLACES_NOBODY ((uid_t) - 1) /* all whose user is not known: together one */
#define PLACES_USERS_SHARE(places) ((places) * 3 / 4)
/* Of clients with the token; and as many again that were displaced, until they end. */
#define PLACES_BESIDE(places) ((places) / 8 + 1)
#define PLACES_ALL(places) ((places) + 2 * PLACES_BESIDE(places))

/* Takes a place for a connected socket, borrowed until places_leave().  Returns NULL when there is
 * none, which is counted as who is displaced is. */
struct place *places_take(struct places *places, int fd, uid_t uid, uint64_t now_ns);
void places_leave(struct places *places, struct place *place);
/* Its client has shown the token: it is not displaced any more, and leaves its user's share. */
void places_trust(struct places *places, struct place *place);
void places_set(struct places *places, struct place *place, enum place_state state,
		uint64_t now_ns);
/* Shuts down sockets that are late (http.h), whose connections end by that. */
void places_sweep(struct places *places, uint64_t now_ns);
/* Shuts down all sockets. */
void places_close(struct places *places);

/* ---- work ---- */

/* A bounded number of threads do what takes time: waiting for windows, merging, rendering. */

#define WORKERS_MAX 16U
/* How much of the work may be of users who do not see everything: all of them together leave some
 * for the others, and one of them leaves some for the other users. */
#define WORKERS_USERS_SHARE(places) ((places) * 3 / 4)
#define WORKERS_USER_SHARE(places) (((places) + 3) / 4)

struct work {
	/* Runs in a thread of the workers; may free the work. */
	void (*run)(struct work *work);
	bool is_of_user; /* of one who does not see everything */
	uid_t uid;
	struct work *next; /* the workers' own */
};

struct workers;
/* Starts that many threads, WORKERS_MAX at most; `waiting` works may wait besides those that run.
 * Returns 0; -ENOMEM; -EAGAIN. */
int workers_new(unsigned int threads, unsigned int waiting, struct workers **ret_workers);
/* Takes no more work, waits until what there is has been done, and ends the threads. */
void workers_end(struct workers *workers);
void workers_free(struct workers *workers); /* after workers_end(), which it does otherwise */
DEFINE_OWNED(struct workers, workers)

/* Hands over a work.  Returns 0; -EBUSY: all places are taken, or its user's are, or
 * workers_end() was called. */
int workers_add(struct workers *workers, struct work *work);
/* Returns how many works wait or run. */
unsigned int workers_count(struct workers *workers);

#endif
