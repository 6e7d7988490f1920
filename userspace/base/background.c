/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/background.h"

#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/task.h"

#define STACK_BYTES ((size_t)512 << 10)
#define BACKGROUND_NICE 0
#define LOOKS_PER_LIMIT 30U /* whether the thread runs: one a second of 30 */

void background_init(struct background *background)
{
	pthread_condattr_t monotonic;

	*background = (struct background){.nice = BACKGROUND_NICE};
	pthread_mutex_init(&background->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&background->has_changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

void background_destroy(struct background *background)
{
	pthread_cond_destroy(&background->has_changed);
	pthread_mutex_destroy(&background->mutex);
}

int background_start(struct background *background, void *(*run)(void *context), void *context)
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
		err = pthread_create(&background->thread, &attributes, run, context);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_attr_destroy(&attributes);
	return -err;
}

void background_begin(struct background *background)
{
	pthread_mutex_lock(&background->mutex);
	background->tid = gettid();
	(void)setpriority(PRIO_PROCESS, 0, background->nice); /* 0: this thread alone */
}

bool background_end(struct background *background)
{
	const bool is_left = background->is_left;

	background->has_ended = true;
	pthread_cond_broadcast(&background->has_changed);
	pthread_mutex_unlock(&background->mutex);
	return is_left;
}

void background_hurry(struct background *background, uint64_t limit_ns,
		      struct background_patience *ret_patience)
{
	const uint64_t now_ns = mono_ns();

	background->nice = getpriority(PRIO_PROCESS, 0);
	if (background->tid)
		(void)setpriority(PRIO_PROCESS, (id_t)background->tid, background->nice);
	*ret_patience = (struct background_patience){
		.limit_ns = limit_ns,
		.until_ns = now_ns + limit_ns,
		.last_ns = now_ns + BACKGROUND_LIMITS_MAX * limit_ns,
	};
}

static bool changes_until(struct background *background, uint64_t until_ns)
{
	const struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_SEC),
				       .tv_nsec = (long)(until_ns % NS_PER_SEC)};

	return !pthread_cond_timedwait(&background->has_changed, &background->mutex, &until);
}

static uint64_t earlier_ns(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

bool background_wait(struct background *background, struct background_patience *patience)
{
	const uint64_t look_ns = mono_ns() + patience->limit_ns / LOOKS_PER_LIMIT;
	const pid_t tid = background->tid;
	uint64_t now_ns;
	bool is_running;

	if (changes_until(background, earlier_ns(look_ns, patience->until_ns)))
		return true;
	/* Not under the mutex: a thread that waits for it would seem to sleep. */
	pthread_mutex_unlock(&background->mutex);
	is_running = !tid || task_is_running(tid);
	pthread_mutex_lock(&background->mutex);
	now_ns = mono_ns();
	if (is_running)
		patience->until_ns = earlier_ns(now_ns + patience->limit_ns, patience->last_ns);
	return now_ns < patience->until_ns;
}

bool background_finish(struct background *background, uint64_t limit_ns)
{
	struct background_patience patience;
	bool has_ended;

	pthread_mutex_lock(&background->mutex);
	background->is_ending = true;
	pthread_cond_broadcast(&background->has_changed);
	if (!background->has_ended)
		background_hurry(background, limit_ns, &patience);
	while (!background->has_ended && background_wait(background, &patience))
		;
	has_ended = background->has_ended;
	pthread_mutex_unlock(&background->mutex);
	return has_ended;
}

bool background_join(struct background *background)
{
	bool has_ended;

	pthread_mutex_lock(&background->mutex);
	has_ended = background->has_ended;
	background->is_ending = true;
	background->is_left = !has_ended;
	if (!has_ended)
		pthread_detach(background->thread);
	pthread_cond_broadcast(&background->has_changed);
	pthread_mutex_unlock(&background->mutex);
	if (has_ended)
		pthread_join(background->thread, NULL);
	return has_ended;
}
