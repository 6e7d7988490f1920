/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread beside the loop that writes what the loop hands over: a slow disk holds up nobody. */
#ifndef BASE_BACKGROUND_H
#define BASE_BACKGROUND_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Starts a thread that gets no signals.  Returns 0; -EAGAIN: there may be no more. */
int background_start(void *(*run)(void *context), void *context, pthread_t *ret_thread);
/* Called by the thread: it runs after the loop, which has a higher priority because late unwind
 * rows cut stacks.  A late file does no harm. */
void background_yield(void);

/* Initialises a condition for background_wait(). */
void background_condition(pthread_cond_t *condition);
/* Waits for a change, until_ns (CLOCK_MONOTONIC) at most; the mutex is held.  Returns false when it
 * is too late. */
bool background_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_ns);

#endif
