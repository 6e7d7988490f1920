/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/workers.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct worker {
	struct workers *workers;
	struct work *running; /* NULL: none */
	/* of what runs, which may be freed at any time */
	bool is_of_user;
	uid_t uid;
};

struct workers {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct work *first, *last; /* those that wait */
	unsigned int places;
	bool ends;
	unsigned int thread_count;
	pthread_t thread[WORKERS_MAX];
	struct worker worker[WORKERS_MAX];
};

/* Takes the work that has waited longest.  Returns NULL at the end. */
static struct work *take(struct workers *workers, struct worker *worker)
{
	struct work *work;

	pthread_mutex_lock(&workers->mutex);
	while (!workers->first && !workers->ends)
		pthread_cond_wait(&workers->changed, &workers->mutex);
	work = workers->first;
	if (work) {
		workers->first = work->next;
		if (!workers->first)
			workers->last = NULL;
		worker->running = work;
		worker->is_of_user = work->is_of_user;
		worker->uid = work->uid;
	}
	pthread_mutex_unlock(&workers->mutex);
	return work;
}

static void *run(void *context)
{
	struct worker *worker = context;
	struct workers *workers = worker->workers;
	struct work *work;

	while ((work = take(workers, worker))) {
		work->run(work);
		pthread_mutex_lock(&workers->mutex);
		worker->running = NULL;
		pthread_mutex_unlock(&workers->mutex);
	}
	return NULL;
}

static int start(struct workers *workers)
{
	struct worker *worker = &workers->worker[workers->thread_count];
	sigset_t all, before;
	int err;

	worker->workers = workers;
	sigfillset(&all); /* signals are for the thread that waits for them */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&workers->thread[workers->thread_count], NULL, run, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		workers->thread_count++;
	return -err;
}

int workers_new(unsigned int threads, unsigned int waiting, struct workers **ret_workers)
{
	OWNED(workers) struct workers *workers = calloc(1, sizeof(*workers));
	int err = 0;

	if (!workers)
		return -ENOMEM;
	pthread_mutex_init(&workers->mutex, NULL);
	pthread_cond_init(&workers->changed, NULL);
	workers->places = threads + waiting;
	for (unsigned int i = 0; !err && i < threads && i < WORKERS_MAX; i++)
		err = start(workers);
	if (err)
		return err;
	*ret_workers = TAKE(workers);
	return 0;
}

void workers_end(struct workers *workers)
{
	pthread_mutex_lock(&workers->mutex);
	workers->ends = true;
	pthread_cond_broadcast(&workers->changed);
	pthread_mutex_unlock(&workers->mutex);
	for (unsigned int i = 0; i < workers->thread_count; i++)
		pthread_join(workers->thread[i], NULL);
	workers->thread_count = 0;
}

void workers_free(struct workers *workers)
{
	if (!workers)
		return;
	workers_end(workers);
	pthread_cond_destroy(&workers->changed);
	pthread_mutex_destroy(&workers->mutex);
	free(workers);
}

/* What has a place, by whose it is. */
struct census {
	unsigned int all, of_users, of_user;
};

static void count(struct census *census, const struct work *work, bool is_of_user, uid_t uid)
{
	census->all++;
	census->of_users += is_of_user;
	census->of_user += is_of_user && work->is_of_user && uid == work->uid;
}

static bool has_place(const struct workers *workers, const struct work *work)
{
	struct census census = {0};

	for (unsigned int i = 0; i < workers->thread_count; i++)
		if (workers->worker[i].running)
			count(&census, work, workers->worker[i].is_of_user, workers->worker[i].uid);
	for (const struct work *other = workers->first; other; other = other->next)
		count(&census, work, other->is_of_user, other->uid);
	return !workers->ends && census.all < workers->places &&
	       (!work->is_of_user || (census.of_users < WORKERS_USERS_SHARE(workers->places) &&
				      census.of_user < WORKERS_USER_SHARE(workers->places)));
}

int workers_add(struct workers *workers, struct work *work)
{
	int err = 0;

	pthread_mutex_lock(&workers->mutex);
	if (has_place(workers, work)) {
		work->next = NULL;
		if (workers->last)
			workers->last->next = work;
		else
			workers->first = work;
		workers->last = work;
		pthread_cond_signal(&workers->changed);
	} else {
		err = -EBUSY;
	}
	pthread_mutex_unlock(&workers->mutex);
	return err;
}

unsigned int workers_count(struct workers *workers)
{
	unsigned int all = 0;

	pthread_mutex_lock(&workers->mutex);
	for (unsigned int i = 0; i < workers->thread_count; i++)
		all += workers->worker[i].running != NULL;
	for (const struct work *work = workers->first; work; work = work->next)
		all++;
	pthread_mutex_unlock(&workers->mutex);
	return all;
}
