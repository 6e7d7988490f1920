/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/exchange.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "config/secret.h"
#include "serve/answer.h"
#include "serve/answers.h"

/* ---- who asks ---- */

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

static void count(struct counts *counts, enum counts_refusal refusal)
{
	atomic_fetch_add(&counts->refused[refusal], 1);
}

/* ---- who asks ---- */

static const char *parameter(const struct exchange_ask *ask, const char *name)
{
	for (size_t i = 0; i < ask->parameter_count && i < EXCHANGE_PARAMETERS_MAX; i++)
		if (!strcmp(ask->parameter[i].name, name))
			return ask->parameter[i].value ? ask->parameter[i].value : "";
	return NULL;
}

/* A session stands for the token that has begun it. */
static const char *token_of_session(const struct exchange_ask *ask,
				    const struct exchange_rules *rules, uint64_t now_ms)
{
	if (!ask->cookie)
		return NULL;
	return rules->sessions && sessions_has(rules->sessions, ask->cookie, &ask->client, now_ms)
		       ? rules->token
		       : "";
}

/* Finds the token that a client shows, in the order in which one is meant most plainly. */
static const char *find_token(const struct exchange_ask *ask, const struct exchange_rules *rules,
			      uint64_t now_ms)
{
	static const char scheme[] = "Bearer ";

	if (ask->authorization)
		return strncasecmp(ask->authorization, scheme, strlen(scheme))
			       ? ""
			       : ask->authorization + strlen(scheme);
	return parameter(ask, "token") ? parameter(ask, "token")
				       : token_of_session(ask, rules, now_ms);
}

static bool is_open_to_all(const struct request *request)
{
	return request->endpoint == REQUEST_HEALTH || request->endpoint == REQUEST_READY;
}

bool exchange_needs_client(const char *path)
{
	struct request request;

	return !request_route(path, &request) && !is_open_to_all(&request);
}

static bool is_page(const struct request *request)
{
	return request->endpoint == REQUEST_PAGE || request->endpoint == REQUEST_INDEX;
}

/* Returns whether a user who does not see everything may ask for it. */
static bool is_open_to_users(const struct request *request)
{
	return request->endpoint == REQUEST_LIVE || request->endpoint == REQUEST_SELF ||
	       request->endpoint == REQUEST_STYLE || request->endpoint == REQUEST_SCRIPT ||
	       is_page(request);
}

/* ---- what is asked ---- */

static enum exchange_step give(const struct request *request, struct answer *answer)
{
	switch (request->endpoint) {
	case REQUEST_PAGE:
	case REQUEST_STYLE:
	case REQUEST_SCRIPT:
	case REQUEST_INDEX:
		pages_get(request->endpoint, answer);
		return EXCHANGE_ANSWER;
	case REQUEST_HEALTH:
		answer_say(answer, 200, "ok\n");
		return EXCHANGE_ANSWER;
	default:
		return EXCHANGE_WORK;
	}
}

/* Takes the parameters.  Returns whether they are good. */
static bool take_parameters(const struct exchange_ask *ask, uint64_t now_ms,
			    struct request *request, struct answer *answer)
{
	char why[REQUEST_WHY_BYTES];

	if (ask->parameter_count > EXCHANGE_PARAMETERS_MAX) {
		answer_say(answer, 400, "more than %u parameters\n", EXCHANGE_PARAMETERS_MAX);
		return false;
	}
	for (size_t i = 0; i < ask->parameter_count; i++) {
		if (!request_take(request, ask->parameter[i].name, ask->parameter[i].value, now_ms,
				  why))
			continue;
		answer_say_clean(answer, 400, why);
		return false;
	}
	return true;
}

/* Refuses what no client may send.  Returns whether there is such a path. */
static bool find_path(const struct exchange_ask *ask, const struct exchange_rules *rules,
		      struct counts *counts, struct request *request, struct answer *answer)
{
	if (!access_host_is_ours(ask->host, rules->name, rules->name_count)) {
		count(counts, COUNTS_REFUSED_HOST);
		answer_say(answer, 403,
			   "Host is neither an address nor a name of this server: host= of "
			   "[http], --host\n");
		return false;
	}
	if ((strcmp(ask->method, "GET") && strcmp(ask->method, "HEAD")) || ask->has_body) {
		answer_say(answer, 405, "GET it, without a body\n");
		return false;
	}
	if (!request_route(ask->path, request))
		return true;
	answer_say(answer, 404, "no such path: /debug/pprof/ lists what there is\n");
	return false;
}

/* Returns whether the client may ask for this, and whose view it gets. */
static bool let_in(const struct exchange_ask *ask, const struct exchange_rules *rules,
		   uint64_t now_ms, struct counts *counts, const struct request *request,
		   struct answer_view *ret_view, struct answer *answer)
{
	struct access_client client = ask->client;
	enum access_view view;

	client.token = find_token(ask, rules, now_ms);
	view = access_decide(&client, rules->token);
	*ret_view = (struct answer_view){.is_of_user = view != ACCESS_ALL,
					 .has_uid = client.has_uid,
					 .uid = client.uid,
					 .stop_fd = -1};
	if (view == ACCESS_NOTHING) {
		if (client.token)
			count(counts, COUNTS_REFUSED_TOKEN);
		answer_say(answer, 401, "not allowed\n");
		return false;
	}
	if (view == ACCESS_ALL || is_open_to_users(request))
		return true;
	answer_say(answer, 403, "this is for root, or with the token\n");
	return false;
}

enum exchange_step exchange_begin(const struct exchange_ask *ask,
				  const struct exchange_rules *rules, uint64_t now_ms,
				  struct counts *counts, struct request *ret_request,
				  struct answer_view *ret_view, struct answer *ret_answer)
{
	/* What nobody in particular asks has a share of the work as one user has. */
	*ret_view = (struct answer_view){.is_of_user = true, .uid = (uid_t)-1, .stop_fd = -1};
	if (!find_path(ask, rules, counts, ret_request, ret_answer))
		return EXCHANGE_ANSWER;
	if (is_open_to_all(ret_request))
		return give(ret_request, ret_answer);
	if (!let_in(ask, rules, now_ms, counts, ret_request, ret_view, ret_answer))
		return EXCHANGE_ANSWER;
	/* Out of the address line, where a person is; programs that fetch keep no cookies. */
	if (is_page(ret_request) && parameter(ask, "token") && !ask->authorization)
		return EXCHANGE_REDIRECT;
	if (!take_parameters(ask, now_ms, ret_request, ret_answer))
		return EXCHANGE_ANSWER;
	if (request_needs_work(ret_request) && !strcmp(ask->method, "HEAD")) {
		answer_head(ret_request, ret_answer);
		return EXCHANGE_ANSWER;
	}
	return give(ret_request, ret_answer);
}
