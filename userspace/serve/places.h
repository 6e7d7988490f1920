/* SPDX-License-Identifier: BSD-2-Clause */
/* The connections that are open, whose they are, and since when each is in its state.  A user may
 * have as many as are still free, and all users together three quarters: the rest is root's.
 * Thread-safe. */
#ifndef SERVE_PLACES_H
#define SERVE_PLACES_H

#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "serve/counts.h"

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

#define PLACES_NOBODY ((uid_t)-1)	      /* all whose user is not known: together one */
#define PLACES_USERS_SHARE(places) ((places) * 3 / 4)

/* Takes a place for a connected socket, borrowed until places_leave().  Returns NULL when all are
 * taken, or as many as are the user's, which is counted. */
struct place *places_take(struct places *places, int fd, uid_t uid, uint64_t now_ns);
void places_leave(struct places *places, struct place *place);
void places_set(struct places *places, struct place *place, enum place_state state,
		uint64_t now_ns);
/* Shuts down sockets that are late (http.h), whose connections end by that. */
void places_sweep(struct places *places, uint64_t now_ns);
/* Shuts down all sockets. */
void places_close(struct places *places);

#endif
