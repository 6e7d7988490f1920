/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/places.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/user_quota.h"
#include "serve/http.h"

struct place {
	enum place_state state;
	int fd;
	uid_t uid;
	uint64_t since_ns;
	bool is_shut;
};

struct places {
	pthread_mutex_t mutex;
	struct counts *counts;
	unsigned int count, taken;
	struct user_quota quota; /* in places */
	struct place place[];
};

int places_new(unsigned int count, struct counts *counts, struct places **ret_places)
{
	struct places *places = calloc(1, sizeof(*places) + count * sizeof(places->place[0]));

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
	const uint64_t of_users = places->taken - user_quota_held(&places->quota, 0);

	return (!uid || of_users < PLACES_USERS_SHARE(places->count)) &&
	       !user_quota_take(&places->quota, uid, 1);
}

struct place *places_take(struct places *places, int fd, uid_t uid, uint64_t now_ns)
{
	struct place *taken = NULL;

	pthread_mutex_lock(&places->mutex);
	for (unsigned int i = 0; !taken && i < places->count; i++)
		if (places->place[i].state == PLACE_FREE)
			taken = &places->place[i];
	if (taken && take_share(places, uid)) {
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
	user_quota_give(&places->quota, place->uid, 1);
	atomic_store(&places->counts->connections, --places->taken);
	pthread_mutex_unlock(&places->mutex);
}

void places_set(struct places *places, struct place *place, enum place_state state,
		uint64_t now_ns)
{
	pthread_mutex_lock(&places->mutex);
	place->state = state;
	place->since_ns = now_ns;
	pthread_mutex_unlock(&places->mutex);
}

static void shut(struct place *place)
{
	(void)shutdown(place->fd, SHUT_RDWR);
	place->is_shut = true;
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
	for (unsigned int i = 0; i < places->count; i++) {
		struct place *place = &places->place[i];
		const uint64_t age_ns = now_ns - place->since_ns;

		if (place->is_shut || now_ns < place->since_ns)
			continue;
		if (place->state == PLACE_ASKS &&
		    age_ns > HTTP_REQUEST_NS / (is_crowded(places, place->uid) ? 10 : 1)) {
			atomic_fetch_add(
				&places->counts->refused[COUNTS_REFUSED_LATE_REQUEST], 1);
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
	for (unsigned int i = 0; i < places->count; i++)
		if (places->place[i].state != PLACE_FREE)
			shut(&places->place[i]);
	pthread_mutex_unlock(&places->mutex);
}
