/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread beside the loop that writes what the loop hands over: a slow disk holds up nobody. */
#ifndef BASE_BACKGROUND_H
#define BASE_BACKGROUND_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

static inline pthread_mutex_t *mutex_locked(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	return mutex;
}

static inline void mutex_unlock_held(pthread_mutex_t *const *mutex)
{
	pthread_mutex_unlock(*mutex);
}

/* Holds a mutex until the end of the block; one a block. */
#define LOCKED(mutex) CLEANUP(mutex_unlock_held) pthread_mutex_t *const held_ = mutex_locked(mutex)

/* All in all a thread is waited for so many times the limit of background_hurry(). */
#define BACKGROUND_LIMITS_MAX 4U

struct background {
	pthread_mutex_t mutex;
	pthread_cond_t has_changed; /* anything that the mutex guards */
	pthread_t thread;	    /* the loop's */
	/* Guarded by the mutex. */
	pid_t tid;	/* 0: the thread has not begun */
	int nice;	/* the thread's */
	bool is_ending; /* the thread is to end when its work is done */
	bool has_ended, is_left;
};

void background_init(struct background *background);
/* The thread has ended, or was never started. */
void background_destroy(struct background *background);

/* Starts the thread, which gets no signals.  Returns 0; -EAGAIN: there may be no more. */
int background_start(struct background *background, void *(*run)(void *context), void *context);
/* Called by the thread as the last thing, with the mutex, which it releases.  Returns whether the
 * loop has left it: then whatever it worked at is the thread's to release. */
bool background_end(struct background *background);
/* Called by the thread before all else: it runs after the loop, which has a higher priority because
 * late unwind rows cut stacks.  A late file does no harm.  Returns with the mutex held. */
void background_begin(struct background *background);

/* How long the loop still waits. */
struct background_patience {
	uint64_t limit_ns; /* without a sign that the thread runs */
	uint64_t until_ns; /* such a sign moves it; CLOCK_MONOTONIC */
	uint64_t last_ns;  /* nothing moves until_ns beyond */
};

/* From now on the loop does nothing but wait for the thread, which gets the loop's priority, where
 * the loop may give it: busy threads of others would hold it up otherwise.  The mutex is held, and
 * the thread has not ended. */
void background_hurry(struct background *background, uint64_t limit_ns,
		      struct background_patience *ret_patience);
/* Waits for a change; look whether it is the one.  The mutex is held, but not all the time.
 * Returns false when it is too late: the thread has slept for the limit, on a disk that does not
 * answer, or BACKGROUND_LIMITS_MAX limits are over. */
bool background_wait(struct background *background, struct background_patience *patience);

/* Tells the thread to end (is_ending), and waits as background_wait() does.  Returns whether it has
 * ended; it is still to be joined. */
bool background_finish(struct background *background, uint64_t limit_ns);
/* Joins a thread that has ended, or leaves one that has not: it goes on by itself.  Returns whether
 * it has ended. */
bool background_join(struct background *background);

#endif
