/* SPDX-License-Identifier: BSD-2-Clause */
/* Lets a thread of its own write the profiles of windows, so that a slow disk holds up nobody.  The
 * queue before it is bounded; when it is full the oldest window is dropped. */
#ifndef STORE_WRITER_H
#define STORE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "base/kinds.h"
#include "profile/profile.h"
#include "store/store.h"

/* Windows that wait to be written, and what they take together. */
#define WRITER_WINDOWS_MAX 24U
#define WRITER_BYTES_MAX ((size_t)128 << 20)

/* The profiles of one window, with all that they refer to: nobody else has any of it. */
struct writer_window {
	struct profile *profile[PP_PROFILE_COUNT]; /* owned; NULL: there is none of this kind */
	struct intern *strings;			   /* owned */
	uint64_t start_wall_ns, duration_ns;
	uint64_t ended_ns;	    /* CLOCK_MONOTONIC */
	bool is_last;		    /* of the run */
	struct store_limits limits; /* what the store may hold from then on */
};
void writer_window_release(struct writer_window *window); /* safe on a zeroed one */

struct writer;
/* Writes the profiles of a window; called by the thread, one window after the other.  Returns 0 or
 * -errno. */
typedef int (*writer_write)(void *context, const struct writer_window *window);
/* Starts the thread.  context is borrowed.  Returns 0; -ENOMEM; -EAGAIN: there may be no thread. */
int writer_new(writer_write write, void *context, struct writer **ret_writer);
/* Hands a window over; *window becomes empty.  Returns how many profiles of older windows were
 * dropped for it. */
size_t writer_put(struct writer *writer, struct writer_window *window);
/* Waits until all is written, and does nothing else from now on: see background_hurry().  Gives up
 * when the thread has slept for limit_ns, and at BACKGROUND_LIMITS_MAX times that.  Returns 0;
 * -errno of the last window; -ETIMEDOUT. */
int writer_wait(struct writer *writer, uint64_t limit_ns);
/* Returns how many windows are not written yet. */
size_t writer_waiting(struct writer *writer);
/* Ends the thread when it has written all; NULL is ok.  Waits as writer_wait() does; returns false
 * when the thread has not ended then: it goes on to use what it borrows. */
bool writer_free(struct writer *writer, uint64_t limit_ns);

#endif
