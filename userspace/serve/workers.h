/* SPDX-License-Identifier: BSD-2-Clause */
/* A bounded number of threads that do what takes time: waiting for windows, merging, rendering.
 * Thread-safe. */
#ifndef SERVE_WORKERS_H
#define SERVE_WORKERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"

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
