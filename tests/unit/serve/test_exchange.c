/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole requests without a socket: what is done, and for whom. */
#include "serve/exchange.h"

#include <cmocka.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define TOKEN "0123456789abcdef-token"

static const struct access_client root = {.has_uid = true, .uid = 0};
static const struct access_client user = {.has_uid = true, .uid = 1000};
static const struct access_client stranger = {.has_uid = false};

static struct counts counts;
static struct sessions sessions;
static uint64_t now_ms = 1795273360165ULL;
static struct request request;
static struct answer_view view;
static struct answer answer;
static unsigned int status; /* of the last answer with a body; 0: none */
static char text[4096];
static unsigned int heads; /* answers that are headers alone */

static enum exchange_step begin(const struct exchange_ask *ask)
{
	static const struct exchange_rules rules = {.token = TOKEN, .sessions = &sessions};
	enum exchange_step step;

	answer_release(&answer);
	step = exchange_begin(ask, &rules, now_ms, &counts, &request, &view, &answer);
	heads += answer.is_head;
	status = answer.is_head ? 0 : answer.status;
	snprintf(text, sizeof(text), "%s", answer.body ? answer.body : "");
	return step;
}

static struct exchange_ask get(const char *path, const struct access_client *client)
{
	return (struct exchange_ask){
		.method = "GET", .path = path, .host = "127.0.0.1:4041", .client = *client};
}

static enum exchange_step ask(const char *path, const struct access_client *client)
{
	const struct exchange_ask asked = get(path, client);

	return begin(&asked);
}

static void root__sees_everything(void **state)
{
	(void)state;
	assert_int_equal(ask("/debug/pprof/profile", &root), EXCHANGE_WORK);
	assert_false(view.is_of_user);
	assert_int_equal(ask("/api/v1/profile", &root), EXCHANGE_WORK);
	assert_int_equal(ask("/api/v1/strip", &root), EXCHANGE_WORK);
	assert_int_equal(ask("/api/v1/labels", &root), EXCHANGE_WORK);
	assert_int_equal(ask("/api/v1/waits", &root), EXCHANGE_WORK);
	assert_int_equal(ask("/api/v1/self", &root), EXCHANGE_WORK);
	assert_true(view.has_uid);
	assert_int_equal(ask("/metrics", &root), EXCHANGE_WORK);
	assert_int_equal(ask("/", &root), EXCHANGE_ANSWER);
	assert_int_equal(status, 200);
	assert_int_equal(ask("/nothing", &root), EXCHANGE_ANSWER);
	assert_int_equal(status, 404);
}

static void users__see_their_own_and_live_only(void **state)
{
	(void)state;
	assert_int_equal(ask("/debug/pprof/profile", &user), EXCHANGE_WORK);
	assert_true(view.is_of_user);
	assert_int_equal(view.uid, 1000);
	assert_int_equal(ask("/api/v1/profile", &user), EXCHANGE_ANSWER);
	assert_int_equal(status, 403);
	assert_int_equal(ask("/api/v1/strip", &user), EXCHANGE_ANSWER);
	assert_int_equal(status, 403);
	assert_int_equal(ask("/api/v1/labels", &user), EXCHANGE_ANSWER);
	assert_int_equal(status, 403);
	assert_int_equal(ask("/api/v1/waits", &user), EXCHANGE_ANSWER);
	assert_int_equal(status, 403);
	assert_int_equal(ask("/metrics", &user), EXCHANGE_ANSWER);
	assert_int_equal(status, 403);
	/* It tells them what they see. */
	assert_int_equal(ask("/api/v1/self", &user), EXCHANGE_WORK);
	assert_true(view.is_of_user);
	assert_int_equal(ask("/debug/pprof/", &user), EXCHANGE_ANSWER);
	assert_int_equal(status, 200);
}

static void strangers__see_that_it_lives(void **state)
{
	static const char *const closed[] = {
		"/",	    "/debug/pprof/", "/debug/pprof/profile", "/api/v1/profile",
		"/metrics", "/api/v1/self",  "/api/v1/labels"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(closed); i++) {
		assert_int_equal(ask(closed[i], &stranger), EXCHANGE_ANSWER);
		assert_int_equal(status, 401);
	}
	assert_int_equal(ask("/healthz", &stranger), EXCHANGE_ANSWER);
	assert_int_equal(status, 200);
	assert_int_equal(ask("/readyz", &stranger), EXCHANGE_WORK);
	/* What nobody in particular asks has no more work done than a user. */
	assert_true(view.is_of_user);
}

