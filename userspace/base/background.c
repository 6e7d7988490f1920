/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/background.h"

#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"

#define STACK_BYTES ((size_t)512 << 10)
#define BACKGROUND_NICE 0

int background_start(void *(*run)(void *context), void *context, pthread_t *ret_thread)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int err = pthread_attr_init(&attributes);

	if (err)
		return -err;
	/* An arena for one more thread would cost 64 MiB of address space. */
	(void)mallopt(M_ARENA_MAX, 1);
	sigfillset(&all);
	err = pthread_attr_setstacksize(&attributes, STACK_BYTES);
	if (!err)
		err = pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!err) {
		err = pthread_create(ret_thread, &attributes, run, context);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_attr_destroy(&attributes);
	return -err;
}

void background_yield(void)
{
	(void)setpriority(PRIO_PROCESS, 0, BACKGROUND_NICE); /* 0: this thread alone */
}

void background_condition(pthread_cond_t *condition)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

bool background_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_ns)
{
	const struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_SEC),
				       .tv_nsec = (long)(until_ns % NS_PER_SEC)};

	return !pthread_cond_timedwait(condition, mutex, &until);
}
