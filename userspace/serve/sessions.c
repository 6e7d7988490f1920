/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/sessions.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#define MS_PER_S 1000U

int sessions_begin(struct sessions *sessions, const struct access_client *client, uint64_t now_ms,
		   char ret_id[SESSIONS_ID_BYTES])
{
	unsigned char random[SESSIONS_ID_BYTES / 2];
	struct session *taken = &sessions->session[0];

	if (getrandom(random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		return -EAGAIN;
	for (unsigned int i = 1; i < SESSIONS_MAX; i++)
		if (sessions->session[i].since_ms < taken->since_ms)
			taken = &sessions->session[i];
	*taken = (struct session){
		.has_uid = client->has_uid, .uid = client->uid, .since_ms = now_ms};
	for (unsigned int i = 0; i < sizeof(random); i++)
		snprintf(&taken->id[2 * i], 3, "%02x", random[i]);
	snprintf(ret_id, SESSIONS_ID_BYTES, "%s", taken->id);
	return 0;
}

static bool is_of(const struct session *session, const struct access_client *client)
{
	return session->has_uid == client->has_uid &&
	       (!session->has_uid || session->uid == client->uid);
}

bool sessions_has(const struct sessions *sessions, const char *id,
		  const struct access_client *client, uint64_t now_ms)
{
	bool found = false;

	for (unsigned int i = 0; i < SESSIONS_MAX; i++) {
		const struct session *session = &sessions->session[i];

		/* A clock that was set back ends it, too. */
		if (session->id[0] && is_of(session, client) && now_ms >= session->since_ms &&
		    now_ms - session->since_ms < SESSIONS_LAST_S * (uint64_t)MS_PER_S)
			found |= access_token_is(id, session->id);
	}
	return found;
}
