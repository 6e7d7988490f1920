/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/places.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/user_quota.h"
#include "serve/http.h"

/* ---- connections ---- */

struct place {
	enum place_state state;
	int fd;
	uid_t uid;
	uint64_t since_ns;
	bool is_shut;
	bool is_apart; /* it has left its user's share */
	bool is_trusted;
};

struct places {
	pthread_mutex_t mutex;
	struct counts *counts;
	unsigned int count, taken, trusted;
	struct user_quota quota; /* in places; of those that are not apart */
	struct place place[];
};

int places_new(unsigned int count, struct counts *counts, struct places **ret_places)
{
	struct places *places =
		calloc(1, sizeof(*places) + PLACES_ALL(count) * sizeof(places->place[0]));

	if (!places)
		return -ENOMEM;
	pthread_mutex_init(&places->mutex, NULL);
	places->counts = counts;
	places->count = count;
	places->quota.total = count;
	*ret_places = places;
	return 0;
}

void places_free(struct places *places)
{
	if (!places)
		return;
	user_quota_release(&places->quota);
	pthread_mutex_destroy(&places->mutex);
	free(places);
}

/* Takes one from a user's share.  Returns whether there is one. */
static bool take_share(struct places *places, uid_t uid)
{
	const uint64_t of_users = places->quota.used - user_quota_held(&places->quota, 0);

	return (!uid || of_users < PLACES_USERS_SHARE(places->count)) &&
	       !user_quota_take(&places->quota, uid, 1);
}

static void shut(struct place *place)
{
	(void)shutdown(place->fd, SHUT_RDWR);
	place->is_shut = true;
}

static void set_apart(struct places *places, struct place *place)
{
	user_quota_give(&places->quota, place->uid, 1);
	place->is_apart = true;
}

/* Returns the one that was in a state for longest, of those of a user; NULL: there is none. */
static struct place *find_oldest(struct places *places, uint64_t uid, enum place_state state)
{
	struct place *oldest = NULL;

	for (unsigned int i = 0; i < PLACES_ALL(places->count); i++) {
		struct place *place = &places->place[i];

		if (place->state == state && place->uid == uid && !place->is_apart &&
		    (!oldest || place->since_ns < oldest->since_ns))
			oldest = place;
	}
	return oldest;
}

/* Takes a place from who has most.  Returns whether there is one. */
static bool displace(struct places *places, uid_t uid)
{
	const uint64_t most = user_quota_most(&places->quota);
	struct place *oldest;

	if (!most ||
	    (most != uid && uid &&
	     user_quota_held(&places->quota, uid) >= user_quota_held(&places->quota, most)))
		return false;
	oldest = find_oldest(places, most, PLACE_ASKS);
	if (!oldest && most != uid)
		oldest = find_oldest(places, most, PLACE_READS);
	if (!oldest || user_quota_note(&places->quota, uid, 1))
		return false;
	set_apart(places, oldest);
	shut(oldest);
	atomic_fetch_add(&places->counts->refused[COUNTS_REFUSED_SHARE], 1);
	return true;
}

struct place *places_take(struct places *places, int fd, uid_t uid, uint64_t now_ns)
{
	struct place *taken = NULL;

	pthread_mutex_lock(&places->mutex);
	for (unsigned int i = 0; !taken && i < PLACES_ALL(places->count); i++)
		if (places->place[i].state == PLACE_FREE)
			taken = &places->place[i];
	if (taken && (take_share(places, uid) || displace(places, uid))) {
		*taken = (struct place){
			.state = PLACE_ASKS, .fd = fd, .uid = uid, .since_ns = now_ns};
		atomic_store(&places->counts->connections, ++places->taken);
	} else {
		atomic_fetch_add(&places->counts->refused[COUNTS_REFUSED_SHARE], 1);
		taken = NULL;
	}
	pthread_mutex_unlock(&places->mutex);
	return taken;
}

void places_leave(struct places *places, struct place *place)
{
	pthread_mutex_lock(&places->mutex);
	place->state = PLACE_FREE;
	places->trusted -= place->is_trusted;
	if (!place->is_apart)
		user_quota_give(&places->quota, place->uid, 1);
	atomic_store(&places->counts->connections, --places->taken);
	pthread_mutex_unlock(&places->mutex);
}

void places_trust(struct places *places, struct place *place)
{
	pthread_mutex_lock(&places->mutex);
	if (!place->is_apart && place->uid && places->trusted < PLACES_BESIDE(places->count)) {
		set_apart(places, place);
		place->is_trusted = true;
		places->trusted++;
	}
	pthread_mutex_unlock(&places->mutex);
}

void places_set(struct places *places, struct place *place, enum place_state state, uint64_t now_ns)
{
	pthread_mutex_lock(&places->mutex);
	place->state = state;
	place->since_ns = now_ns;
	pthread_mutex_unlock(&places->mutex);
}

/* Returns whether there is a crowd: of all, or of one user in what he could have at most. */
static bool is_crowded(const struct places *places, uid_t uid)
{
	return places->taken >= HTTP_CROWDED(places->count) ||
	       (uid && user_quota_held(&places->quota, uid) >= HTTP_CROWDED(places->count) / 2);
}

void places_sweep(struct places *places, uint64_t now_ns)
{
	pthread_mutex_lock(&places->mutex);
	for (unsigned int i = 0; i < PLACES_ALL(places->count); i++) {
		struct place *place = &places->place[i];
		const uint64_t age_ns = now_ns - place->since_ns;

		if (place->is_shut || now_ns < place->since_ns)
			continue;
		if (place->state == PLACE_ASKS &&
		    age_ns > HTTP_REQUEST_NS / (is_crowded(places, place->uid) ? 10 : 1)) {
			atomic_fetch_add(&places->counts->refused[COUNTS_REFUSED_LATE_REQUEST], 1);
			shut(place);
		} else if (place->state == PLACE_READS && age_ns > HTTP_READER_NS) {
			atomic_fetch_add(&places->counts->refused[COUNTS_REFUSED_LATE_READER], 1);
			shut(place);
		}
	}
	pthread_mutex_unlock(&places->mutex);
}

void places_close(struct places *places)
{
	pthread_mutex_lock(&places->mutex);
	for (unsigned int i = 0; i < PLACES_ALL(places->count); i++)
		if (places->place[i].state != PLACE_FREE)
			shut(&places->place[i]);
	pthread_mutex_unlock(&places->mutex);
}

/* ---- work ---- */

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
