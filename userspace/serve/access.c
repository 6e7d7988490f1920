/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "config/secret.h"

#define HOST_BYTES 256U

bool access_token_is(const char *given, const char *token)
{
	const size_t given_size = strnlen(given, CONFIG_TOKEN_MAX_BYTES);
	const size_t size = strnlen(token, CONFIG_TOKEN_MAX_BYTES);
	unsigned char padded[2][CONFIG_TOKEN_MAX_BYTES] = {{0}};
	volatile unsigned char differs = given_size != size;

	if (given[given_size])
		return false; /* longer than any token may be */
	memcpy(padded[0], given, given_size);
	memcpy(padded[1], token, size);
	for (size_t i = 0; i < CONFIG_TOKEN_MAX_BYTES; i++)
		differs |= (unsigned char)(padded[0][i] ^ padded[1][i]);
	return !differs;
}

enum access_view access_decide(const struct access_client *client, const char *token)
{
	if (client->token)
		return token && access_token_is(client->token, token) ? ACCESS_ALL : ACCESS_NOTHING;
	if (client->has_certificate)
		return ACCESS_ALL;
	if (!client->has_uid)
		return ACCESS_NOTHING;
	return client->uid ? ACCESS_OWN : ACCESS_ALL;
}

/* ---- Host ---- */

/* Takes the port off.  Returns false: it is no port, or the name is too long. */
static bool split_port(const char *host, char ret_name[HOST_BYTES])
{
	const char *port = strrchr(host, ':');
	size_t size = strlen(host);

	if (host[0] == '[' && host[size - 1] == ']')
		port = NULL;
	if (port && (port[1] == '\0' || port[1 + strspn(port + 1, "0123456789")]))
		return false;
	if (port)
		size = (size_t)(port - host);
	if (!size || size >= HOST_BYTES)
		return false;
	memcpy(ret_name, host, size);
	ret_name[size] = '\0';
	return true;
}

static bool is_address(char *name)
{
	const size_t size = strlen(name);
	unsigned char address[sizeof(struct in6_addr)];

	if (name[0] != '[')
		return inet_pton(AF_INET, name, address) == 1;
	if (name[size - 1] != ']')
		return false;
	name[size - 1] = '\0';
	return inet_pton(AF_INET6, name + 1, address) == 1;
}

bool access_host_is_ours(const char *host, const char *const *name, size_t name_count)
{
	char bare[HOST_BYTES];

	if (!host || !host[0] || !split_port(host, bare))
		return false;
	if (!strcasecmp(bare, "localhost"))
		return true;
	for (size_t i = 0; i < name_count; i++)
		if (!strcasecmp(bare, name[i]))
			return true;
	return is_address(bare);
}

/* ---- sessions ---- */

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