/* The page of the history is of its own origin: no script or style but its own files. */
static void page__has_a_policy_without_inline_code(void **state)
{
	static const struct {
		const char *path, *type, *text;
	} files[] = {{"/", "text/html; charset=utf-8", "<script src=\"page.js\" defer></script>"},
		     {"/page.css", "text/css; charset=utf-8", ":root"},
		     {"/page.js", "text/javascript; charset=utf-8", "\"use strict\";"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		assert_int_equal(ask(files[i].path, &user), EXCHANGE_ANSWER);
		assert_int_equal(status, 200);
		assert_string_equal(answer.type, files[i].type);
		assert_non_null(strstr(text, files[i].text));
		assert_non_null(strstr(answer.policy, "default-src 'none'; script-src 'self'; "));
		assert_non_null(strstr(answer.policy, "frame-ancestors 'none'"));
		assert_null(strstr(answer.policy, "unsafe"));
		assert_int_equal(ask(files[i].path, &stranger), EXCHANGE_ANSWER);
		assert_int_equal(status, 401);
	}
}

/* What all may ask is answered without a look at whose the connection is. */
static void client__matters_where_not_all_may_ask(void **state)
{
	(void)state;
	assert_false(exchange_needs_client("/healthz"));
	assert_false(exchange_needs_client("/readyz"));
	assert_false(exchange_needs_client("/nothing"));
	assert_true(exchange_needs_client("/"));
	assert_true(exchange_needs_client("/metrics"));
	assert_true(exchange_needs_client("/debug/pprof/profile"));
	assert_true(exchange_needs_client("/api/v1/profile"));
}

static void token__opens_everything(void **state)
{
	char session[SESSIONS_ID_BYTES];
	struct exchange_ask with[] = {get("/metrics", &stranger), get("/metrics", &stranger),
				      get("/metrics", &stranger)};

	(void)state;
	with[0].authorization = "Bearer " TOKEN;
	with[1].cookie = session;
	assert_int_equal(sessions_begin(&sessions, &stranger, now_ms, session), 0);
	with[2].parameter[0] = (struct exchange_parameter){"token", TOKEN};
	with[2].parameter_count = 1;
	for (size_t i = 0; i < ARRAY_SIZE(with); i++)
		assert_int_equal(begin(&with[i]), EXCHANGE_WORK);
	/* A person's browser keeps it as a cookie, and out of the address line. */
	with[2].path = "/";
	assert_int_equal(begin(&with[2]), EXCHANGE_REDIRECT);
}

/* Servers on other ports of the host get the cookie, too (RFC 6265, section 8.5). */
static void session__is_of_one_user_and_ends(void **state)
{
	struct exchange_ask asked = get("/metrics", &user);
	char id[SESSIONS_ID_BYTES], other[SESSIONS_ID_BYTES];
	const uint64_t begun_ms = now_ms;

	(void)state;
	assert_int_equal(sessions_begin(&sessions, &user, now_ms, id), 0);
	assert_int_equal(strlen(id), 32);
	asked.cookie = id;
	assert_int_equal(begin(&asked), EXCHANGE_WORK);
	asked.client.uid++;
	assert_int_equal(begin(&asked), EXCHANGE_ANSWER);
	assert_int_equal(status, 401);
	asked.client = stranger;
	assert_int_equal(begin(&asked), EXCHANGE_ANSWER);
	asked.client = user;
	asked.cookie = TOKEN; /* is none */
	assert_int_equal(begin(&asked), EXCHANGE_ANSWER);
	asked.cookie = id;
	now_ms += SESSIONS_LAST_S * 1000ULL - 1;
	assert_int_equal(begin(&asked), EXCHANGE_WORK);
	now_ms++;
	assert_int_equal(begin(&asked), EXCHANGE_ANSWER);
	/* The oldest one makes room. */
	now_ms = begun_ms + 1;
	for (unsigned int i = 0; i < SESSIONS_MAX; i++)
		assert_int_equal(sessions_begin(&sessions, &user, now_ms, other), 0);
	assert_int_equal(begin(&asked), EXCHANGE_ANSWER);
	asked.cookie = other;
	assert_int_equal(begin(&asked), EXCHANGE_WORK);
	now_ms = begun_ms;
}

static void token__that_is_wrong_gets_no_hint(void **state)
{
	static const char *const wrong[] = {"Bearer wrong",	  "Bearer",
					    "Basic cm9vdDpyb290", "",
					    "Bearer " TOKEN "x",  "Bearer  " TOKEN};
	const unsigned long long before = counts.refused[COUNTS_REFUSED_TOKEN];
	struct exchange_ask asked = get("/metrics", &root);
	char first[sizeof(text)] = "";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		asked.authorization = wrong[i];
		assert_int_equal(begin(&asked), EXCHANGE_ANSWER);
		assert_int_equal(status, 401);
		if (!i)
			memcpy(first, text, sizeof(first));
		assert_string_equal(text, first);
	}
	assert_int_equal(counts.refused[COUNTS_REFUSED_TOKEN] - before, ARRAY_SIZE(wrong));
	asked = get("/metrics", &root);
	asked.cookie = "old";
	assert_int_equal(begin(&asked), EXCHANGE_ANSWER);
	assert_int_equal(status, 401);
}

