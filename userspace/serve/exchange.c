/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/exchange.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "serve/answer_head.h"
#include "serve/files.h"

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
	if (request_needs_work(request))
		return EXCHANGE_WORK;
	switch (request->endpoint) {
	case REQUEST_METRICS:
		return EXCHANGE_METRICS;
	case REQUEST_READY:
		return EXCHANGE_READY;
	case REQUEST_PAGE:
		pages_history(answer);
		return EXCHANGE_ANSWER;
	case REQUEST_STYLE:
		pages_history_style(answer);
		return EXCHANGE_ANSWER;
	case REQUEST_SCRIPT:
		pages_history_script(answer);
		return EXCHANGE_ANSWER;
	case REQUEST_INDEX:
		pages_index(answer);
		return EXCHANGE_ANSWER;
	default:
		answer_say(answer, 200, "ok\n");
		return EXCHANGE_ANSWER;
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