static void hosts__of_others_are_refused_first(void **state)
{
	struct exchange_ask asked = get("/healthz", &root);

	(void)state;
	asked.host = "evil.example";
	assert_int_equal(begin(&asked), EXCHANGE_ANSWER);
	assert_int_equal(status, 403);
	asked.host = NULL;
	assert_int_equal(begin(&asked), EXCHANGE_ANSWER);
	assert_int_equal(status, 403);
	assert_int_equal(counts.refused[COUNTS_REFUSED_HOST], 2);
}

static void methods__that_write_are_refused(void **state)
{
	static const char *const other[] = {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get", ""};
	struct exchange_ask asked = get("/healthz", &root);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(other); i++) {
		asked.method = other[i];
		assert_int_equal(begin(&asked), EXCHANGE_ANSWER);
		assert_int_equal(status, 405);
	}
	asked.method = "GET";
	asked.has_body = true;
	assert_int_equal(begin(&asked), EXCHANGE_ANSWER);
	assert_int_equal(status, 405);
	asked.has_body = false;
	asked.method = "HEAD";
	assert_int_equal(begin(&asked), EXCHANGE_ANSWER);
	assert_int_equal(status, 200);
	/* Nobody is watched for a headline. */
	heads = 0;
	asked.path = "/debug/pprof/profile";
	assert_int_equal(begin(&asked), EXCHANGE_ANSWER);
	assert_int_equal(heads, 1);
	asked.client = stranger;
	assert_int_equal(begin(&asked), EXCHANGE_ANSWER);
	assert_int_equal(status, 401);
	asked.client = root;
	asked.parameter[0] = (struct exchange_parameter){"pid", "x"};
	asked.parameter_count = 1;
	assert_int_equal(begin(&asked), EXCHANGE_ANSWER);
	assert_int_equal(status, 400);
	assert_int_equal(heads, 1);
}

static void parameters__are_bounded_and_checked(void **state)
{
	struct exchange_ask asked = get("/debug/pprof/profile", &root);

	(void)state;
	asked.parameter[0] = (struct exchange_parameter){"seconds", "5"};
	asked.parameter[1] = (struct exchange_parameter){"pid", "17"};
	asked.parameter_count = 2;
	assert_int_equal(begin(&asked), EXCHANGE_WORK);
	assert_int_equal(request.seconds, 5);
	assert_int_equal(request.pid, 17);
	asked.parameter[1].value = "x";
	assert_int_equal(begin(&asked), EXCHANGE_ANSWER);
	assert_int_equal(status, 400);
	assert_string_equal(text, "pid=x: not a process id\n");
	for (size_t i = 0; i < EXCHANGE_PARAMETERS_MAX; i++)
		asked.parameter[i] = (struct exchange_parameter){"pid", "17"};
	asked.parameter_count = EXCHANGE_PARAMETERS_MAX;
	assert_int_equal(begin(&asked), EXCHANGE_WORK);
	asked.parameter_count++;
	assert_int_equal(begin(&asked), EXCHANGE_ANSWER);
	assert_int_equal(status, 400);
}

static int forget_answer(void **state)
{
	(void)state;
	answer_release(&answer);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(root__sees_everything),
		cmocka_unit_test(users__see_their_own_and_live_only),
		cmocka_unit_test(strangers__see_that_it_lives),
		cmocka_unit_test(page__has_a_policy_without_inline_code),
		cmocka_unit_test(client__matters_where_not_all_may_ask),
		cmocka_unit_test(token__opens_everything),
		cmocka_unit_test(session__is_of_one_user_and_ends),
		cmocka_unit_test(token__that_is_wrong_gets_no_hint),
		cmocka_unit_test(hosts__of_others_are_refused_first),
		cmocka_unit_test(methods__that_write_are_refused),
		cmocka_unit_test(parameters__are_bounded_and_checked),
	};

	return cmocka_run_group_tests(tests, NULL, forget_answer);
}
